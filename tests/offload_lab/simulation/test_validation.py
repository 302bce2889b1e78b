"""What a schedule must be: held against a toy that runs its tasks in any order that the waits allow, and by hand."""

import random
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload_lab.schedule import Item
from offload_lab.schedulers import SCHEDULERS, in_backward, no_overlap, read_ahead, write_behind
from offload_lab.validation import ScheduleError, validate
from offload_lab.work import TaskList, Work
from tests.offload_lab.simulation.machines import works


def right(tasks, work, rng):
    """Run the tasks one at a time in a random order that keeps to their waits and to the starts of each lane. Whether each
    partition is of the next version then, on disk where it has to be and in one buffer or in RAM elsewhere."""
    disk = dict.fromkeys((item.partition for item in work.items), 0)
    buffers = {buffer: (partition, 0) for partition, buffer in work.held.items()}
    for partition in work.owed:
        disk[partition] = -1
    resident = {item.partition: 0 for item in work.items if item.resident}
    done, left = set(), list(tasks)
    gradients = set()
    while left:
        ready = [task for task in left if done.issuperset(task.after)]
        task = rng.choice(ready)
        left.remove(task)
        done.add(task.number)
        partition, buffer = task.partition, task.buffer
        if task.kind == "gradient":
            gradients.add(partition)
        elif task.kind == "read":
            buffers[buffer] = (partition, disk[partition])
        elif task.kind == "update":
            if work.gradients and partition not in gradients:
                return False
            if buffer is None:
                resident[partition] += 1
            elif buffers.get(buffer, (None,))[0] != partition:
                return False
            else:
                buffers[buffer] = (partition, buffers[buffer][1] + 1)
        elif task.kind == "write":
            there, version = (partition, resident[partition]) if buffer is None else buffers.get(buffer, (None, 0))
            if there != partition:
                return False
            disk[partition] = version
    for item in work.items:
        newest = [disk[item.partition], resident.get(item.partition)] + [v for p, v in buffers.values() if p == item.partition]
        on_disk = disk[item.partition] == 1 or not item.write_bytes or (work.may_owe and not item.resident)
        if not on_disk or 1 not in newest or (item.resident and resident[item.partition] != 1):
            return False
    return True


@given(works(), st.sampled_from(SCHEDULERS), st.booleans(), st.integers(0, 2**32))
def test_every_scheduler_is_right_in_any_order_over_several_steps(work, scheduler, may_owe, seed):
    rng, ending = random.Random(seed), None
    for number in range(4):
        held = {} if ending is None else {"held": ending.held, "owed": ending.owed}
        now = replace(work, number=number, may_owe=may_owe, **held)
        tasks = scheduler(now)
        ending = validate(tasks, now)
        assert may_owe or not ending.owed
        assert all(right(tasks, now, rng) for _ in range(5))
        items = (replace(item, read_bytes=0 if item.resident else max(item.read_bytes, 1)) for item in work.items)
        work = replace(work, items=tuple(items))


def mutations(tasks):
    """The list with one wait left out, with a buffer changed, with a task gone, with two tasks in each other's place."""
    for task in tasks:
        for other in task.after:
            yield _with(tasks, task.number, after=tuple(n for n in task.after if n != other))
        if task.buffer is not None:
            yield _with(tasks, task.number, buffer=(task.buffer + 1) % 2)


def _with(tasks, number, **changes):
    return [replace(task, **changes) if task.number == number else task for task in tasks]


@given(
    st.lists(st.booleans(), min_size=1, max_size=3),
    st.sampled_from([no_overlap, read_ahead, write_behind, partial(write_behind, depth=1), in_backward]),
    st.booleans(),
    st.data(),
)
def test_what_is_refused_goes_wrong_in_some_order_and_what_is_not_in_none(residents, scheduler, gradients, data):
    items = tuple(Item(n, 0 if resident else 5, 6, resident, 3) for n, resident in enumerate(residents))
    work = Work(items, 2, gradients=gradients and scheduler is in_backward)
    changed = data.draw(st.sampled_from([*mutations(scheduler(work)), scheduler(work)]))
    try:
        validate(changed, work)
        refused = False
    except ScheduleError:
        refused = True
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    results = [right(changed, work, rng) for _ in range(400)]
    assert all(results) != refused


def one(resident=False, read=5, write=6):
    return Item(0, 0 if resident else read, write, resident, 3)


TWO = Work((Item(0, 5, 6, False, 3), Item(1, 5, 6, False, 3)), 2)


def tasks_of(work, *lines):
    tasks = TaskList()
    for kind, number, buffer, after in lines:
        rest = () if kind == "gradient" else (after,) if kind == "forward" else (buffer, after)
        getattr(tasks, kind)(work.items[number], *rest)
    return tasks


R0, U0, W0 = ("read", 0, 0, ()), ("update", 0, 0, (0,)), ("write", 0, 0, (1,))
WHOLE = (R0, U0, W0, ("read", 1, 1, ()), ("update", 1, 1, (3,)), ("write", 1, 1, (4,)))


