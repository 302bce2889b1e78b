"""A service over a small bank, and two learners."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="FastAPI comes with the extra service")

from fastapi.testclient import TestClient

from quizzes.service.app import create_app
from quizzes.service.identity import Tokens
from quizzes.service.settings import Settings
from tests.quizzes.service.small import ADA, BANK, BOB, KEY, Learner


@pytest.fixture
def bank(tmp_path):
    folder = tmp_path / "keys"
    folder.mkdir()
    (folder / "01_small.yaml").write_text(BANK, encoding="utf-8")
    return folder


@pytest.fixture
def settings(tmp_path, bank):
    return Settings(
        private_key=KEY,
        people=Tokens({ADA: "ada", BOB: "bob"}),
        db_url=f"sqlite:///{tmp_path / 'answers.db'}",
        keys=bank,
        burst=10_000,
    )


@pytest.fixture
def client(settings):
    # A fault of the service shows as 500 and not as an exception in the test.
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def ada(client):
    return Learner(client)


@pytest.fixture
def bob(client):
    return Learner(client, BOB)
