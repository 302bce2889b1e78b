"""The service fuzzed from its own description: no 500, and every answer is one that the description names."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as fuzzing

from quizzes.service.app import create_app
from tests.quizzes.service.small import ADA

pytest.importorskip("schemathesis", reason="schemathesis comes with the extra test")

import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


LESSON, ANSWERS, HINTS = "/lessons/{lesson}", "/lessons/{lesson}/answers", "/lessons/{lesson}/hints"


@pytest.mark.parametrize(
    ("path", "method", "mode"),
    [
        ("/health", "GET", "positive"),  # takes nothing, so that nothing can be wrong
        (LESSON, "GET", "positive"),
        (LESSON, "GET", "negative"),
        (ANSWERS, "POST", "positive"),
        (ANSWERS, "POST", "negative"),
        (HINTS, "POST", "positive"),
        (HINTS, "POST", "negative"),
    ],
)
def test_no_request_of_its_description_fails(settings, path, method, mode):
    operation = schemathesis.openapi.from_asgi("/openapi.json", create_app(settings))[path][method]
    statuses = set()

    @fuzzing(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
    def one(case):
        headers = {"Authorization": f"Bearer {ADA}"}
        reply = case.call(headers=headers)
        case.validate_response(reply, checks=CHECKS, headers=headers)
        statuses.add(reply.status_code)
        if "lesson" in case.path_parameters:
            # A lesson that exists is not found by chance.
            case.path_parameters["lesson"] = "01"
            if isinstance(case.body, dict) and isinstance(case.body.get("question"), str):
                case.body["question"] = "q3"
                if "hint" in case.body:
                    case.body |= {"hint": 1, "cost": 0.25, "attempt": 1}
                    case.body.pop("edition", None)
            reply = case.call(headers=headers)
            case.validate_response(reply, checks=CHECKS, headers=headers)
            statuses.add(reply.status_code)

    one()
    assert mode == "negative" or 200 in statuses, statuses


def test_the_description_names_every_route_and_no_key(client):
    text = client.get("/openapi.json").text
    assert set(client.get("/openapi.json").json()["paths"]) == {"/health", LESSON, ANSWERS, HINTS}
    assert "CANARY" not in text and "g01" not in text
