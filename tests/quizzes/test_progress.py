"""Progress of the course: two processes at once, damage, export and import; what was missed comes back."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from quizzes import Quiz, quiz, repetition
from quizzes.answers import MIME, Record, read_records
from quizzes.calibration import brier
from quizzes.progress import Progress, ProgressError

WRITER = """
import sys
from quizzes.progress import Progress
progress = Progress(sys.argv[1])
for number in range(20):
    progress.note("01", f"{sys.argv[2]}-{number}", {"answer": "a", "share": 0.0, "at": "2026-01-01"})
"""


def entry(answer="a", share=0.0, at="2026-01-01"):
    return {"answer": answer, "share": share, "at": at}


def test_two_processes_at_once_lose_nothing(tmp_path):
    path = tmp_path / "p.json"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in "ab"]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    assert set(Progress(path).read()["answers"]) == {f"{name}-{number}" for name in "ab" for number in range(20)}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1, "answers": {"x": 3}, "cards": {}}', "[" * 100_000])
def test_a_damaged_file_is_kept_aside_and_said(tmp_path, text):
    path = tmp_path / "p.json"
    path.write_text(text)
    progress = Progress(path)
    progress.note("01", "x", entry())
    (aside,) = tmp_path.glob("p.json.damaged-*")
    assert aside.read_text() == text and str(aside) in progress.notes[0] and "x" in progress.read()["answers"]


def test_a_later_version_is_left_alone(tmp_path):
    path = tmp_path / "p.json"
    path.write_text('{"version": 9}')
    with pytest.raises(ProgressError, match="later version"):
        Progress(path).note("01", "x", entry())
    assert path.read_text() == '{"version": 9}'


def test_export_and_import_keep_the_newer_answer_and_say_what_differs(tmp_path):
    ours, theirs = Progress(tmp_path / "a.json"), Progress(tmp_path / "b.json")
    ours.note("01", "x", entry("a", at="2026-01-02"))
    theirs.note("01", "x", entry("b", at="2026-01-01"))
    theirs.note("01", "y", entry("c"))
    theirs.export(tmp_path / "out.json")
    assert ours.take_in(tmp_path / "out.json") == ["x"]
    assert {name: held["answer"] for name, held in ours.read()["answers"].items()} == {"x": "a", "y": "c"}
    with pytest.raises(ProgressError, match="new file"):
        theirs.export(tmp_path / "out.json")


def test_what_was_missed_comes_back_and_what_was_right_does_not():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert repetition.after(None, 1.0, 0, now) is None
    card = repetition.after(None, 0.0, 0, now)
    assert repetition.due({"x": card}, now) == [] and repetition.due({"x": card}, now + timedelta(days=1)) == ["x"]
    later = now + timedelta(days=1)
    for _ in range(3):
        card = repetition.after(card, 1.0, 0, later)
        due = datetime.fromisoformat(card["due"])
        assert due > later
        later = due
    assert due - now > timedelta(days=2) and repetition.due({"x": {"due": 3}}, now) == ["x"]


def test_the_brier_score_is_the_mean_square():
    assert brier([{"confidence": 90, "share": 1.0}, {"confidence": 60, "share": 0.0}, {"share": 1.0}]) == pytest.approx(0.185)
    assert brier([]) is None


def test_confidence_hints_and_progress_go_with_the_answer(monkeypatch, capsys):
    monkeypatch.setattr(quiz, "_open", {})
    practice = Quiz("01")
    question = practice.bank["q1"]
    hinted = question.model_copy(update={"hints": ("look at the dtype",)})
    practice.bank = practice.bank.model_copy(update={"questions": (hinted, *practice.bank.questions[1:])})
    assert "25%" in practice.hint("q1") and "Not noted" in practice.sure("q1", 101)
    practice.sure("q1", 90)
    practice.answers["q1"] = "d"
    held = practice.record.answers[question.id]
    assert (held["share"], held["hints"], held["confidence"], held["attempt"]) == (0.75, 1, 90, 1)
    assert practice.progress.read()["answers"][question.id]["confidence"] == 90
    assert "Brier score 0.01" in practice.calibration(whole_course=True)


def test_version_1_is_read_and_damage_is_said(tmp_path):
    path = tmp_path / "a.ipynb"
    good = {"version": 1, "lesson": "01", "answers": {"x": entry(), "y": entry(share=float("nan")), "z": entry(share=True)}}
    contents = [good, '{"version": 2, "les', {"version": 7, "lesson": "01", "answers": {}}]
    outputs = [{"output_type": "display_data", "data": {MIME: content}, "metadata": {}} for content in contents]
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "outputs": outputs}]}))
    notes = []
    (record,) = read_records(path, "01", notes)
    assert record == Record("01", {"x": entry()}) and record.to_json()["version"] == 2
    assert "y, z" in notes[0] and "cut off" in notes[1] and "version 7" in notes[2]
