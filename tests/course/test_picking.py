"""A pick is taken, answered, kept, and refused where it is none."""

import json

import IPython.display
import pytest

from course import picking
from course.picking import Option, Pick, lines
from offload_lab.races import RACES
from quizzes.answers import MIME

OPTIONS = {"a": Option("first", "Look again."), "b": Option("second", "It is.", right=True)}


@pytest.fixture
def fresh_kernel(monkeypatch, tmp_path):
    """No pick is held, and the notebook is `tmp_path/n.ipynb`; call it to have another kernel."""
    monkeypatch.setattr(picking, "notebook_path", lambda: tmp_path / "n.ipynb")

    def start():
        monkeypatch.setattr(picking, "_made", {})

    start()
    return start


def ask():
    return Pick("07-one", "Which?", OPTIONS, called="one")


def save(record, path):
    output = {"output_type": "display_data", "metadata": {}, "data": {MIME: record.to_json()}}
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "outputs": [output]}]}))


def test_a_pick_is_answered_at_once_and_the_last_one_counts(fresh_kernel, capsys):
    asked = ask()
    assert asked.choice is None and not asked.right
    asked.choice = "a"
    assert capsys.readouterr().out == "Not there. Look again.\n" and asked.choice == "a" and not asked.right
    asked.choice = " B "
    assert capsys.readouterr().out == "Yes. It is.\n" and asked.choice == "b" and asked.right
    entry = asked._record.answers["07-one"]
    assert entry["share"] == 1.0 and len(entry["past"]) == 1


@pytest.mark.parametrize("given", ["", "c", 3, None, True, ["a"], 1.0, "a" * 10_000, b"a"])
def test_what_is_no_option_changes_nothing(given, fresh_kernel, capsys):
    asked = ask()
    asked.choice = "b"
    asked.choice = given
    assert asked.choice == "b" and "is none of a, b" in capsys.readouterr().out


def test_without_a_notebook_it_says_how_to_answer(fresh_kernel, capsys):
    ask().show()
    assert capsys.readouterr().out == 'Which?\n\na  first\nb  second\n\nAnswer with: one.choice = "a"\n'


def test_a_pick_outlives_its_cell_and_its_kernel(fresh_kernel, tmp_path):
    ask().choice = "a"
    assert ask().choice == "a", "the cell was run again"
    save(ask()._record, tmp_path / "n.ipynb")
    fresh_kernel()
    assert ask().choice == "a", "another kernel, the notebook as saved"


@pytest.mark.parametrize("answer", [None, 5, "z", ["a"], {"a": 1}])
def test_a_file_that_holds_something_else_is_no_pick(answer, fresh_kernel, tmp_path):
    asked = ask()
    asked._record.put("07-one", answer, 0)
    save(asked._record, tmp_path / "n.ipynb")
    fresh_kernel()
    assert ask().choice is None and not ask().right


def test_a_notebook_that_is_damaged_holds_no_pick(fresh_kernel, tmp_path):
    (tmp_path / "n.ipynb").write_text("{")
    assert ask().choice is None


def test_the_box_takes_a_pick(fresh_kernel, monkeypatch, capsys):
    shown = []
    monkeypatch.setattr(picking, "shell", lambda: "a notebook")
    monkeypatch.setattr(IPython.display, "display", lambda thing, **_: shown.append(thing))
    monkeypatch.setattr(IPython.display, "update_display", lambda thing, **_: shown.append(thing))
    asked = ask()
    asked.show()
    box, said = shown[0].children
    assert [value for _label, value in box.options] == ["", "a", "b"] and box.value == ""
    box.value = "a"
    assert asked.choice == "a" and "Not there. Look again." in said.value
    assert shown[-1]["text/plain"] == "Your pick: a"
    box.value = ""
    assert asked.choice == "a"
    ask().show()
    again = next(thing for thing in reversed(shown) if not isinstance(thing, dict))
    assert again.children[0].value == "a"


def test_a_question_without_a_right_option_is_refused():
    with pytest.raises(ValueError, match="no right option"):
        Pick("x", "Which?", {"a": OPTIONS["a"]})


def test_lines_of_a_program_are_options(fresh_kernel):
    here = Option("", "Here.", right=True)
    options = lines(RACES[0].broken, {"bench.update": here}, "Elsewhere.")
    assert list(options) == ["1", "2", "3", "4", "5"]
    assert [name for name, option in options.items() if option.right] == ["4"]
    assert options["4"].text.strip() == "bench.update(partition, buffer=0)" and options["2"].reply == "Elsewhere."
    asked = Pick("07-line", "Which line?", options)
    asked.choice = 4
    assert asked.right
    for part in ("bench.", "not there"):
        with pytest.raises(ValueError, match="is not in one line of update_while_reading"):
            lines(RACES[0].broken, {part: here}, "")
