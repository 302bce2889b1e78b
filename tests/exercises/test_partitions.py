"""The exercises on partitions, caches and schedules: keys against oracles, right and wrong cells behind the walls."""

import itertools
import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from quizzes.canary import search
from quizzes.exercises.compare import difference
from quizzes.exercises.exercise import KEYS, Case, ExerciseError, Trap, exercises, with_keys
from quizzes.exercises.grade import judge
from quizzes.exercises.notebook import build
from quizzes.exercises.private import texts
from quizzes.exercises.rules import covers
from quizzes.exercises.sandbox import Limits, NoIsolation, isolation
from quizzes.question import misconceptions
from tests.exercises.solutions import RIGHT, WRONG

EXERCISES = {one.id: one for one in with_keys() if one.id in RIGHT}


@pytest.fixture(scope="module")
def level():
    try:
        return isolation()
    except NoIsolation as error:
        pytest.skip(str(error))


def call(source, function, arguments):
    space = {}
    exec(source, space)
    return space[function](*arguments)


# --- the keys ---------------------------------------------------------------------------------------------------------


def torch_step(master, gradients, m, v, step, lr, beta1, beta2, eps, decay):
    """torch's own AdamW in float32, and torch's own rounding to bfloat16."""
    parameter = torch.nn.Parameter(torch.tensor(master))
    optimizer = torch.optim.AdamW([parameter], lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=decay)
    state = {"step": torch.tensor(step - 1.0), "exp_avg": torch.tensor(m), "exp_avg_sq": torch.tensor(v)}
    optimizer.state[parameter] = state
    parameter.grad = torch.tensor(gradients)
    optimizer.step()
    bits = [bits & 0xFFFF for bits in parameter.detach().bfloat16().view(torch.int16).tolist()]
    return [bits, parameter.tolist(), state["exp_avg"].tolist(), state["exp_avg_sq"].tolist()]


def every_cache(order, capacity):
    """LRU by a list; the best by all ways to give one up, with branches that cost more cut off."""
    held, lru = [], 0
    for part in order:
        if part not in held:
            lru += 1
            held = held[-(capacity - 1) :] if capacity > 1 else []
        held = [other for other in held if other != part] + [part] if capacity else []

    def best(at, inside):
        while at < len(order) and order[at] in inside:
            at += 1
        if at == len(order):
            return 0
        if len(inside) < capacity:
            return 1 + best(at + 1, inside | {order[at]})
        return 1 + min((best(at + 1, inside - {out} | {order[at]}) for out in inside), default=0 if capacity else rest(at + 1))

    def rest(at):
        return len(order) - at

    return [lru, best(0, frozenset())]


def by_waiting(reads, updates, writes, buffers):
    """Move every begin to the earliest moment that its conditions allow, again and again until nothing moves."""
    count, lengths = len(reads), (reads, updates, writes)
    starts = [[0, 0, 0] for _ in reads]
    moved = True
    while moved:
        moved = False
        for i, lane in itertools.product(range(count), range(3)):
            needs = [starts[i - 1][lane] + lengths[lane][i - 1]] if i else [0]
            if lane:
                needs.append(starts[i][lane - 1] + lengths[lane - 1][i])
            elif i >= buffers:
                needs.append(starts[i - buffers][2] + writes[i - buffers])
            if max(needs) > starts[i][lane]:
                starts[i][lane], moved = max(needs), True
    return starts


ORACLES = {"adamw-partition": torch_step, "cache-reads": every_cache, "read-ahead": by_waiting}


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda one: one.id)
def test_every_key_agrees_with_an_oracle_and_no_trap_does(exercise):
    assert len(exercise.hidden) >= 4 and exercise.points > 0
    for case in exercise.all_cases:
        if exercise.id in ORACLES:
            again = ORACLES[exercise.id](*case.arguments)
            assert difference(again, case.expected, exercise.relative, exercise.absolute) is None, case
            for trap in case.traps:
                assert difference(trap.returns, case.expected, exercise.relative, exercise.absolute) is not None
        else:
            assert covers(case.arguments, case.expected) is None, case
            assert all(covers(case.arguments, trap.returns) is not None for trap in case.traps)
        assert all(not trap.misconception or trap.misconception in misconceptions() for trap in case.traps)


def fewest(elements, most, align):
    """By trying every stop that is a multiple of `align`, and the end."""
    count = [0] + [elements + 1] * elements
    for stop in range(1, elements + 1):
        if stop % align == 0 or stop == elements:
            count[stop] = 1 + min(
                (count[start] for start in range(max(0, stop - most), stop) if start % align == 0), default=elements
            )
    return count[elements]


@given(st.integers(0, 60), st.integers(1, 9), st.integers(0, 20))
def test_the_rule_takes_what_covers_with_the_fewest_and_nothing_else(elements, align, more):
    arguments = [elements, align + more, align]
    for source in RIGHT["partition-map"]:
        found = call(source, "partition_map", arguments)
        assert covers(arguments, found) is None and len(found) == fewest(*arguments)
    for number in range(len(found)):
        start, stop = found[number]
        assert covers(arguments, found[:number] + found[number + 1 :]) is not None, "one is missing"
        assert covers(arguments, [*found[:number], [start, stop], *found[number:]]) is not None, "one is there twice"
        for moved in ([start, stop - 1], [start, stop + 1], [start + 1, stop], [start - 1, stop], [stop, start]):
            assert covers(arguments, [*found[:number], moved, *found[number + 1 :]]) is not None
        if stop - start > align:  # one more than is needed
            middle = start + align
            assert covers(arguments, [*found[:number], [start, middle], [middle, stop], *found[number + 1 :]]) is not None


