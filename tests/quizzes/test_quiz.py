"""The practice quiz: as text, as widgets, and its answers in a notebook that is saved and opened again."""

import json

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook, new_output

from quizzes import Quiz, quiz
from quizzes.answers import MIME, Record, as_html, merge, notebook_path, read_records
from quizzes.widgets import Board


@pytest.fixture
def fresh(monkeypatch):
    monkeypatch.setattr(quiz, "_open", {})
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    return Quiz


def test_as_text_it_answers_at_once(fresh, capsys):
    answers = fresh("01").answers
    answers["q1"] = "b"
    assert "Not so (b)" in capsys.readouterr().out
    answers["q1"] = "d"
    answers["q2"] = ["a", "b", "c"]
    answers["q3"] = "30 GB"
    assert capsys.readouterr().out.count("✔ Right.\n") == 3
    assert dict(answers) == {"q1": "d", "q2": ["a", "b", "c"], "q3": "30 GB"}
    assert fresh("01").score == (3.0, 9.0) and fresh("01").answers is answers
    assert "You answered d. Right (d)" in str(fresh("01"))


def test_what_is_not_understood_is_not_recorded(fresh, capsys):
    answers = fresh("01", "fr").answers
    answers["q3"] = "30 GB"
    capsys.readouterr()
    answers["q3"] = "1,234 GB"
    assert "can be read in two ways" in capsys.readouterr().out and answers["q3"] == "30 GB"
    answers["q99"] = "a"
    assert "no question 'q99'; there are q1, q2, q3" in capsys.readouterr().out and len(answers) == 1
    with pytest.raises(KeyError, match="no question 'q99'; there are q1, q2, q3"):
        answers["q99"]


def test_widgets_and_text_are_one_quiz(fresh, capsys):
    practice = fresh("01")
    board = practice._board = Board(practice)
    one, several, number = (board.cards[name] for name in ("q1", "q2", "q3"))
    one.controls[0].value = True
    one.controls[1].value = True
    assert one.given() == ["b"], "the second choice takes the place of the first"
    one.button.click()
    assert "Not yet" in one.verdict.value and "float32 master" in one.verdict.value and practice.answers["q1"] == "b"
    several.button.click()
    assert "Not counted" in several.verdict.value
    for control in several.controls[:3]:
        control.value = True
    several.button.click()
    assert "Right" in several.verdict.value
    practice.answers["q3"] = "28 GiB"
    assert number.controls[0].value == "28 GiB" and "Right" in number.verdict.value
    assert [box.value for box in Board(practice).cards["q1"].controls] == [False, True, False, False]


def test_every_control_has_words(fresh):
    for card in Board(fresh("01")).cards.values():
        assert card.button.description and card.button.tooltip
        for control in card.controls:
            assert control.description or all(label.strip() for label, _ in control.options)


def notebook(*sources):
    return new_notebook(cells=[new_code_cell(source) for source in sources])


def run(path, monkeypatch):
    """Run a notebook file as a front end does: outputs cleared, a fresh kernel, saved at the end."""
    held = nbformat.read(path, as_version=4)
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    NotebookClient(held, timeout=120, kernel_name="python3").execute()
    nbformat.write(held, path)
    return held


def shown(held):
    return [o.data for cell in held.cells for o in cell.get("outputs", []) if "data" in o and MIME in o.data]


def test_answers_survive_save_and_reopen_with_and_without_a_kernel(tmp_path, monkeypatch):
    path = tmp_path / "lesson.ipynb"
    show = "from quizzes import Quiz\nquiz = Quiz('01')\nquiz.show()"
    nbformat.write(notebook(show, "quiz.answers['q1'] = 'd'\nquiz.answers['q3'] = '48 GB'"), path)
    first = run(path, monkeypatch)
    (record,) = shown(first)
    assert {e["answer"] for e in record[MIME]["answers"].values()} == {"d", "48 GB"}
    assert "<td>48 GB</td>" in record["text/html"] and "whole training" in record["text/plain"]
    # opened again, in a fresh kernel, by somebody who runs only the quiz's own cell
    nbformat.write(nbformat.from_dict({**first, "cells": first.cells[:1]}), path)
    second = run(path, monkeypatch)
    (again,) = shown(second)
    assert again[MIME]["answers"] == record[MIME]["answers"]
    nbformat.write(nbformat.from_dict({**second, "cells": [*second.cells, new_code_cell("print(dict(quiz.answers))")]}), path)
    third = run(path, monkeypatch)
    assert third.cells[-1].outputs[0].text == "{'q1': 'd', 'q3': '48 GB'}\n"


def saved(path, *records):
    held = notebook(*["1"] * len(records))
    for cell, record in zip(held.cells, records, strict=True):
        cell.outputs = [new_output("display_data", data={MIME: record, "text/plain": ""})]
    path.write_text(json.dumps(held))
    return path


def test_two_copies_that_differ_are_told_and_the_newer_one_is_taken(tmp_path, fresh, monkeypatch):
    def record(answer, at):
        return {"version": 1, "lesson": "01", "answers": {"l01-sixteen": {"answer": answer, "share": 0.0, "at": at}}}

    path = saved(tmp_path / "a.ipynb", record("a", "2026-02-01"), record("b", "2026-01-01"))
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    practice = fresh("01")
    assert practice.answers["q1"] == "a"
    assert "Two copies of your answer to q1 differ; both are kept:\n   1) a, 2026-02-01" in str(practice)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"cells": 3}',
        '{"cells": [3, {"outputs": [4, {"data": 5}]}]}',
        "[" * 100_000,
        '{"cells": [{"outputs": null}]}',
    ],
)
def test_a_broken_notebook_has_no_record_and_breaks_nothing(tmp_path, text):
    path = tmp_path / "broken.ipynb"
    path.write_text(text)
    assert read_records(path, "01") == [] == read_records(tmp_path / "none.ipynb", "01")


def test_entries_of_another_shape_are_left_out(tmp_path):
    path = saved(
        tmp_path / "a.ipynb", {"version": 1, "lesson": "01", "answers": {"x": 3, "y": {"answer": "a"}}}, {"version": 2}
    )
    (record,) = read_records(path, "01")
    assert record.answers == {} and merge("01", [record])[0].answers == {}


def test_answers_are_shown_as_text_not_as_markup():
    assert "<script>" not in as_html(Record("01"), [("q3", "p", "<script>", "v")])


def test_no_notebook_is_known_outside_one(monkeypatch, tmp_path):
    monkeypatch.setenv("JPY_SESSION_NAME", "console-1")
    assert notebook_path() is None
