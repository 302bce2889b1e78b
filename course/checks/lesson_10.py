"""Lesson 10: how long two sides take that share one memory. What is expected comes from the simulator."""

from __future__ import annotations

from course.contract import Case, Contract, Idea
from offload_lab.hardware import Figure, Hardware
from offload_lab.simulate import simulate
from offload_lab.work import TaskList
from quizzes.say import N_

GB = 1e9


def simulated(computed: float, updated: float, accelerator: float, cpu: float, memory: float) -> float:
    """Seconds until the accelerator has moved `computed` bytes and the CPU `updated`, both from the start, in the simulator.

    Alone they draw `accelerator` and `cpu` bytes a second, of a `memory` that is as fast as the faster of them, or wide enough
    for both. Raises ValueError for another memory.
    """
    shared = memory < accelerator + cpu
    if shared and memory != max(accelerator, cpu):
        raise ValueError(f"memory={memory}: the simulator's one memory is as fast as the faster side")
    machine = Hardware(
        "one memory",
        ram=Figure(0, "assumed"),
        dram_bandwidth=Figure(cpu, "assumed"),
        gpu_bandwidth=Figure(accelerator, "assumed"),
        unified=shared,
    )
    tasks = TaskList()
    tasks.put("compute", "accelerator", 0, round(computed))
    tasks.put("update", "cpu", 0, round(updated))
    return simulate(tasks, machine).makespan


def _each(accelerator: float, cpu: float, memory: float) -> tuple[float, float]:
    return min(accelerator, memory / 2), min(cpu, memory / 2)


def _added(computed: float, updated: float, accelerator: float, cpu: float, memory: float) -> float:
    return (computed + updated) / (accelerator + cpu)


def _own_lanes(computed: float, updated: float, accelerator: float, cpu: float, memory: float) -> float:
    return max(computed / accelerator, updated / cpu)


def _one_after_the_other(computed: float, updated: float, accelerator: float, cpu: float, memory: float) -> float:
    return computed / accelerator + updated / cpu


def _half_to_the_end(computed: float, updated: float, accelerator: float, cpu: float, memory: float) -> float:
    mine, theirs = _each(accelerator, cpu, memory)
    return max(computed / mine, updated / theirs)


def _all_through_memory(computed: float, updated: float, accelerator: float, cpu: float, memory: float) -> float:
    return (computed + updated) / memory


def _bound(computed: float, updated: float, accelerator: float, cpu: float, memory: float) -> float:
    return max(computed / accelerator, updated / cpu, (computed + updated) / memory)


def _always_shared(computed: float, updated: float, accelerator: float, cpu: float, memory: float) -> float:
    """Half each, even where that is more than one side can draw."""
    least = min(computed, updated)
    rest, rate = (computed - least, accelerator) if computed > updated else (updated - least, cpu)
    return 2 * least / memory + rest / rate


def _case(numbers: tuple[float, float, float, float, float], hint: str) -> Case:
    return Case(numbers, simulated(*numbers), hint)


_SHARES = N_(
    "While both want the memory, each gets half of it, or what it can draw alone if that is less. The simulator shares it so."
)
_LATER = N_("When one side has ended, the other has the memory to itself: it goes on at the rate that it has alone.")

shared_seconds = Contract(
    "shared_seconds",
    [
        _case((150 * GB, 150 * GB, 300 * GB, 200 * GB, 300 * GB), _SHARES),
        _case((60 * GB, 210 * GB, 300 * GB, 200 * GB, 300 * GB), _LATER),
        _case((240 * GB, 60 * GB, 300 * GB, 200 * GB, 300 * GB), _LATER),
        _case(
            (150 * GB, 250 * GB, 300 * GB, 100 * GB, 300 * GB),
            N_("This CPU cannot draw half of the memory. A share that it cannot use makes it no faster."),
        ),
        _case(
            (100 * GB, 100 * GB, 200 * GB, 100 * GB, 500 * GB),
            N_("Here the memory is wide enough for both at once: half of it is more than either can draw alone."),
        ),
        _case((42 * GB, 182 * GB, 273 * GB, 136.5 * GB, 273 * GB), N_("42 and 182 GB on the figures of a DGX Spark.")),
        _case((150 * GB, 0.0, 300 * GB, 200 * GB, 300 * GB), N_("With nothing to update, the accelerator has it all.")),
        Case(
            (GB, GB, 300 * GB, 0.0, 300 * GB), ValueError, N_("A bandwidth that is not above 0 is no bandwidth: a ValueError.")
        ),
    ],
    [
        Idea(
            N_("You add the two bandwidths. They are drawn from one memory, and it has no more than its own."),
            _added,
        ),
        Idea(
            N_(
                "You give each side a lane of its own, as on a link that is full duplex. Here they share one: what one takes, "
                "the other does not get."
            ),
            _own_lanes,
        ),
        Idea(
            N_("You let one side wait for the other. They run at the same time, each with a share of the memory."),
            _one_after_the_other,
        ),
        Idea(
            N_("You halve the bandwidth to the very end. When one side has ended, the other has the memory to itself."),
            _half_to_the_end,
        ),
        Idea(
            N_(
                "You divide all bytes by the memory. That is a bound, and a good one; but when only the CPU is left, it cannot "
                "draw all of that by itself."
            ),
            _all_through_memory,
        ),
        Idea(
            N_(
                "You take the longest of three bounds. No schedule beats it, but equal sharing does not reach it: what the "
                "slower side has left over at the end goes at its own rate."
            ),
            _bound,
        ),
        Idea(
            N_("You give each side half of the memory, even where that is more than it can draw by itself."),
            _always_shared,
        ),
        *(
            Idea(
                N_("You are off by a factor of eight everywhere. Bandwidths here are bytes a second, not bits."),
                lambda *numbers, factor=factor: factor * simulated(*numbers),
            )
            for factor in (8.0, 0.125)
        ),
    ],
    N_("Who ends first, and when? How much has the other one left then, and how fast does it go on?"),
)
