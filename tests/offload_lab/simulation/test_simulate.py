"""The simulator: by hand, and what holds for every list of tasks on every machine."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload_lab.caching import Cache
from offload_lab.lanes import Device
from offload_lab.schedule import Item, step
from offload_lab.simulate import simulate
from offload_lab.work import TaskList
from tests.offload_lab.simulation.machines import duplexes, figure, figures, machine, task_lists, works

SLACK = 1 + 1e-9
seconds = st.dictionaries(st.sampled_from(["read", "update", "write", "gradient"]), st.floats(0, 5))
widths = st.dictionaries(st.sampled_from(["disk-read", "disk-write", "cpu"]), st.integers(1, 3))


def most_at_once(spans):
    changes = sorted((at, more) for start, end in spans if end > start for at, more in ((start, 1), (end, -1)))
    running = most = 0
    for _, more in changes:
        running += more
        most = max(most, running)
    return most


@given(task_lists(), figures, duplexes, seconds, widths)
def test_a_lane_keeps_to_its_width_and_its_order_and_a_task_waits_for_what_it_waits_for(tasks, speed, duplex, extra, wide):
    run = simulate(tasks, machine(**speed, duplex=duplex), seconds=extra, widths=wide)
    times = run.times[0] if run.times else ()
    assert len(times) == len(tasks)
    for lane in {task.lane for task in tasks}:
        here = [times[task.number] for task in tasks if task.lane == lane]
        assert most_at_once(here) <= wide.get(lane, 1)
        starts = [start for start, _ in here]
        assert starts == sorted(starts)
        assert run.busy[lane] <= run.makespan * SLACK
    for task in tasks:
        assert all(times[other][1] <= times[task.number][0] for other in task.after)


@given(task_lists(), figures, duplexes, seconds, widths, st.one_of(st.none(), st.floats(0.1, 30)))
def test_no_step_is_faster_than_its_lower_bounds(tasks, speed, duplex, extra, wide, mixed):
    run = simulate(tasks, machine(**speed, duplex=duplex, mixed=mixed), seconds=extra, widths=wide)
    alone = {"disk-read": speed["read"], "disk-write": speed["write"], "cpu": speed["dram"], "backward": 1}
    took = [extra.get(task.kind, 0) + task.nbytes / alone[task.lane] for task in tasks]
    until = []
    for task in tasks:
        until.append(took[task.number] + max((until[other] for other in task.after), default=0))
    assert run.bounds.critical_path == pytest.approx(max(until, default=0))
    assert sum(took[number] for number in run.bounds.path) == pytest.approx(run.bounds.critical_path)
    for lane in {task.lane for task in tasks}:
        total = sum(took[task.number] for task in tasks if task.lane == lane) / wide.get(lane, 1)
        assert run.bounds.lanes[lane] == pytest.approx(total)
        assert total <= run.makespan * SLACK
    for bound in (run.bounds.critical_path, run.bounds.least, *run.bounds.devices.values()):
        assert bound <= run.makespan * SLACK
    assert sum(run.stalls.values()) == pytest.approx(1 if run.makespan else 0)


@given(works(), figures, duplexes, st.integers(1, 4))
def test_buffers_are_never_exceeded_and_hold_one_partition_at_a_time(work, speed, duplex, steps):
    cache = Cache(work.buffers, work.buffers)
    run = simulate([step(work.items, cache) for _ in range(steps)], machine(**speed, duplex=duplex))
    assert run.peak_buffers <= work.buffers
    assert run.peak_bytes <= work.buffers * max(max(item.read_bytes, item.write_bytes) for item in work.items)
    for buffer in range(work.buffers):
        here = sorted((one.start, one.end) for one in run.occupied if one.buffer == buffer)
        assert all(first[1] <= second[0] for first, second in pairwise(here))


@given(task_lists(), figures, duplexes, st.floats(1, 8))
def test_a_machine_k_times_as_fast_takes_a_kth_of_the_time(tasks, speed, duplex, k):
    slow = simulate(tasks, machine(**speed, duplex=duplex)).makespan
    fast = simulate(tasks, machine(**{name: k * value for name, value in speed.items()}, duplex=duplex)).makespan
    assert fast * k == pytest.approx(slow)


@given(task_lists(), figures, st.sampled_from(["read", "write", "dram"]), st.floats(1, 8), seconds, widths)
def test_with_no_shared_device_no_bandwidth_that_grows_makes_a_step_slower(tasks, speed, name, k, extra, wide):
    options = {"seconds": extra, "widths": wide}
    slow = simulate(tasks, machine(**speed, duplex="full"), **options).makespan
    fast = simulate(tasks, machine(**(speed | {name: k * speed[name]}), duplex="full"), **options).makespan
    assert fast <= slow * SLACK


@given(task_lists(), figures, st.sampled_from(["read", "write", "dram"]), st.floats(1, 8), seconds)
def test_a_half_duplex_disk_lies_between_two_full_ones_both_of_which_gain_from_bandwidth(tasks, speed, name, k, extra):
    """So a half-duplex step can lose by more bandwidth no more than lies between these, whatever the list."""

    def between(given):
        each = 1 / (1 / given["read"] + 1 / given["write"])
        best = simulate(tasks, machine(**given, duplex="full"), seconds=extra).makespan
        real = simulate(tasks, machine(**given), seconds=extra).makespan
        worst = simulate(tasks, machine(**(given | {"read": each, "write": each}), duplex="full"), seconds=extra).makespan
        assert best <= real * SLACK and real <= worst * SLACK
        return best, worst

    slow, fast = between(speed), between(speed | {name: k * speed[name]})
    assert fast[0] <= slow[0] * SLACK and fast[1] <= slow[1] * SLACK


def test_on_a_half_duplex_disk_a_faster_update_can_make_a_step_slower():
    """By hand: a read of 4 bytes with 8 seconds of something behind it, and an update of 4 bytes with a write of 4 behind it.

    Memory 1: the update ends at 4, when the read has just ended; 12. Memory 1.25: it ends at 3.2, and its write takes half of
    the disk from the last 0.8 bytes of the read, which ends at 3.2 + 1.6 = 4.8; 12.8.
    """
    tasks = TaskList()
    short = tasks.put("update", "cpu", 1, 4)
    read = tasks.put("read", "disk-read", 0, 4)
    tasks.put("write", "disk-write", 1, 4, short)
    tasks.put("gradient", "backward", 0, 0, read)
    slow, fast = (simulate(tasks, machine(dram=dram), seconds={"gradient": 8}).makespan for dram in (1, 1.25))
    assert (slow, fast) == (pytest.approx(12), pytest.approx(12.8))
    assert simulate(tasks, machine(dram=1.25, duplex="full"), seconds={"gradient": 8}).makespan == pytest.approx(12)


def test_a_step_by_hand_on_a_disk_of_either_kind():
    """Two partitions of 4 bytes to read, 6 to write, 2 to move in memory; disk 2 and 1 bytes a second, memory 2.

    Full duplex: reads end at 2 and 4, updates at 3 and 5, writes at 9 and 15. Half duplex: together 2 / (1/2 + 1/1) = 4/3, so
    2/3 each. From 3 on a read with 2 bytes to go and a write with 6 share, until the read ends at 3 + 2 / (2/3) = 6; the write
    has 4 left, ends at 10, and the other one at 16.
    """
    tasks = step([Item(0, 4, 6, False, 2), Item(1, 4, 6, False, 2)], Cache(2, 2))
    for duplex, ends in (("full", [2, 3, 4, 5, 9, 15]), ("half", [2, 3, 6, 7, 10, 16])):
        run = simulate(tasks, machine(read=2, write=1, dram=2, duplex=duplex))
        assert sorted(end for _, end in run.times[0]) == pytest.approx(ends)
        assert [event.end for event in run.events] == pytest.approx(ends)
        assert run.makespan == pytest.approx(ends[-1])
        assert (run.peak_buffers, run.peak_bytes) == (2, 12)
    assert run.busy == pytest.approx({"disk-read": 6, "cpu": 2, "disk-write": 13})
    assert run.bounds.lanes == pytest.approx({"disk-read": 4, "cpu": 2, "disk-write": 12})
    assert run.bounds.devices == pytest.approx({"disk": 16, "memory": 2})
    assert run.bounds.critical_path == pytest.approx(2 + 1 + 6)
    assert run.stalls["update"] == pytest.approx(2 / 16) and run.stalls["disk reads"] == pytest.approx(5 / 16)


def test_what_was_measured_of_both_directions_together_is_what_they_share():
    """10 bytes each way at 1.5 together: 10 / 0.75 seconds. 5 to write: done at 5 / 0.75, the reads' other 5 alone at 1."""
    for nbytes, ends in ((10, (40 / 3, 40 / 3)), (5, (20 / 3 + 5, 20 / 3))):
        tasks = TaskList()
        tasks.put("read", "disk-read", 0, 10)
        tasks.put("write", "disk-write", 1, nbytes)
        run = simulate(tasks, machine(mixed=1.5))
        assert [end for _, end in run.times[0]] == pytest.approx(list(ends))
        assert run.bounds.devices["disk"] == pytest.approx(run.makespan)


