"""Puzzles: the bound holds for every schedule, by hand and by search; a wrong schedule is told so; marks are what they say."""

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload_lab.least import least_bytes, least_seconds
from offload_lab.puzzles import PUZZLES, Case, check
from offload_lab.schedule import Item
from offload_lab.schedulers import SCHEDULERS, in_backward, no_overlap, read_ahead, write_behind
from offload_lab.validation import validate
from offload_lab.work import TaskList, Work
from tests.offload_lab.simulation.machines import duplexes, figures, machine, works

SLACK = 1 + 1e-9
extra = st.dictionaries(st.sampled_from(["read", "update", "write", "gradient"]), st.floats(0, 3))


@given(
    works(),
    st.sampled_from([*SCHEDULERS, partial(read_ahead, depth=1), partial(write_behind, depth=2)]),
    st.booleans(),
    st.booleans(),
    st.randoms(use_true_random=False),
    figures,
    duplexes,
    st.one_of(st.none(), st.floats(0.1, 30)),
    extra,
    st.integers(1, 4),
)
def test_no_schedule_beats_the_bound(work, scheduler, may_owe, backward, rng, speed, duplex, mixed, seconds, steps):
    backward = backward and scheduler is in_backward
    items = list(work.items)
    rng.shuffle(items)
    work = replace(work, items=tuple(items), may_owe=may_owe, gradients=backward)
    case = Case("of a test", work, machine(**speed, duplex=duplex, mixed=mixed), steps, seconds)
    run = case.run(scheduler)
    assert case.least_seconds <= run.makespan * SLACK
    assert case.least_bytes <= run.peak_bytes


def some_valid_schedule(work, rng):
    """Any order of updates, any buffer, and the least waits that make it right: read, update and write at random."""
    tasks, free, state = TaskList(), {}, {}
    left = list(work.items)
    rng.shuffle(left)
    held = {}
    while left or held:
        if left and (not held or (len(held) < work.buffers and rng.random() < 0.5)):
            item = left.pop()
            if item.resident:
                tasks.write(item, None, after=tasks.update(item, None))
                continue
            buffer = rng.choice([b for b in range(work.buffers) if b not in held])
            state[item.partition] = tasks.read(item, buffer, after=free.get(buffer))
            held[buffer] = item
        else:
            buffer = rng.choice(sorted(held))
            item = held.pop(buffer)
            update = tasks.update(item, buffer, after=state[item.partition])
            written = tasks.write(item, buffer, after=update)
            free[buffer] = update if written is None else written
    return tasks


@given(works(), st.randoms(use_true_random=False), figures, duplexes, extra)
def test_no_schedule_at_random_beats_the_bound(work, rng, speed, duplex, seconds):
    case = Case("of a test", work, machine(**speed, duplex=duplex), seconds=seconds)
    run = case.run(lambda work: some_valid_schedule(work, rng))
    assert case.least_seconds <= run.makespan * SLACK
    assert case.least_bytes <= run.peak_bytes


def test_the_bound_by_hand():
    """Partitions of 4 to read, 6 to write, 2 to move; everything at 1 byte a second."""
    item = lambda n, resident=False: Item(n, 0 if resident else 4, 6, resident, 2)  # noqa: E731
    two = Work((item(0), item(1)), 2)
    # Half duplex: 2 × (4 + 6). Full: read and update one, then write both: 4 + 2 + 12. One buffer: 2 × (4 + 2 + 6).
    assert least_seconds(two, machine()) == 20
    assert least_seconds(two, machine(duplex="full")) == 18
    assert least_seconds(replace(two, buffers=1), machine(duplex="full")) == 24
    # Slow memory: read one, update both at 20 each, write one.
    assert least_seconds(two, machine(dram=0.1)) == 4 + 40 + 6
    # One stays in RAM: nothing need be read before its update. Full duplex: 2 + 12.
    assert least_seconds(Work((item(0, True), item(1)), 2), machine(duplex="full")) == 14
    # What is held need not be read; what may be owed need not be written.
    assert least_seconds(replace(two, held={0: 0, 1: 1}), machine()) == 2 + 12
    assert least_seconds(replace(two, held={0: 0, 1: 1}, may_owe=True), machine()) == 2 + 2
    # Gradients of 30 seconds each: after the second, 2 + 6.
    assert least_seconds(replace(two, gradients=True), machine(), {"gradient": 30}) == 68
    assert least_bytes(two) == 6
    assert least_seconds(Work((), 2), machine()) == 0 == least_bytes(Work((), 2))


