"""What is graded: exact comparison, and the keys of the real exercises against independent oracles."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from quizzes.exercises.compare import difference
from quizzes.exercises.exercise import Exercise, ExerciseError, _read, exercises, with_keys
from quizzes.exercises.grade import mark
from quizzes.exercises.sandbox import Outcome, Reply
from quizzes.exercises.submission import is_student

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_a_value_is_itself_and_nothing_else(value):
    assert difference(value, value) is None
    assert difference([value], value) is not None
    assert difference(value, [value]) is not None


@pytest.mark.parametrize(
    ("got", "expected"),
    [(True, 1), (1, True), (1, 1.0), (1.0, 1), (None, 0), ("1", 1), ([1], [1, 2]), ({"a": 1}, {"b": 1}), ([[0.0]], [[0]])],
)
def test_types_and_sizes_are_exact(got, expected):
    assert difference(got, expected, relative=1.0, absolute=1.0) is not None


def test_nan_is_never_right_and_a_tolerance_is_a_bound():
    assert difference(math.nan, math.nan, 1.0, 1.0) is not None
    assert difference(math.inf, 1.0, 0.5, 1.0) is not None
    assert difference(100.0, 101.0, relative=0.01) is None
    assert difference(100.0, 101.02, relative=0.01) is not None


def _bytes(parameters, weight, moment, master):
    return sum([weight, weight, moment, moment] + [4] * master) * parameters


def _adamw(weights, gradients, m, v, step, lr, beta1, beta2, eps, decay):
    """torch's own, in float64."""
    wide = {"dtype": torch.float64}
    parameter = torch.nn.Parameter(torch.tensor(weights, **wide))
    optimizer = torch.optim.AdamW([parameter], lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=decay)
    state = {"step": torch.tensor(step - 1.0), "exp_avg": torch.tensor(m, **wide), "exp_avg_sq": torch.tensor(v, **wide)}
    optimizer.state[parameter] = state
    parameter.grad = torch.tensor(gradients, **wide)
    optimizer.step()
    return [parameter.tolist(), state["exp_avg"].tolist(), state["exp_avg_sq"].tolist()]


def _order(tiles, ahead):
    """By sorting: a tile is read in the turn of the tile that is `ahead` before it, and writes follow updates."""
    events = [(max(0, tile - ahead), 0, tile, f"read {tile}") for tile in range(tiles)]
    events += [
        (tile, 1 + kind, tile, f"{name} {tile}") for tile in range(tiles) for kind, name in enumerate(("update", "write"))
    ]
    return [event[3] for event in sorted(events)]


ORACLES = {"training-bytes": _bytes, "adamw-step": _adamw, "pipeline-order": _order}


@pytest.mark.parametrize("exercise", [one for one in with_keys() if one.id in ORACLES], ids=lambda one: one.id)
def test_every_case_agrees_with_an_oracle(exercise):
    assert len(exercise.hidden) >= 3
    for case in exercise.all_cases:
        assert difference(ORACLES[exercise.id](*case.arguments), case.expected, exercise.relative, exercise.absolute) is None


def test_a_share_of_the_cases_earns_that_share_and_a_crash_keeps_what_was_earned():
    exercise = with_keys()[0]
    done = Outcome("none", [Reply(case.expected) for case in exercise.all_cases[:2]], "the process ended in the middle: 1")
    got = mark(exercise, done)
    assert got.score == pytest.approx(2.0 * 2 / 6) and got.notes == ["case 3: the process ended in the middle: 1"]


def test_of_a_hidden_case_only_the_hint_is_told():
    exercise = with_keys()[0]
    replies = [Reply(case.expected) for case in exercise.cases] + [Reply(error="ValueError: 7000000000")] * 3
    assert mark(exercise, Outcome("none", replies)).notes == [f"a hidden case: {case.hint}" for case in exercise.hidden]


def test_a_wrong_file_is_named_with_its_field(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("id: X\n")
    with pytest.raises(ExerciseError, match=r"x\.yaml: id: an id is small letters"):
        _read(path, Exercise)
    with pytest.raises(ExerciseError, match=r"training-bytes\.yaml is missing"):
        with_keys(keys=tmp_path)
    assert all(not one.hidden for one in exercises())


@pytest.mark.parametrize("name", ["..", "a/b", "a/../b", "", ".x", "x.", "a\n", "é", "a\x00", "<b>", "a" * 101, " a"])
def test_no_path_hides_in_a_student(name):
    assert not is_student(name)


def test_usual_ids_are_students():
    assert all(map(is_student, ["mina", "a", "zoe.k@uni-x.example", "2024_007", "copied cell"]))
