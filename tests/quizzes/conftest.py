"""Tests keep their progress in a folder of their own, not in this user's file."""

import pytest

from tests.quizzes.postgres import postgresql  # noqa: F401  (a fixture)


@pytest.fixture(autouse=True)
def own_progress(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("OFFLOAD_LAB_PROGRESS", str(tmp_path_factory.mktemp("progress") / "progress.json"))