@pytest.mark.parametrize(
    "work, hardware, schedule",
    [
        (Work(tuple(Item(n, 4, 6, False, 2) for n in range(5)), 4), machine(duplex="full"), write_behind),
        (Work(tuple(Item(n, 4, 6, False, 2) for n in range(5)), 3), machine(dram=0.1), write_behind),
        (Work(tuple(Item(n, 4, 6, False, 2) for n in range(5)), 1), machine(), no_overlap),
    ],
)
def test_the_bound_is_reached_where_nothing_is_in_the_way(work, hardware, schedule):
    case = Case("of a test", work, hardware)
    assert case.run(schedule).makespan == pytest.approx(case.least_seconds)


@pytest.mark.parametrize("name", PUZZLES)
def test_the_reference_is_right_and_is_as_fast_as_itself(name):
    puzzle = PUZZLES[name]
    result = check(puzzle.reference, puzzle)
    assert result.error is None and result.as_fast
    assert len(result.rows) == 9 and result.marks == result.reference_marks
    assert 0 < result.marks.time <= SLACK and 0 < result.marks.memory <= SLACK
    assert "right in all 9 cases" in str(result) and "as fast as the reference" in str(result)
    for row in result.rows:
        assert row.theirs.events == row.reference.events
        assert len(row.theirs.steps) == row.case.steps
    assert [case.hardware for case in puzzle.hidden()] == [case.hardware for case in puzzle.hidden()]
    machines = {case.hardware.to_json() for case in puzzle.hidden()}
    assert len(machines) == 8 and puzzle.shown.hardware.to_json() not in machines


def test_a_slower_schedule_has_lower_marks_and_uses_less_memory():
    result = check(no_overlap, PUZZLES["write behind"])
    assert result.error is None and not result.as_fast
    assert result.marks.time < result.reference_marks.time
    assert result.marks.memory >= result.reference_marks.memory
    assert "slowest beside the reference on" in str(result)
    shown = result.rows[0]
    case = shown.case
    assert shown.marks.time == pytest.approx(case.least_seconds / shown.theirs.makespan)
    assert shown.marks.memory == 1  # one buffer is the least there is


def test_a_schedule_that_is_right_only_where_it_was_looked_at_is_found_out():
    """Twelve even partitions in four buffers: that is the shown case of "write behind"."""

    def learned_by_heart(work):
        if len(work.items) != 12 or work.buffers != 4:
            return TaskList()
        return write_behind(work)

    result = check(learned_by_heart, PUZZLES["write behind"])
    assert result.error is not None and "hidden machine" in result.error and "no update of partition" in result.error
    assert len(result.rows) >= 1 and result.marks is None and not result.as_fast
    assert "not right yet" in str(result)


def test_a_race_and_an_exception_are_results_that_name_the_case():
    def racy(work):
        tasks = TaskList()
        for item in work.items:
            read = tasks.read(item, 0)
            tasks.write(item, 0, after=tasks.update(item, 0, after=read))
        return tasks

    puzzle = PUZZLES["right, however slow"]
    result = check(racy, puzzle)
    assert "On a laptop: task 3 (read of partition 1) does not wait for task 2" in result.error and not result.rows
    result = check(lambda work: 1 / 0, puzzle)
    assert "On a laptop it raised ZeroDivisionError" in result.error


def test_the_example_of_the_documentation_is_right():
    """As `work.py` shows it."""

    def my_schedule(work):
        tasks = TaskList()
        written = None
        for item in work.items:
            read = tasks.read(item, buffer=0, after=written)
            update = tasks.update(item, buffer=0, after=read)
            written = tasks.write(item, buffer=0, after=update)
        return tasks

    assert check(my_schedule, PUZZLES["right, however slow"]).as_fast
    with_residents = PUZZLES["write behind"].shown.work
    validate(my_schedule(with_residents), with_residents)
