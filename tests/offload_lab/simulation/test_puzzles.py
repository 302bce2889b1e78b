"""Puzzles: the bound holds for every schedule, by hand and by search; a wrong schedule is told so; marks are what they say."""

import re
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload_lab.least import Least
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
    assert case.least_bytes(run.makespan) <= run.peak_bytes * SLACK


def some_valid_schedule(work, rng):
    """Any order of updates, any buffer, any use of what is held, and the least waits that make it right."""
    tasks, items = TaskList(), {item.partition: item for item in work.items}
    free, on_disk, owed = {}, {}, dict(work.owed)  # buffer, partition -> the last task to wait for
    holds = {buffer: partition for partition, buffer in work.held.items()}
    at_hand = {buffer: (items[p], None) for buffer, p in holds.items() if rng.random() < 0.7}
    left = [item for item in work.items if item not in [hit for hit, _ in at_hand.values()]]
    rng.shuffle(left)

    def settle(buffer):
        partition = holds.get(buffer)
        if partition in owed:
            nbytes = owed.pop(partition)
            free[buffer] = on_disk[partition] = tasks.put("write", "disk-write", partition, nbytes, free.get(buffer), buffer)

    while left or at_hand:
        if left and (not at_hand or (len(at_hand) < work.buffers and rng.random() < 0.5)):
            item = left.pop()
            if item.resident:
                tasks.write(item, None, after=tasks.update(item, None))
                continue
            for buffer in [b for b, partition in holds.items() if partition == item.partition]:
                settle(buffer)
                del holds[buffer]
            buffer = rng.choice([b for b in range(work.buffers) if b not in at_hand])
            settle(buffer)
            holds[buffer] = item.partition
            read = free[buffer] = tasks.read(item, buffer, after=(free.get(buffer), on_disk.get(item.partition)))
            at_hand[buffer] = item, read
        else:
            buffer = rng.choice(sorted(at_hand))
            item, ready = at_hand.pop(buffer)
            update = free[buffer] = tasks.update(item, buffer, after=(ready, free.get(buffer)))
            if work.may_owe and rng.random() < 0.5:
                owed.update({item.partition: item.write_bytes} if item.write_bytes else {})
                continue
            owed.pop(item.partition, None)
            written = tasks.write(item, buffer, after=update)
            free[buffer] = update if written is None else written
    return tasks


@given(
    works(),
    st.booleans(),
    st.randoms(use_true_random=False),
    figures,
    duplexes,
    st.one_of(st.none(), st.floats(0.1, 30)),
    extra,
    st.integers(1, 4),
)
def test_no_schedule_at_random_beats_the_bound(work, may_owe, rng, speed, duplex, mixed, seconds, steps):
    hardware = machine(**speed, duplex=duplex, mixed=mixed)
    case = Case("of a test", replace(work, may_owe=may_owe), hardware, steps, seconds)
    run = case.run(lambda work: some_valid_schedule(work, rng))
    assert case.least_seconds <= run.makespan * SLACK
    assert case.least_bytes(run.makespan) <= run.peak_bytes * SLACK


def test_what_is_held_when_a_later_step_begins_is_for_the_schedule_to_choose():
    """Two buffers; reads of 100, 100, 99 and a slow update of the last, whose state the first step has left in a buffer.

    Then the second step reads only one of 100, beside that update: less than 99 + 100 for a read and the slow update of what
    is not among the largest two.
    """
    items = (Item(0, 100, 1, False, 1), Item(1, 100, 1, False, 1), Item(2, 99, 1, False, 100))

    def keeps_the_slow_one(work):
        tasks = TaskList()
        if work.number == 0:
            last = None
            for item, buffer in zip(items, (0, 1, 0), strict=True):
                last = tasks.read(item, buffer, after=last)
                last = tasks.write(item, buffer, after=tasks.update(item, buffer, after=last))
            return tasks
        written = tasks.write(items[1], 1, after=tasks.update(items[1], 1))
        tasks.write(items[2], 0, after=tasks.update(items[2], 0))
        read = tasks.read(items[0], 1, after=written)
        tasks.write(items[0], 1, after=tasks.update(items[0], 1, after=read))
        return tasks

    case = Case("of a test", Work(items, 2), machine(duplex="full"), 2)
    run = case.run(keeps_the_slow_one)
    assert run.steps[1][1] - run.steps[1][0] == 104  # 1 + 1 + 100 + 1 + 1
    assert case.least_seconds <= run.makespan
    # One read at least: of the smallest, 99, then an update and a write of 1.
    assert Least(case.work, case.hardware, held_unknown=True).seconds == pytest.approx(max(99 + 1 + 1, 102 + 1))


def test_the_least_memory_by_hand():
    """Two partitions of 4 to read, 6 to write, 2 to move, each in a buffer for 12 seconds with 6 bytes."""
    case = Case("of a test", Work(tuple(Item(n, 4, 6, False, 2) for n in range(2)), 2), machine(duplex="full"))
    assert case.least_bytes(24) == 6 == case.least_bytes(48)
    assert case.least_bytes(18) == 2 * 12 * 6 / 18 == 8
    one, both = case.run(no_overlap), case.run(write_behind)
    assert (one.makespan, one.peak_bytes, both.makespan, both.peak_bytes) == (24, 6, 18, 12)
    # Three steps that may leave all in the buffers: the first 6, later ones 2 each a partition, with 4 bytes.
    case = Case("of a test", replace(case.work, may_owe=True), case.hardware, 3)
    assert case.least_bytes(1) == 4 * 2 * (6 + 2 + 2)


