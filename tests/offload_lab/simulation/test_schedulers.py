"""What each schedule is worth in the simulator: counted by hand, in the order of cleverness."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload_lab.schedule import Item
from offload_lab.schedulers import (
    alternating,
    before_forward,
    furthest,
    in_backward,
    in_next_forward,
    learned_order,
    lru,
    no_overlap,
    pinned,
    read_ahead,
    write_behind,
)
from offload_lab.simulate import simulate
from offload_lab.validation import validate
from offload_lab.work import Work
from tests.offload_lab.simulation.machines import machine


def even(count, resident=0):
    """`count` partitions of 10 bytes to read, 10 to write, 10 to move in memory; the first `resident` of them stay in RAM."""
    return tuple(Item(n, 0 if n < resident else 10, 10, n < resident, 10) for n in range(count))


def steps(scheduler, items, buffers, count, may_owe=False):
    """The lists of `count` steps, each begun with what the one before left in the buffers."""
    held, owed, lists = {}, {}, []
    for number in range(count):
        work = Work(items, buffers, number, held, owed, may_owe)
        lists.append(scheduler(work))
        ending = validate(lists[-1], work)
        held, owed = ending.held, ending.owed
    return lists


def seconds(scheduler, buffers=3, count=6, **options):
    """One step on a full-duplex disk of 10 bytes a second each way, memory of 10: every task takes one second."""
    return simulate(scheduler(Work(even(count), buffers)), machine(10, 10, 10, duplex="full"), **options).makespan


def test_each_overlap_saves_what_it_says():
    """Six partitions, every task a second. One after the other: 18. Reads hidden: 1 + 6 × 2. Writes too: 6 + 2."""
    assert seconds(no_overlap) == pytest.approx(18)
    assert seconds(read_ahead) == pytest.approx(13)
    assert seconds(write_behind) == pytest.approx(8)
    # Two buffers: read, update, write of a partition are 3 seconds in which its buffer is taken, so 6 / 2 × 3, and 1 at the end
    assert seconds(partial(write_behind, depth=2)) == pytest.approx(10)
    assert seconds(partial(write_behind, depth=1)) == seconds(partial(read_ahead, depth=1)) == pytest.approx(18)


@given(st.integers(1, 9), st.integers(0, 9), st.integers(1, 9), st.integers(1, 9))
def test_more_cleverness_and_more_depth_is_never_slower_with_even_partitions(count, resident, depth, more):
    def took(scheduler):
        work = Work(even(count, min(resident, count)), depth + more)
        return simulate(scheduler(work), machine(10, 10, 10, duplex="full")).makespan

    times = [
        took(no_overlap),
        took(partial(read_ahead, depth=depth)),
        took(partial(write_behind, depth=depth)),
        took(partial(write_behind, depth=depth + more)),
    ]
    assert times == sorted(times, reverse=True)


def reads(lists):
    return [sum(task.kind == "read" for task in tasks) for tasks in lists]


def writes(lists):
    return [sum(task.kind == "write" for task in tasks) for tasks in lists]


@pytest.mark.parametrize("may_owe", [False, True])
def test_what_stays_in_ten_buffers_from_step_to_step(may_owe):
    """Of 16 partitions. A cyclic scan through LRU keeps nothing; up and down, the ten that were used last; pinned, all but the
    three that stream."""
    assert reads(steps(write_behind, even(16), 10, 4, may_owe)) == [16] * 4
    assert reads(steps(lru, even(16), 10, 4, may_owe)) == [16] * 4
    assert reads(steps(alternating, even(16), 10, 4, may_owe)) == [16, 6, 6, 6]
    assert reads(steps(pinned, even(16), 10, 4, may_owe)) == [16, 9, 9, 9]
    best = reads(steps(furthest, even(16), 10, 4, may_owe))
    assert best[0] == 16 and max(best[1:]) <= 9
    # What fits is read once.
    assert reads(steps(lru, even(8), 10, 3, may_owe)) == [8, 0, 0]


def test_where_nothing_has_to_be_on_disk_what_stays_is_not_written_either():
    assert writes(steps(pinned, even(16), 10, 4, may_owe=True)) == [6, 9, 9, 9]
    assert writes(steps(lru, even(8), 10, 3, may_owe=True)) == [0, 0, 0]
    assert writes(steps(pinned, even(16), 10, 4)) == [16] * 4


def test_furthest_next_use_learns_the_order_of_one_traced_step():
    """Steps go up, down, up, down: the order that the trace of an odd step shows is the one in which the next even one ends."""
    lists = steps(alternating, even(12), 6, 2)
    run = simulate(lists, machine(10, 10, 10))
    assert learned_order(run.events) == list(range(11, -1, -1))
    first = simulate(lists[0], machine(10, 10, 10))
    assert learned_order(first.events) == list(range(12))
    learned = partial(furthest, learned=learned_order(first.events))
    assert reads(steps(learned, even(12), 6, 4)) == reads(steps(furthest, even(12), 6, 4))


def test_an_update_in_backward_ends_with_the_last_gradient_and_not_a_step_later():
    """Gradients every 2 seconds, each task a second: after the last gradient at 12 one update and one write are left."""
    gradients = {"gradient": 2.0}
    work = Work(even(6), 3, gradients=True)
    run = simulate(in_backward(work), machine(10, 10, 10, duplex="full"), seconds=gradients)
    assert run.makespan == pytest.approx(14)
    # An update follows each gradient, and the last write its update; all else is waiting for the backward.
    assert run.stalls == pytest.approx({"update": 6 / 14, "backward": 7 / 14, "disk writes": 1 / 14, "disk reads": 0})


def test_the_next_forward_hides_the_update():
    """Forward of a partition 2 seconds. After a step of 8: 20. Beside it: the first update at 2, then 12 of forward."""
    assert seconds(before_forward, seconds={"forward": 2.0}) == pytest.approx(20)
    assert seconds(in_next_forward, seconds={"forward": 2.0}) == pytest.approx(14)
