"""What the figures of questions show, a second time, and which choices that makes true.

The trace is made here again: the engine's schedules on a machine of this file, torch itself for the memory, the planner for the
machines. Nothing comes from `quizzes.figures` but the picture that is judged.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

import torch

from offload_lab import catalogue, schedulers
from offload_lab.hardware import Figure, Hardware
from offload_lab.partition import cut
from offload_lab.planner import plan
from offload_lab.puzzles import Case
from offload_lab.schedule import Item
from offload_lab.simulate import simulate
from offload_lab.work import Work
from tests.quizzes.second_route import state, training


def case(partitions=6, buffers=3, read=12, update=28, write=12, rates=(2, 3, 14), duplex="full", steps=1):
    """MB a partition; GB/s of reads, writes and memory."""
    made = [Figure(rate * 1e9, "assumed") for rate in rates]
    items = tuple(Item(n, int(read * 1e6), int(write * 1e6), False, int(update * 1e6)) for n in range(partitions))
    machine = Hardware("made up", Figure(1e12, "assumed"), made[2], disk_read=made[0], disk_write=made[1], disk_duplex=duplex)
    return Case("made up", Work(items, buffers), machine, steps)


def run(schedule, **given):
    return case(**given).run(schedule)


def spans(simulated, name):
    """partition -> (start, end) of its only task of that name."""
    return {event.partition: (event.start, event.end) for event in simulated.events if event.name == name}


def overlap(one, other):
    return max(0.0, min(one[1], other[1]) - max(one[0], other[0]))


def took(span):
    return span[1] - span[0]


def read_map(schedule, **given):
    """Of each step, the partitions that are read."""
    simulated = run(schedule, **given)
    return [
        sorted(event.partition for event in simulated.events if event.name == "read" and start <= event.start < end)
        for start, end in simulated.steps
    ]


@cache
def memory_of_a_training(steps=2):
    """What torch holds for each parameter of a bfloat16 model with float32 masters: a dict of bytes for each moment."""
    weights = torch.ones(4096, dtype=torch.bfloat16, requires_grad=True)
    master = weights.detach().float().requires_grad_(True)
    optimizer = torch.optim.AdamW([master])

    def now():
        held = {"weights": [weights], "masters": [master]}
        held["gradients"] = [part.grad for part in (weights, master) if part.grad is not None]
        held["moments"] = [value for kept in optimizer.state.values() for value in kept.values() if value.numel() > 1]
        sizes = {kind: sum(part.nbytes for part in parts) / weights.numel() for kind, parts in held.items()}
        return {kind: size for kind, size in sizes.items() if size}

    found = [now()]
    for _ in range(steps):
        (weights * 2).sum().backward()
        found.append(now())
        master.grad = weights.grad.float()
        weights.grad = None
        optimizer.step()
        found.append(now())
        with torch.no_grad():
            weights.copy_(master)
        optimizer.zero_grad()
        found.append(now())
    return found


# --- which choices are true -------------------------------------------------------------------------------------------


def gaps(question):
    simulated = run(schedulers.no_overlap)
    tasks = sorted(simulated.events, key=lambda event: event.start)
    disk = [(event.start, event.end) for event in tasks if event.lane != "cpu"]
    cpu = sorted(spans(simulated, "update").values())
    between = [(0.0, cpu[0][0]), *((one[1], other[0]) for one, other in pairwise(cpu))]
    busy = sum(overlap(gap, span) for gap in between for span in disk) / sum(map(took, between))
    return {
        "a": any(event.name not in ("read", "update", "write") for event in tasks),
        "b": any(overlap(gap, span) for gap in between for span in cpu),
        "c": busy > 0.999,
        "d": busy < 0.999,
    }


def scan(question):
    given = {"steps": 3, "update": 56}
    maps = read_map(schedulers.lru, **given)
    simulated = run(schedulers.lru, **given)
    first = [one for one in simulated.occupied if one.start < simulated.steps[0][1]]
    updates = [event.partition for event in simulated.events if event.name == "update"]
    kept = read_map(schedulers.pinned, buffers=5, steps=2)[1]
    return {
        "a": maps == [list(range(6))] * 3,
        "b": len({one.buffer for one in first}) < 3,
        "c": len({updates.count(partition) for partition in updates}) > 1,
        "d": kept == list(range(6)),
    }


def shorter(question):
    plain = run(schedulers.write_behind).makespan
    gained = {
        "a": plain - run(schedulers.write_behind, update=14).makespan,
        "b": plain - run(schedulers.write_behind, read=6).makespan,
        "c": plain - run(schedulers.write_behind, buffers=6).makespan,
        "d": 0.0,
    }
    most = max(gained.values())
    assert sorted(gained.values())[-2] < most / 5
    return {name: value == most for name, value in gained.items()}


def stretched(question, read):
    given = {"read": read, "write": read, "rates": (3, 3, 14)}

    def ratio(**other):
        reads = spans(run(schedulers.write_behind, **{**given, "duplex": "half", **other}), "read")
        return took(reads[3]) / took(reads[0])

    simulated = run(schedulers.write_behind, **given, duplex="half")
    reads, writes = spans(simulated, "read"), spans(simulated, "write").values()
    beside = [sum(overlap(reads[number], write) for write in writes) / took(reads[number]) for number in (0, 3)]
    assert round(ratio(), 6) == 2
    return {
        "a": beside[0] == 0 and beside[1] > 0.999 and round(ratio(duplex="full"), 6) == 1,
        "b": round(ratio(duplex="full"), 6) == 2,
        "c": ratio(update=0.001) < 1.5,
        "d": ratio(buffers=6) < 1.5,
    }


def twice(question, dtype):
    on_disk = question.bars["disk tier, on disk"]
    (part,) = cut([(0, 4_194_304, dtype)], 4_194_304)
    one = part.state_bytes / part.numel  # of one generation, as the engine lays it out in a file
    assert f"has {one:g} bytes" in question.prompt and one == state(1, dtype) / 10**9
    return {
        "a": "gradients" in on_disk,
        "b": on_disk["optimizer state"] == 2 * one,
        "c": on_disk["optimizer state"] < 1.5 * one,
        "d": one > state(1, dtype) / 10**9,
    }


def policy(question, partitions, buffers):
    given = {"partitions": partitions, "buffers": buffers, "steps": 4}
    seen = question.reads
    return {
        "a": seen == read_map(schedulers.lru, **given),
        "b": seen == read_map(schedulers.alternating, **given),
        "c": seen == read_map(schedulers.pinned, **given),
        "d": all(step == list(range(partitions)) for step in seen),
    }


def buffer(question, write):
    given = case(buffers=2, read=8, write=write)
    tasks = question.tasks(given.work)
    simulated = simulate(tasks, given.hardware)
    of = {task.partition: task.buffer for task in tasks}
    assert of == {partition: partition % 2 for partition in range(6)}
    reads, updates, writes = (spans(simulated, name) for name in ("read", "update", "write"))
    shared = [
        (one, other) for one in reads for other in writes
        if one != other and of[one] == of[other] and overlap(reads[one], writes[other])
    ]  # fmt: skip
    sound = run(schedulers.write_behind, buffers=2, read=8, write=write)
    late = max(end for _, end in spans(sound, "write").values()) - max(end for _, end in spans(sound, "read").values())
    return {
        "a": not shared,
        "b": overlap(reads[1], updates[0]) > 0 and of[1] == of[0],
        "c": (2, 0) in shared,
        "d": late <= 0,
    }


def machines(question, price, dear):
    prices = {"rtx4090-nvme": price, "a100-80-server": 1.3, "h100-80-server": dear}
    bills = {
        name: plan(7 * 10**9, catalogue.machine(name), batch=8, sequence=1024).seconds_per_step * float(paid)
        for name, paid in prices.items()
    }
    cheapest, next_one, _ = sorted(bills.values())
    assert next_one > 1.15 * cheapest, bills
    named = {"a": "a100-80-server", "b": "rtx4090-nvme", "c": "h100-80-server"}
    return {choice: bills[name] == cheapest for choice, name in named.items()} | {"d": False}


def faster(question, read, update, write):
    simulated = run(schedulers.write_behind, read=read, update=update, write=write, rates=(10, 1, 1))
    expected = max(simulated.busy.values()) * 1000
    told = {choice.id: float(choice.text.removesuffix(" ms")) for choice in question.choices}
    assert len(set(told.values())) == 4
    return {name: abs(value - expected) < 1e-6 for name, value in told.items()}


def offloaded(question, parameters):
    moments = memory_of_a_training()
    kinds = list(dict.fromkeys(kind for held in moments for kind in held))
    away = {"PQRS"[kinds.index(kind)] for kind in ("masters", "moments")}
    return {choice.id: set(re.findall("[P-S]", choice.text.replace("alone", ""))) == away for choice in question.choices}


def which_training(question):
    parts = {kind: size for kind, size in memory_of_a_training()[1].items() if kind != "moments"}
    wanted = parts | {"moments": memory_of_a_training()[-1]["moments"]}
    assert sum(wanted.values()) == training(1) / 10**9
    return {choice.id: question.bars[choice.text] == wanted for choice in question.choices}


def on_the_card(question, parameters):
    moments = memory_of_a_training()
    over = [sum(held.values()) * parameters * 10**6 > 24e9 for held in moments]
    first = over.index(True) if any(over) else None
    between = [not over[place] for place in (3, 6)]
    return {"a": not any(over) and all(between), "b": first == 2, "c": first == 0, "d": first == 4}


CHOICES = {
    "l01-plot-kinds": offloaded,
    "g02-4": which_training,
    "l04-plot-gaps": gaps,
    "l04-plot-stretched": stretched,
    "g04-4": shorter,
    "l05-plot-twice": twice,
    "l06-plot-scan": scan,
    "l06-plot-map": policy,
    "l07-plot-buffer": buffer,
    "l08-plot-machines": machines,
    "g08-4": on_the_card,
    "l10-plot-faster": faster,
}
"""Question -> choice -> whether the second route finds it true; of one that is drawn, and the values drawn."""

TRACES = {
    "l04-plot-gaps": lambda: run(schedulers.no_overlap),
    "g04-4": lambda: run(schedulers.write_behind),
    "l06-plot-scan": lambda: run(schedulers.lru, steps=3, update=56),
    "l04-plot-stretched": lambda read: run(schedulers.write_behind, read=read, write=read, rates=(3, 3, 14), duplex="half"),
}
"""Timelines whose trace is made here."""
