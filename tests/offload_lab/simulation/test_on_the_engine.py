"""Every schedule on the real engine: the same bits as without one, refused before it does harm, replayed in virtual time."""

from collections import Counter
from functools import partial

import pytest
import torch

from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.partition import cut
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
from offload_lab.validation import ScheduleError
from tests.offload_lab.simulation.machines import machine

SCHEDULES = {
    "no overlap": no_overlap,
    "read ahead": partial(read_ahead, depth=3),
    "write behind": write_behind,
    "write behind, two buffers": partial(write_behind, depth=2),
    "lru": lru,
    "alternating": alternating,
    "pinned": pinned,
    "furthest": furthest,
    "furthest, learned": partial(furthest, learned=range(50)),
    "in backward": in_backward,
    "next forward": in_next_forward,
    "before forward": before_forward,
}
POLICIES = {
    "published": {},
    "every third step": {"durability": 3},
    "some in RAM": {"ram_budget": 90_000},
    "many buffers": {"ram_budget": 120_000, "residency": "lru", "durability": "checkpoint"},
    "up and down": {"order": "alternating", "depth": 6},
    "next forward": {"overlap": "forward"},
}


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(37, 65), torch.nn.Tanh(), torch.nn.Linear(65, 100))


def train(net, optimizer, steps, start=0):
    for step in range(start, start + steps):
        generator = torch.Generator().manual_seed(step)
        optimizer.zero_grad()
        net(torch.randn(4, 37, generator=generator)).pow(2).mean().backward()
        optimizer.step()


def policy(folder, **changes):
    return OffloadPolicy(**({"tier": "disk", "directory": folder, "partition_size": 700} | changes))


def outcome(given, steps=5):
    net = model()
    with OffloadAdamW(net.parameters(), lr=0.01, offload=given) as optimizer:
        train(net, optimizer, steps)
        state = optimizer.state_dict()["state"]
        tensors = [p.detach().clone() for p in net.parameters()]
        return tensors + [value.clone() for entry in state.values() for value in entry.values()]


@pytest.fixture(scope="module")
def reference():
    return outcome(OffloadPolicy(tier="ram"))


@pytest.mark.parametrize(
    "name, kind",
    [(name, kind) for name in SCHEDULES for kind in ("some in RAM", "many buffers", "next forward")]
    + [(name, kind) for name in ("write behind", "alternating") for kind in ("published", "every third step", "up and down")],
)
def test_every_schedule_gives_the_same_bits(tmp_path, reference, name, kind):
    result = outcome(policy(tmp_path, **POLICIES[kind], schedule=SCHEDULES[name]))
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(result, reference, strict=True))


@pytest.mark.parametrize("budget", [None, 90_000])
def test_an_update_in_backward_gives_the_same_bits(tmp_path, reference, budget):
    result = outcome(policy(tmp_path, overlap="backward", ram_budget=budget, schedule=in_backward))
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(result, reference, strict=True))


def test_a_schedule_decides_the_order_of_updates_also_in_ram(reference):
    given = OffloadPolicy(tier="ram", partition_size=700, schedule=alternating)
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(outcome(given), reference, strict=True))
    net = model()
    with OffloadAdamW(net.parameters(), offload=given) as optimizer:
        train(net, optimizer, 2)
        order = [event.partition for event in sorted(optimizer.trace.events(), key=lambda event: event.start)]
        count = len(order) // 2
        assert order == [*range(count), *reversed(range(count))]


@pytest.mark.parametrize(
    "changes",
    [{"depth": 50, "schedule": lru}, {"depth": 2, "ram_budget": "1MB", "residency": "lru"}],
    ids=["schedule", "policy"],
)
def test_what_is_left_unwritten_is_not_lost_when_parameters_are_added(tmp_path, changes):
    """More partitions mean more buffers; what lies in the old ones is on no disk."""
    results = []
    for given in (OffloadPolicy(), policy(tmp_path, durability="checkpoint", **changes)):
        net, more = model(), torch.nn.Parameter(torch.ones(3000))
        with OffloadAdamW(net.parameters(), lr=0.01, offload=given) as optimizer:
            train(net, optimizer, 2)
            optimizer.add_param_group({"params": [more]})
            for step in range(2):
                more.grad = torch.full_like(more, step + 1.0)
                train_with(net, optimizer, step)
            results.append([p.detach().clone() for p in (*net.parameters(), more)])
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(*results, strict=True))


def train_with(net, optimizer, step):
    """A step that leaves the gradients of others as they are."""
    for parameter in net.parameters():
        parameter.grad = torch.full_like(parameter, 0.1 * step)
    optimizer.step()


@pytest.mark.parametrize("dtype, nbytes, mirrored", [("float32", 28, 32), ("bfloat16", 26, 28), ("float16", 28, 28)])
def test_an_update_moves_the_bytes_that_its_fields_take(dtype, nbytes, mirrored):
    """float32: gradient 4, weight 4 + 4, two moments 8 + 8. bfloat16: 2, 2 + 2, low halves 2 + 2, 8 + 8. float16: gradient 2,
    weight written 2, master 4 + 4, 8 + 8. With the weight written into the record as well: 4, 2, none."""
    part = cut([(0, 1000, dtype)], 1000)[0]
    assert part.update_bytes(False) == 1000 * nbytes and part.update_bytes(True) == 1000 * mirrored