@pytest.mark.parametrize(
    "lines, named",
    [
        ((R0, ("update", 0, 0, ())), r"task 1 \(update of partition 0\) does not wait for task 0"),
        ((R0, U0, ("write", 0, 0, (0,))), r"task 2 \(write of partition 0\) does not wait for task 1"),
        (
            (R0, U0, W0, ("read", 1, 0, (1,))),
            r"task 3 \(read of partition 1\) does not wait for task 2, which works in buffer 0",
        ),
        ((R0, ("update", 0, 1, (0,))), r"task 1 .*works in buffer 1, which holds nothing: read partition 0"),
        ((R0, U0, ("read", 1, 0, (1,))), r"task 2 .*reads into buffer 0, whose partition 0 is changed and not on disk yet"),
        ((R0, ("write", 0, 0, (0,))), r"task 1 .*writes what needs no writing: partition 0 is written before it is updated"),
        ((R0, U0, W0, ("write", 0, 0, (2,))), r"task 3 .*partition 0 has been written since its update"),
        ((R0, U0, ("update", 0, 0, (1,))), r"task 2 .*updates what task 1 has updated already"),
        ((R0, U0, W0, ("read", 0, 0, (2,))), r"task 3 .*reads what task 1 has updated already"),
        (WHOLE[:3], r"no update of partition 1"),
        (WHOLE[:5], r"does not write partition 1 after its update, task 4"),
        ((("read", 0, 2, ()),), r"task 0 .*uses buffer 2; there are 2"),
        ((("read", 0, None, ()),), r"task 0 .*needs a buffer, and has None"),
        ((("gradient", 0, None, ()),), r"task 0 .*this step has all of them already"),
        ((R0, U0, W0, ("forward", 0, None, (0,))), r"task 3 .*forward through weights whose update it does not wait for"),
        ((*WHOLE, ("forward", 0, None, (1,)), ("write", 0, 0, (6,))), r"task 7 .*waits for task 6, a forward"),
    ],
)
def test_a_schedule_that_is_wrong_is_refused_with_the_task_and_why(lines, named):
    validate(tasks_of(TWO, *WHOLE), TWO)
    with pytest.raises(ScheduleError, match=named):
        validate(tasks_of(TWO, *lines), TWO)


@pytest.mark.parametrize(
    "change, named",
    [
        ({"nbytes": 4}, "moves 4 bytes, and it is 5"),
        ({"number": 3}, "is at place 0"),
        ({"after": (5,)}, r"waits for \(5,\)"),
        ({"partition": 7}, "has no part in this step; these have: 0, 1"),
        ({"lane": "cpu"}, "kind 'read' in lane 'cpu'"),
        ({"kind": "send", "lane": "host-to-device"}, "kind 'send' in lane 'host-to-device'"),
    ],
)
def test_a_task_that_is_none_of_this_step_is_refused(change, named):
    tasks = tasks_of(TWO, *WHOLE)
    with pytest.raises(ScheduleError, match=named):
        validate([replace(tasks[0], **change), *tasks[1:]], TWO)


@pytest.mark.parametrize("returned", [None, 3, "tasks", [None]])
def test_what_is_no_list_of_tasks_is_refused(returned):
    with pytest.raises(ScheduleError, match=r"Is a `return tasks` missing|not a Task"):
        validate(returned, TWO)


def test_what_is_held_need_not_be_read_and_what_is_owed_is_not_lost():
    work = replace(TWO, held={1: 0, 0: 1}, owed={1: 6}, may_owe=True)
    with pytest.raises(ScheduleError, match="reads into buffer 0, whose partition 1 is changed"):
        validate(tasks_of(work, R0), work)
    with pytest.raises(ScheduleError, match=r"task 0 .*reads from disk what has changed since"):
        validate(tasks_of(work, ("read", 1, 1, ())), work)
    tasks = tasks_of(work, ("update", 1, 0, ()), ("update", 0, 1, ()))
    ending = validate(tasks, work)
    assert list(ending.held.items()) == [(1, 0), (0, 1)] and ending.owed == {1: 6, 0: 6}
    with pytest.raises(ScheduleError, match="does not write partition 1"):
        validate(tasks, replace(work, may_owe=False))


def test_a_resident_partition_is_neither_read_nor_in_a_buffer_and_is_written_where_it_has_to_be():
    work = Work((one(resident=True),), 1)
    tasks = TaskList()
    assert tasks.read(work.items[0], 0) is None
    update = tasks.update(work.items[0], 0)
    with pytest.raises(ScheduleError, match="does not write partition 0"):
        validate(tasks, work)
    tasks.write(work.items[0], 0, after=update)
    assert validate(tasks, work).held == {}
    with pytest.raises(ScheduleError, match="stays in RAM"):
        validate([replace(tasks[0], buffer=0), tasks[1]], work)


def test_beside_a_backward_an_update_waits_for_its_gradient_and_nobody_for_one_that_may_not_begin():
    work = replace(TWO, gradients=True)
    with pytest.raises(ScheduleError, match="does not wait for its gradient"):
        validate(write_behind(work), work)
    tasks = in_backward(work)
    validate(tasks, work)
    update = next(task for task in tasks if task.kind == "update" and task.partition == 0)
    late = next(task for task in tasks if task.kind == "gradient" and task.partition == 1)
    reordered = TaskList()
    gradients = {item.partition: reordered.gradient(item) for item in work.items}
    read = reordered.read(work.items[0], 0)
    reordered.update(work.items[0], 0, after=(read, *gradients.values()))
    assert update.number < late.number
    with pytest.raises(ScheduleError, match=r"waits for partition 1, of which backward may not have begun anything"):
        validate(reordered, work)
