"""Copies of an answer: history is no conflict, a conflict keeps both until the learner chooses."""

import itertools
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_notebook, new_output

from quizzes import Quiz, quiz
from quizzes.answers import MIME, Record, merge, read_records
from quizzes.copies import chosen, moment, past, standing
from quizzes.progress import Progress

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def entry(answer, day, past=()):
    return {"answer": answer, "share": 0.0, "at": f"2026-01-{day:02d}T00:00:00+00:00"} | ({"past": list(past)} if past else {})


def notebook(path, *records):
    cells = [new_code_cell("1", outputs=[new_output("display_data", data={MIME: record})]) for record in records]
    path.write_text(json.dumps(new_notebook(cells=cells)))
    return path


def opened(monkeypatch, path):
    monkeypatch.setattr(quiz, "_open", {})
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    return Quiz("01")


def test_what_was_answered_again_is_history_and_no_conflict():
    record = Record("01")
    record.put("x", "a", 0.0)
    old = Record("01", {"x": dict(record.answers["x"])})
    record.put("x", "b", 0.0)
    for copies in itertools.permutations([old, record]):
        merged, differ = merge("01", copies)
        assert merged.answers["x"]["answer"] == "b" and differ == [] and merged.to_json()["version"] == 2


def test_two_that_know_nothing_of_each_other_both_stay_and_are_said():
    merged, differ = merge("01", [Record("01", {"x": entry("a", 1)}), Record("01", {"x": entry("b", 2)})])
    assert differ == ["x"] and [held["answer"] for held in merged.held("x")] == ["b", "a"]
    assert merged.to_json()["version"] == 3, "a program that knows of one answer only must not read this"


TIMES = [entry("", day)["at"] for day in range(10, 19)]
answers = st.integers(0, 8).flatmap(
    lambda day: st.builds(
        entry, st.sampled_from("abc"), st.just(day + 10), st.lists(st.sampled_from(TIMES[:day])) if day else st.just([])
    )
)


@given(st.lists(answers, min_size=1, max_size=5), st.randoms())
def test_the_order_of_copies_does_not_matter_and_none_is_dropped_in_silence(copies, random):
    left = standing(copies)
    mixed = list(copies)
    random.shuffle(mixed)
    assert left and standing(mixed) == left and standing(left) == left
    replaced = {at for copy in copies for at in copy.get("past", ())}
    shown = {held["answer"] for held in left}
    assert all(copy["answer"] in shown for copy in copies if copy["at"] not in replaced)


@given(st.lists(answers, min_size=2, max_size=5))
def test_what_was_chosen_replaces_every_copy(copies):
    (only,) = standing([chosen(copies[-1], copies, NOW), *copies])
    assert only["answer"] == copies[-1]["answer"] and moment(only) == NOW and set(past(copies)) <= set(only["past"])


def test_a_conflict_of_notebook_and_progress_is_kept_through_save_and_reopen(tmp_path, monkeypatch):
    Progress().note("01", "l01-sixteen", entry("b", 3))
    path = notebook(tmp_path / "n.ipynb", {"version": 2, "lesson": "01", "answers": {"l01-sixteen": entry("d", 2)}})
    practice = opened(monkeypatch, path)
    (said,) = practice.conflicts()
    assert "1) b, 2026-01-03" in said and "2) d, 2026-01-02" in said
    assert "in this notebook" in said and str(Progress().path) in said and said in str(practice)
    again = opened(monkeypatch, notebook(path, practice.record.to_json()))
    assert [held["answer"] for held in again.record.held("l01-sixteen")] == ["b", "d"], "saving chose nothing"
    assert "number from 1 to 2" in again.choose("q1", 3) and "q1 is d now" in again.choose("q1", 2)
    assert again.conflicts() == [] and again.answers["q1"] == "d"
    assert [(e["answer"], e["share"]) for e in Progress().record("01").held("l01-sixteen")] == [("d", 0.0)]
    # the old copy, found again, brings nothing back
    both = notebook(path, practice.record.to_json(), again.record.to_json())
    assert opened(monkeypatch, both).conflicts() == []


def test_an_answer_by_another_notebook_meanwhile_is_kept_beside_this_one(monkeypatch, capsys):
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    monkeypatch.setattr(quiz, "_open", {})
    practice = Quiz("01")
    Progress().note("01", "l01-sixteen", entry("a", 5))
    practice.answers["q1"] = "d"
    assert "differ; both are kept" in capsys.readouterr().out
    assert [held["answer"] for held in Progress().record("01").held("l01-sixteen")] == ["d", "a"]
    practice.answers["q1"] = "d"  # answered again, with both before one's eyes: that settles it
    assert practice.conflicts() == [] and len(Progress().record("01").held("l01-sixteen")) == 1


def test_a_notebook_that_lost_its_outputs_has_its_answers_from_the_progress_file(tmp_path, monkeypatch):
    practice = opened(monkeypatch, notebook(tmp_path / "n.ipynb"))
    practice.answer("q1", "d")
    assert opened(monkeypatch, notebook(tmp_path / "other.ipynb")).answers["q1"] == "d"


@pytest.mark.parametrize("others", [3, {"x": 3}, {"x": [{"answer": "a"}]}])
def test_damaged_second_answers_are_said_and_the_first_is_kept(tmp_path, others):
    notes = []
    content = {"version": 3, "lesson": "01", "answers": {"x": entry("a", 1)}, "others": others}
    (record,) = read_records(notebook(tmp_path / "n.ipynb", content), "01", notes)
    assert record.answers["x"]["answer"] == "a" and record.others == {} and (notes or others == 3)


def test_saved_by_another_editor_without_metadata_and_ids_the_record_is_found(tmp_path, monkeypatch):
    practice = opened(monkeypatch, notebook(tmp_path / "n.ipynb"))
    practice.answer("q1", "d")
    text = json.dumps(practice.record.to_json(), indent=1)
    outputs = [
        {"output_type": "display_data", "metadata": {}, "data": {MIME: text.splitlines(keepends=True)}},
        {"output_type": "stream", "name": "stdout", "text": "x"},
    ]
    cells = [{"cell_type": "code", "metadata": {}, "execution_count": None, "source": "1", "outputs": outputs}]
    path = tmp_path / "saved.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 2}))
    monkeypatch.setenv("OFFLOAD_LAB_PROGRESS", str(tmp_path / "none.json"))
    assert opened(monkeypatch, path).answers["q1"] == "d" and opened(monkeypatch, path).conflicts() == []


def test_a_share_written_into_the_record_earns_nothing_and_is_said(tmp_path, monkeypatch):
    edited = entry("a", 1) | {"share": 1.0}
    path = notebook(tmp_path / "n.ipynb", {"version": 2, "lesson": "01", "answers": {"l01-sixteen": edited}})
    practice = opened(monkeypatch, path)
    assert practice.score[0] == 0 and "q1: the record says 100% of the points, the answer earns 0%" in str(practice)


def test_a_number_is_read_as_where_it_was_typed(tmp_path, monkeypatch):
    monkeypatch.setenv("OFFLOAD_LAB_LOCALE", "en")
    practice = opened(monkeypatch, notebook(tmp_path / "n.ipynb"))
    assert practice.locale == "en" and practice.answer("q3", "30,000 MB").correct
    monkeypatch.setenv("OFFLOAD_LAB_LOCALE", "fr")  # where 30,000 can be read in two ways
    again = opened(monkeypatch, notebook(tmp_path / "n.ipynb", practice.record.to_json()))
    assert again.locale == "fr" and again.score[0] == 1.0 and not again.notes