def test_what_it_leaves_unwritten_counts_as_a_hit_and_is_saved(tmp_path):
    net = model()
    given = policy(tmp_path, durability="checkpoint", depth=50, schedule=lru)
    with OffloadAdamW(net.parameters(), offload=given) as optimizer:
        train(net, optimizer, 3)
        assert optimizer.stats()["bytes_read"] == optimizer.stats()["bytes_written"] == 0
        state = optimizer.state_dict()
        assert state["state"][0]["exp_avg"].abs().sum() > 0


def forget_the_wait(work):
    """`write_behind` that reads into a buffer without waiting for what it holds to be on disk."""
    tasks = write_behind(work)
    return [task if task.kind != "read" else type(task)(*[*vars(task).values()][:5], (), task.buffer) for task in tasks]


def test_a_schedule_with_a_race_is_refused_before_anything_runs(tmp_path, reference):
    broken = {"now": False}
    net = model()
    choose = lambda work: forget_the_wait(work) if broken["now"] else write_behind(work)  # noqa: E731
    with OffloadAdamW(net.parameters(), lr=0.01, offload=policy(tmp_path, schedule=choose)) as optimizer:
        train(net, optimizer, 2)
        before = [p.detach().clone() for p in net.parameters()]
        broken["now"] = True
        with pytest.raises(ScheduleError, match=r"task \d+ \(read of partition 4\) does not wait for task \d+.*buffer 0"):
            train(net, optimizer, 1, start=2)
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(net.parameters(), before, strict=True))
        broken["now"] = False
        train(net, optimizer, 3, start=2)  # nothing was booked: it goes on as if the step had not been asked for
        state = optimizer.state_dict()["state"]
        result = [*net.parameters(), *(value for entry in state.values() for value in entry.values())]
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(result, reference, strict=True))


def test_a_schedule_without_gradients_is_refused_by_the_backward_that_would_begin_it(tmp_path):
    net = model()
    with OffloadAdamW(net.parameters(), offload=policy(tmp_path, overlap="backward", schedule=write_behind)) as optimizer:
        train(net, optimizer, 1)  # the first step is not begun by backward: nothing is published yet
        before = [p.detach().clone() for p in net.parameters()]
        with pytest.raises(ScheduleError, match="does not wait for its gradient"):
            train(net, optimizer, 1)
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(net.parameters(), before, strict=True))


def test_a_schedule_that_is_no_function_is_refused():
    with pytest.raises(ValueError, match="schedule='lru'"):
        OffloadPolicy(schedule="lru")


@pytest.mark.parametrize("name", [None, "no overlap", "write behind", "alternating"])
def test_a_real_run_replayed_has_the_same_structure(tmp_path, name):
    """Two steps as the engine ran them, their tasks in virtual time: the same events in each lane, in the same order, with the
    same bytes; a task after what it waits for in both. Times are not compared: the disk of a test is what it is."""
    net = model()
    with OffloadAdamW(net.parameters(), offload=policy(tmp_path, schedule=SCHEDULES.get(name))) as optimizer:
        train(net, optimizer, 1)
        optimizer.trace.clear()
        lists = []
        for step in (1, 2):
            train(net, optimizer, 1, start=step)
            lists += optimizer.last_tasks
        real, moved = optimizer.trace.events(), optimizer.stats()
    run = simulate(lists, machine(1e9, 1e9, 1e10))
    assert len(lists) == 2 and len(real) == len(run.events) == sum(map(len, lists))

    def rows(events):
        started = sorted(events, key=lambda event: event.start)
        lanes = dict.fromkeys(event.lane for event in sorted(started, key=lambda event: event.lane))
        return {lane: [(e.name, e.partition, e.nbytes) for e in started if e.lane == lane] for lane in lanes}

    assert rows(real) == rows(run.events)
    half = len(real) // 2
    for tasks, events in zip(lists, (real[:half], real[half:]), strict=True):
        ends = {(event.name, event.partition): (event.start, event.end) for event in events}
        for task in tasks:
            for other in task.after:
                waited = tasks[other]
                assert ends[waited.kind, waited.partition][1] <= ends[task.kind, task.partition][0]
    bytes_read = sum(event.nbytes for event in run.events if event.name == "read")
    assert 0 < bytes_read <= moved["bytes_read"]
    assert Counter(event.name for event in run.events)["update"] == 2 * moved["partitions"]


def test_what_a_traced_step_teaches_is_used_by_the_next_ones(tmp_path):
    net = model()
    with OffloadAdamW(net.parameters(), offload=policy(tmp_path / "a", order="alternating")) as optimizer:
        train(net, optimizer, 2)
        order = learned_order(optimizer.trace.events())
        assert order == list(range(len(order)))[::-1]
    read = {}
    for name, schedule in (("lru", lru), ("learned", partial(furthest, learned=range(len(order))))):
        net = model()
        given = policy(tmp_path / name, depth=8, schedule=schedule)
        with OffloadAdamW(net.parameters(), offload=given) as optimizer:
            train(net, optimizer, 4)
            read[name] = optimizer.stats()["bytes_read"]
    assert read["learned"] < read["lru"]