def least_seconds(work, hardware, seconds=None):
    return Least(work, hardware, seconds).seconds


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
    assert Least(two, machine()).largest == 6
    assert least_seconds(Work((), 2), machine()) == 0 == Least(Work((), 2), machine()).byte_seconds


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
    machines = {case.hardware.to_json() for case in puzzle.hidden(result.seed)}
    assert len(machines) == 8 and puzzle.shown.hardware.to_json() not in machines
    assert [row.case for row in result.rows[1:]] == puzzle.hidden(result.seed)


@pytest.mark.parametrize("name", PUZZLES)
def test_hidden_machines_are_drawn_anew_and_a_failure_comes_back_by_its_seed(name):
    """A schedule that has learned the cases of one check by heart is right on them, and wrong on the next ones."""
    puzzle = PUZZLES[name]
    seen = check(puzzle.reference, puzzle)
    known = {repr(task.items): None for task in [row.case.work for row in seen.rows]}

    def by_heart(work):
        return puzzle.reference(work) if repr(work.items) in known else TaskList()

    assert check(by_heart, puzzle, seed=seen.seed).error is None
    failed = check(by_heart, puzzle)
    assert failed.seed != seen.seed and "no update of partition" in failed.error
    again = check(by_heart, puzzle, seed=int(re.search(r"seed=(\d+)\)", str(failed))[1]))
    assert (again.error, [row.case for row in again.rows]) == (failed.error, [row.case for row in failed.rows])


@given(st.sampled_from(list(PUZZLES)), st.integers(0, 10**9))
def test_what_is_drawn_is_of_the_family_that_is_told(name, seed):
    puzzle = PUZZLES[name]
    (case,) = puzzle.hidden(seed, 1)
    work, hardware = case.work, case.hardware
    elements = [item.write_bytes // 12 for item in work.items]
    most = max(elements)
    assert 3 <= len(elements) <= 14 and 2 <= work.buffers <= 8 and 125_000 <= min(elements) <= most <= 4_000_000
    resident = sum(item.resident for item in work.items)
    assert resident <= len(elements) / 3 and (not resident or any(item.resident for item in puzzle.shown.work.items))
    assert 0.316e9 <= hardware.disk_read.value <= 10e9 and 1e9 <= hardware.dram_bandwidth.value <= 100e9
    assert 0.3 <= hardware.disk_write.value / hardware.disk_read.value <= 1.5 and hardware.disk_duplex in ("half", "full")
    assert set(case.seconds) == set(puzzle.shown.seconds) and all(1e-3 <= s <= 0.1 for s in case.seconds.values())
    assert case.steps == puzzle.shown.steps


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"seed": 1.5}, {"seed": "7"}, {"cases": -1}, {"cases": True}])
def test_a_seed_or_a_count_that_is_none_is_named(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name}="):
        check(no_overlap, PUZZLES["read ahead"], **wrong)


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
    assert re.search(r"On a laptop it raised ZeroDivisionError: .*\(line \d+ of <lambda>\)", result.error)


def test_a_function_that_changes_what_it_is_told_is_judged_by_what_it_was_told():
    def says_that_all_is_there(work):
        tasks = TaskList()
        for item in work.items:
            work.held[item.partition] = 0
            tasks.write(item, 0, after=tasks.update(item, 0))
        return tasks

    result = check(says_that_all_is_there, PUZZLES["right, however slow"])
    assert "task 0 (update of partition 0) works in buffer 0, which holds nothing" in result.error


def test_backward_brings_gradients_in_its_own_order():
    """The last partition's first would hide its update behind all others."""
    puzzle = PUZZLES["update in backward"]
    result = check(lambda work: in_backward(replace(work, items=work.items[::-1])), puzzle)
    assert "task 0 (gradient of partition 11) is not the one that backward brings now" in result.error
    assert "the next one is that of partition 0" in result.error


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


@pytest.mark.parametrize("depth", [2, 3])
def test_who_leaves_buffers_unused_is_never_as_fast(depth):
    """By the draw of one machine in fifty, depth 3 was as fast as all buffers in four checks of ten."""
    puzzle = PUZZLES["write behind"]
    fast = [seed for seed in range(40) if check(partial(write_behind, depth=depth), puzzle, seed=seed).as_fast]
    assert fast == []


def test_the_machines_that_need_all_buffers_are_of_the_family_and_the_same_for_the_same_seed():
    puzzle = PUZZLES["write behind"]
    for seed in range(10):
        cases = puzzle.hidden(seed)
        assert [(c.work, c.hardware) for c in cases] == [(c.work, c.hardware) for c in puzzle.hidden(seed)]
        assert 3 < cases[0].work.buffers <= 8 and 3 <= len(cases[0].work.items) <= 14
    assert puzzle.hidden(1, count=0) == []
