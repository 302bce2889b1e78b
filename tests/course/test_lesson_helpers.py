"""What lessons share: predictions."""

import ast
import json
import re

import IPython.display
import pytest

from course import prediction
from quizzes.answers import MIME
from quizzes.units import EXAMPLES


@pytest.fixture
def fresh_kernel(monkeypatch, tmp_path):
    """No prediction is held, and the notebook is `tmp_path/n.ipynb`; call it to have another kernel."""
    monkeypatch.setattr(prediction, "notebook_path", lambda: tmp_path / "n.ipynb")

    def start():
        monkeypatch.setattr(prediction, "_made", {})

    start()
    return start


def ask():
    return prediction.Prediction("sixteen", "How many?")


def test_a_prediction_is_said_beside_the_measurement(fresh_kernel, capsys):
    asked = ask()
    asked.show()
    assert capsys.readouterr().out == "How many? Answer with: prediction.value = 12\n"
    asked.value = 12
    asked.compare(16)
    assert capsys.readouterr().out == "Noted: 12 bytes.\nYou predicted 12 bytes. Measured: 16.00 bytes.\n"


def test_skipping_is_allowed_and_recorded(fresh_kernel, capsys):
    asked = ask()
    assert asked._record.answers == {}
    asked.compare(16)
    assert capsys.readouterr().out == "You made no prediction. Measured: 16.00 bytes.\n"
    assert asked._record.answers["sixteen"]["answer"] == {"value": None, "confidence": None}


@pytest.mark.parametrize(
    "given", ["twelve", "nan", "inf", "-4", "0", "16 GB", "1e400", "1,234", True, [12], float("nan"), 1001]
)
def test_what_is_no_prediction_changes_nothing(given, fresh_kernel, capsys):
    asked = ask()
    asked.value = 12
    asked.value = given
    assert asked.value == 12
    assert "Not noted: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "given, number", [("12", 12), (" 7,5 ", 7.5), ("16 bytes", 16), (4.25, 4.25), (None, None), ("", None)]
)
def test_a_prediction_is_typed_in_many_ways(given, number, fresh_kernel):
    asked = ask()
    asked.value = 3
    asked.value = given
    assert asked.value == number


def save(record, path):
    output = {"output_type": "display_data", "metadata": {}, "data": {MIME: record.to_json()}}
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "outputs": [output]}]}))


def test_a_prediction_outlives_its_cell_and_its_kernel(fresh_kernel, tmp_path):
    first = ask()
    first.value = 12
    assert ask().value == 12, "the cell was run again"
    save(ask()._record, tmp_path / "n.ipynb")
    fresh_kernel()
    again = ask()
    assert again.value == 12, "another kernel, the notebook as saved"
    again.value = None
    assert ask().value is None, "what was taken back does not come back from the file"


@pytest.mark.parametrize("answer", [None, 5, "x", {"value": "12"}, {"value": -1}, {"value": 1e12}, {"value": [1]}])
def test_a_file_that_holds_something_else_is_no_prediction(answer, fresh_kernel, tmp_path, capsys):
    asked = ask()
    asked._record.put("sixteen", answer, 0)
    save(asked._record, tmp_path / "n.ipynb")
    fresh_kernel()
    assert ask().value is None and ask().confidence is None
    ask().compare(16)
    assert "You made no prediction" in capsys.readouterr().out


def test_the_box_notes_what_is_typed(fresh_kernel, monkeypatch, capsys):
    shown = []
    monkeypatch.setattr(prediction, "shell", lambda: "a notebook")
    monkeypatch.setattr(IPython.display, "display", lambda thing, **_: shown.append(thing))
    monkeypatch.setattr(IPython.display, "update_display", lambda thing, **_: shown.append(thing))
    asked = ask()
    asked.show()
    question, number, sure, said = shown[0].children
    assert "How many?" in question.value and shown[1]["text/plain"] == "Your prediction: none yet"
    number.value = "12"
    sure.value = 60
    assert asked.value == 12 and asked.confidence == 60
    assert "Noted: 12 bytes, 60 % sure." in said.value
    assert shown[-1]["text/plain"] == "Your prediction: 12 bytes, 60 % sure"
    number.value = "<b>"
    assert asked.value == 12 and "Not noted: " in said.value and "<b>" not in said.value
    ask().show()
    again = next(thing for thing in reversed(shown) if not isinstance(thing, dict))
    assert again.children[1].value == "12" and again.children[2].value == 60


@pytest.mark.parametrize(
    "unit, given, number, shown",
    [
        ("seconds", "20 ms", 0.02, "20 ms"),
        ("seconds", 2.5, 2.5, "2.5 s"),
        ("bytes_per_second", "3.5 GB/s", 3.5e9, "3.5 GB/s"),
        ("percent", "40 %", 40, "40 %"),
        ("ratio", "1.5 x", 1.5, "1.5 ×"),
        ("dollars", "$12", 12, "$12"),
        ("count", "1200", 1200, "1200"),
        ("bytes", "14 GB", 14e9, "14 GB"),
    ],
)
def test_a_prediction_is_made_in_the_unit_of_its_question(unit, given, number, shown, fresh_kernel, capsys):
    asked = prediction.Prediction(unit, "How much?", most=1e12, unit=unit, called="hidden")
    asked.show()
    assert "Answer with: hidden.value = " in capsys.readouterr().out
    asked.value = given
    assert asked.value == number and f"Noted: {shown}." in capsys.readouterr().out
    asked.compare(number)
    assert capsys.readouterr().out.startswith(f"You predicted {shown}. Measured: ")


@pytest.mark.parametrize("unit", sorted(EXAMPLES))
@pytest.mark.parametrize("most", [0.5, 8, 1e13])
def test_the_example_of_an_answer_is_one_that_is_taken(unit, most, fresh_kernel, capsys):
    asked = prediction.Prediction("example", "How much?", most=most, unit=unit)
    asked.show()
    typed = re.search(r"prediction\.value = (.+)", capsys.readouterr().out)[1]
    asked.value = ast.literal_eval(typed)
    assert asked.value is not None and asked.value <= most, capsys.readouterr().out


def test_a_unit_of_another_kind_is_not_taken(fresh_kernel, capsys):
    asked = prediction.Prediction("time", "How long?", unit="seconds")
    asked.value = "3 GB"
    assert asked.value is None and "Not noted: " in capsys.readouterr().out
    with pytest.raises(ValueError, match="parsecs"):
        prediction.Prediction("far", "How far?", unit="parsecs")


def test_the_example_is_one_that_would_be_taken(fresh_kernel, capsys):
    asked = prediction.Prediction("few", "How many of 400?", most=400, unit="count", called="few")
    asked.show()
    (example,) = capsys.readouterr().out.split("few.value = ")[1:]
    asked.value = example.strip().strip('"')
    assert asked.value is not None
