"""The check of an exercise names what is wrong, with which input, and which idea is behind it."""

import math

import numpy as np
import pytest
import torch

from course import contract
from course.contract import Beside, Case, Contract, Idea, same

SQUARE = Contract(
    "square",
    [
        Case((2.0,), 4.0, "Multiply the number by itself."),
        Case((3.0,), 9.0, "Three times three."),
        Case((0.1,), 0.01, "Also below one."),
        Case(("x",), TypeError, "Text has no square."),
    ],
    [Idea("You doubled it.", lambda x: 2 * x)],
)


def test_any_right_implementation_passes(capsys):
    for right in (
        lambda x: x * x,
        lambda x: x**2,
        lambda x: np.float64(x) * x if x != "x" else x * x,
        lambda x: torch.tensor(x) ** 2,
    ):
        assert SQUARE.check(right)
        assert capsys.readouterr().out == "Right, for all 4 cases.\n"


def no_text(x):
    if isinstance(x, str):
        raise TypeError("no text")
    return 2 * x


@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda x: None, "Not begun. Write square"),
        (lambda x: x + 2 if x != "x" else 1 / 0, "square(3) should give 9; yours gives 5.\nThree times three."),
        (no_text, "You doubled it."),
        (lambda x: x * x if x != "x" else 0, "square('x') should raise TypeError; yours gives 0.\nText has no square."),
        (lambda x: [x * x], "yours gives [4.0]."),
        (lambda x: math.nan, "yours gives nan."),
        (lambda x: True, "yours gives True."),
        (lambda: 4, "yours stops with TypeError: "),
        (lambda x: str(x * x), "yours gives '4.0'."),
    ],
)
def test_what_is_wrong_is_said_with_its_input(wrong, said, capsys):
    assert SQUARE.check(wrong) is False
    assert said in capsys.readouterr().out


def test_ctrl_c_and_exit_go_through():
    def leaves(x):
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        SQUARE.check(leaves)


@pytest.mark.parametrize(
    "mine, expected, alike",
    [
        (1, 1.0, True), (1.0 + 1e-9, 1.0, True), (1.001, 1.0, False), (math.inf, math.inf, True), (math.nan, math.nan, False),
        (True, 1, False), (1, True, False), ("1", 1, False), ([1, 2.0], (1, 2), True), ([1], [1, 2], False),
        (np.array([1, 2]), [1, 2], False), ({"a": 1}, {"a": 1}, True), (None, 0, False), (0, 0.0, True),
    ],
)  # fmt: skip
def test_what_counts_as_the_same(mine, expected, alike):
    assert same(mine, expected) is alike


def test_the_picture_shows_both_numbers_of_each_case(monkeypatch):
    import IPython.display

    shown = []
    monkeypatch.setattr(contract, "shell", lambda: "a notebook")
    monkeypatch.setattr(IPython.display, "display", shown.append)
    assert not SQUARE.check(lambda x: -x)
    (figure,) = shown
    assert isinstance(figure, Beside) and [row[:3] for row in figure.rows] == [
        ("square(2)", 4.0, -2.0),
        ("square(3)", 9.0, -3.0),
        ("square(0.1)", 0.01, -0.1),
    ]
    assert "<svg" in figure.svg() and "3 of 3 numbers are not as expected" in str(figure)
    assert SQUARE.check(lambda x: x * x) and len(shown) == 1, "nothing is drawn for what is right"