@pytest.mark.parametrize(
    "got", [None, 1, "x", [[0]], [[0, 4.0]], [[0, True]], [0, 4], {"0": 4}, [[0, 4, 8]], [["0", "4"]], [None]]
)
def test_the_rule_takes_no_other_value(got):
    assert "no list" in covers([4, 4, 4], got)


@given(st.lists(st.integers(0, 4), max_size=9), st.integers(0, 4))
def test_both_right_caches_are_right(order, capacity):
    for source in RIGHT["cache-reads"]:
        assert call(source, "cache_reads", [order, capacity]) == every_cache(order, capacity)


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 3), max_size=8), st.integers(1, 9))
def test_both_right_schedules_are_right(lengths, buffers):
    arguments = [*([part[lane] for part in lengths] for lane in range(3)), buffers]
    for source in RIGHT["read-ahead"]:
        assert call(source, "read_ahead", arguments) == by_waiting(*arguments)


FLOAT = st.floats(0.0078125, 128.0, width=32)


@given(st.lists(st.tuples(FLOAT, FLOAT, FLOAT, FLOAT), min_size=1, max_size=4), st.integers(1, 2000))
def test_both_right_updates_are_torchs_but_for_ties(rows, step):
    master, gradients, m, v = map(list, zip(*rows, strict=True))
    arguments = [master, gradients, m, v, step, 1e-3, 0.9, 0.999, 1e-8, 0.01]
    right = torch_step(*arguments)
    for source in RIGHT["adamw-partition"]:
        bits, *numbers = call(source, "adamw_partition", arguments)
        assert difference(numbers, right[1:], 1e-4, 1e-6) is None
        # A last bit of float32 decides a bit of bfloat16 only beside a tie; the keys stay away from these.
        assert all(abs(one - other) <= 1 for one, other in zip(bits, right[0], strict=True))


# --- behind the walls -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("which", [0, 1])
def test_two_different_right_cells_earn_all_points(name, which, level):
    found = judge(EXERCISES[name], RIGHT[name][which], level, private=(KEYS,))
    assert (found.score, found.notes) == (EXERCISES[name].points, [])


@pytest.mark.parametrize(("name", "idea"), [(name, idea) for name in WRONG for idea in WRONG[name]])
def test_a_wrong_cell_is_told_its_idea(name, idea, level):
    exercise = EXERCISES[name]
    found = judge(exercise, WRONG[name][idea], level, private=(KEYS,))
    assert found.score < exercise.points
    told = misconceptions()[idea]["idea"] if idea in misconceptions() else idea
    assert any(f"The idea behind it may be: {told}" in note for note in found.notes), found.notes
    for case in exercise.hidden:
        assert not any(repr(case.expected) in note for note in found.notes if case.expected)


@pytest.mark.parametrize("limits", [Limits(wall=60.0, cpu=1), Limits(wall=3.0, cpu=60)], ids=["CPU time", "time"])
def test_a_cell_that_does_not_end_keeps_what_it_earned(level, limits):
    source = "def cache_reads(order, capacity):\n    if capacity == 3 and order: \n        while True: pass\n"
    source += "    return {4: [2, 2], 6: [6, 4], 0: [0, 0]}[len(order)]"
    found = judge(EXERCISES["cache-reads"], source, level, limits, (KEYS,))
    assert found.passed == 3 and len(found.notes) == 1 and "case 4" in found.notes[0]


def test_no_hidden_case_can_be_read_from_the_cell(level):
    keys = [str(KEYS / f"{name}.yaml") for name in RIGHT]
    source = f"""
import os, sys, gc
found = [path for path in {keys!r} if os.access(path, os.R_OK)]
for top in ({str(KEYS.parents[2])!r}, "/proc/self/cwd"):
    for folder, _, files in os.walk(top):
        found += [name for name in files if name.startswith("cache-reads")]
found += [name for name in sys.modules if name.startswith("quizzes.exercises.rules")]
found += [one for one in gc.get_objects() if type(one) is dict and "expected" in one and "hint" in one]
def cache_reads(order, capacity):
    return [len(found), 0]
"""
    reply = judge(EXERCISES["cache-reads"], source, level, Limits(wall=60.0), (KEYS,))
    assert reply.passed == 1, "[0, 0], nothing found, is right for the open case without uses"


# --- what is handed out -----------------------------------------------------------------------------------------------


def test_what_is_handed_out_has_the_open_cases_only():
    text = json.dumps(build(exercises()))
    for exercise in EXERCISES.values():
        assert exercise.function in text
        assert not any(case.hint in text for case in exercise.hidden)
        assert not any(trap.idea in text for case in exercise.hidden for trap in case.traps if trap.idea)
    assert "[[0, 4], [4, 8]], for example" in text


def test_the_canary_looks_for_what_is_hidden(tmp_path):
    found = texts()
    assert sum("cache-reads" in what for what in found.values()) >= 4 and any("adamw-step" in what for what in found.values())
    assert not any(text in json.dumps(build(exercises())) for text in found)
    leaked = tmp_path / "a.bin"
    leaked.write_bytes(next(iter(found)).encode("utf-16"))
    assert search("a.bin", leaked.read_bytes(), found)


def test_a_trap_has_one_idea_and_a_rule_is_known(tmp_path):
    for more in ({}, {"misconception": "a", "idea": "b"}):
        with pytest.raises(ValueError, match="a misconception or an idea"):
            Trap(returns=1, **more)
    assert Case(arguments=[], expected=1, hint="h").traps == []
    text = (Path(exercises.__globals__["BANK"]) / "06_partition_map.yaml").read_text().replace("rule: covers", "rule: other")
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(ExerciseError, match=r"x\.yaml: rule: there is no rule 'other'"):
        exercises(tmp_path)
