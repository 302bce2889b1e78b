"""The service fuzzed from its own description: no 500, and every answer is one that the description names."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, settings

from quizzes.service.app import create_app
from tests.quizzes.service.small import ADA

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis comes with the extra test")


@pytest.fixture
def described(settings_of_service):
    return schemathesis.openapi.from_asgi("/openapi.json", create_app(settings_of_service))


@pytest.fixture
def settings_of_service(request):
    return request.getfixturevalue("settings")


schema = schemathesis.pytest.from_fixture("described")


@schema.parametrize()
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_request_of_its_description_fails(case):
    case.call_and_validate(headers={"Authorization": f"Bearer {ADA}"})


def test_the_description_names_every_route_and_no_key(settings_of_service):
    with TestClient(create_app(settings_of_service)) as client:
        text = client.get("/openapi.json").text
        assert set(client.get("/openapi.json").json()["paths"]) == {"/health", "/lessons/{lesson}", "/lessons/{lesson}/answers"}
    assert "CANARY" not in text and "g01" not in text