def test_latency_of_one_task_overlaps_with_bytes_of_another_where_the_lane_is_wide():
    """Three reads of 2 bytes and 1 second each at 1 byte a second: 9 one after the other; 1 + 6 where two may have begun."""
    tasks = TaskList()
    for number in range(3):
        tasks.put("read", "disk-read", number, 2)
    assert simulate(tasks, machine(), seconds={"read": 1}).makespan == pytest.approx(9)
    assert simulate(tasks, machine(), seconds={"read": 1}, widths={"disk-read": 2}).makespan == pytest.approx(7)


def test_steps_follow_each_other_and_what_is_kept_counts_as_occupied():
    tasks = [step([Item(0, 0 if n else 4, 4, False, 2)], Cache(1, 1)) for n in range(3)]
    run = simulate(tasks, machine())
    assert run.steps == ((0, 10), (10, 16), (16, 22))
    assert [(one.start, one.end, one.nbytes) for one in run.occupied] == [(0, 22, 4)]
    assert run.bounds.least == 22 == run.bounds.critical_path
    assert simulate([], machine()).makespan == 0 == simulate([[]], machine()).makespan


def test_lanes_of_an_accelerator():
    """Gradients over the link at 2, update of 6 bytes at 3, weights back at 1: full duplex 2 + 2 + 4, twice in a pipeline."""
    links = {"host_to_device": figure(1), "device_to_host": figure(2), "gpu_bandwidth": figure(5)}
    tasks = TaskList()
    for partition in range(2):
        compute = tasks.put("compute", "accelerator", partition, 5)
        fetch = tasks.put("fetch", "device-to-host", partition, 4, compute)
        update = tasks.put("update", "cpu", partition, 6, fetch)
        tasks.put("send", "host-to-device", partition, 4, update)
    run = simulate(tasks, machine(dram=3, **links))
    assert [start for start, _ in run.times[0]] == pytest.approx([0, 1, 3, 5, 1, 3, 5, 9])
    assert run.makespan == pytest.approx(13)
    # Half duplex: 2 / (1 + 1/2) / 2 = 2/3 each while both move. Fetch 1 (3 to 5) meets no publish, which begins at 5.
    assert simulate(tasks, machine(dram=3, link_duplex="half", **links)).makespan == pytest.approx(13)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=5), st.floats(0.1, 9), st.floats(0.1, 9), st.booleans()
)
def test_cpu_and_accelerator_draw_from_one_memory(pieces, cpu, accelerator, waits):
    tasks = TaskList()
    for number, (computed, updated) in enumerate(pieces):
        compute = tasks.put("compute", "accelerator", number, computed)
        tasks.put("update", "cpu", number, updated, compute if waits else None)
    apart = machine(dram=cpu, gpu_bandwidth=figure(accelerator))
    one, two = simulate(tasks, replace(apart, unified=True)), simulate(tasks, apart)
    assert two.makespan <= one.makespan * SLACK <= 2 * two.makespan * SLACK**2
    assert one.bounds.least <= one.makespan * SLACK
    moved = sum(computed + updated for computed, updated in pieces)
    assert moved <= max(cpu, accelerator) * one.makespan * SLACK, "no memory moves more than it can"


@given(st.floats(0.1, 9), st.floats(0.1, 9), st.floats(0.05, 30), st.floats(0, 9), st.floats(0, 9))
def test_the_bound_of_a_shared_device_is_what_a_search_over_the_time_shared_finds(one, other, together, nbytes, others):
    device = Device("disk", {"a": one, "b": other}, together)
    mixed = [min(rate, together / 2) for rate in (one, other)]
    longest = min(nbytes / mixed[0], others / mixed[1])
    shared = [longest * part / 50 for part in range(51)]
    best = min(x + max(nbytes - mixed[0] * x, 0) / one + max(others - mixed[1] * x, 0) / other for x in shared)
    assert device.least_seconds({"a": nbytes, "b": others}) == pytest.approx(best)


@pytest.mark.parametrize(
    "change, options, named",
    [
        ({"disk_read": None}, {}, "'disk-read'.*'of a test' has no figure disk_read"),
        ({"disk_write": figure(0)}, {}, "disk_write.*is 0"),
        ({}, {"widths": {"cpu": 0}}, r"widths\['cpu'\] is 0"),
        ({}, {"seconds": {"read": -1}}, r"seconds\['read'\] is -1"),
    ],
)
def test_what_cannot_be_simulated_is_an_error_that_says_why(change, options, named):
    tasks = step([Item(0, 4, 4, False, 2)], Cache(1, 1))
    with pytest.raises(ValueError, match=named):
        simulate(tasks, replace(machine(), **change), **options)


def test_a_list_that_is_none_is_an_error_that_names_the_task():
    tasks = step([Item(0, 4, 4, False, 2)], Cache(1, 1))
    with pytest.raises(ValueError, match=r"task 1 \(update 0\) waits for \(2,\)"):
        simulate([tasks[0], replace(tasks[1], after=(2,)), tasks[2]], machine())
    with pytest.raises(ValueError, match=r"task 2 .*at place 1"):
        simulate([tasks[0], tasks[2]], machine())
    with pytest.raises(ValueError, match="Task is needed"):
        simulate([[1]], machine())
    with pytest.raises(ValueError, match="moves nothing"):
        simulate([replace(tasks[0], lane="backward")], machine())
