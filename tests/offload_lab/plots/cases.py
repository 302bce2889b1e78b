"""Figures of every kind, plain ones and hard ones, for the tests that look at all of them."""

import numpy as np

from offload_lab import plots
from offload_lab.meter import Reading
from offload_lab.trace import Event

GB = 10**9
LONG = "model.layers.17.self_attention." * 12 + "weight"
HOSTILE = '"/></title><script>alert(1)</script>]]>&\x00\ud800\u202e日本語'


def events(count, read=0.1, write=0.11, update=0.02):
    """`count` partitions, read one after the other, updated when read, written when updated."""
    made, free = [], {"disk-read": 0.0, "cpu": 0.0, "disk-write": 0.0}
    for number in range(count):
        ready = 0.0
        for name, lane, seconds in (("read", "disk-read", read), ("update", "cpu", update), ("write", "disk-write", write)):
            start = max(free[lane], ready)
            free[lane] = ready = start + seconds
            made.append(Event(name, lane, number, start, ready, 0 if name == "update" else 10**8))
    return made


def of_lane(lane, name="copy", start=0.0, end=1.0, nbytes=1):
    return Event(name, lane, 0, start, end, nbytes)


def _flags(partitions, steps):
    numbers = np.add.outer(np.arange(partitions), np.arange(steps))
    return np.where(numbers % 7 == 0, plots.HIT, plots.READ) + np.where(numbers % 2 == 0, plots.WRITTEN, 0)


def _row(number, **more):
    return {"name": f"plan {number}", "seconds": {"cpu": 1.5, "disk-read": 2.0}, "bytes": {"RAM": GB}, "cost": 12.5} | more


def _readings(count):
    return [Reading(n / 10, GB, GB * (n % 2), GB, 8 * GB, GB * (n % 3), 9 * GB) for n in range(count)]


def figures():
    """{name: figure}: made anew at each call, since a test may look at what making costs."""
    seconds = [n / 10 for n in range(50)]
    hostile_lanes = [of_lane(HOSTILE), of_lane(LONG, start=0.5, end=2), of_lane("disk-read", name=HOSTILE)]
    tiers = {
        "accelerator": {"weights": [2 * GB] * 50, "gradients": [GB * (n % 5) / 3 for n in range(50)]},
        "disk": {"optimizer state": [8 * GB] * 50},
    }
    many_kinds = {f"kind {n}": [GB / (n + 1)] * 50 for n in range(20)}
    fitting = _row(3, fits=True, bytes={"accelerator": 22 * GB, "RAM": 60 * GB, "disk": 130 * GB})
    failing = _row(4, fits=False, why="208 GB do not fit into 80 GB", cost=1e9)
    return {
        "timeline": plots.timeline(events(8), source="measured"),
        "timeline-none": plots.timeline([], source="measured"),
        "timeline-one": plots.timeline(events(8)[:1], source="predicted"),
        "timeline-no-time": plots.timeline([Event("update", "cpu", 3, 5.0, 5.0, 0)] * 3, source="measured"),
        "timeline-thousand": plots.timeline(events(1000), source="predicted"),
        "timeline-negative": plots.timeline([of_lane("cpu", "update", -9.0, -8.5, 10**30)], source="measured"),
        "timeline-huge": plots.timeline([of_lane("cpu", "update", 0.0, 1e300)], source="predicted"),
        "timeline-names": plots.timeline(hostile_lanes, source="measured", title=HOSTILE + LONG),
        "timeline-lanes": plots.timeline([of_lane(f"lane {n}") for n in range(60)], source="predicted"),
        "compared": plots.predicted_over_measured(events(8, read=0.08), events(8)),
        "compared-none": plots.predicted_over_measured([], []),
        "compared-half": plots.predicted_over_measured([], events(3)),
        "compared-thousand": plots.predicted_over_measured(events(1000), events(900)),
        "compared-names": plots.predicted_over_measured(hostile_lanes, events(1), title=LONG),
        "memory": plots.memory(seconds, tiers, source="measured", limits={"accelerator": 4 * GB, "disk": GB}),
        "memory-none": plots.memory([], {"RAM": {"weights": []}}, source="measured"),
        "memory-one": plots.memory([-7.0], {"RAM": {"weights": [5]}}, source="predicted"),
        "memory-zero": plots.memory([1, 1], {"RAM": {"weights": [0, 0]}}, source="measured", limits={"RAM": 0}),
        "memory-long": plots.memory(range(10**5), {"RAM": {"weights": range(10**5)}}, source="measured"),
        "memory-names": plots.memory(seconds, {LONG: many_kinds, HOSTILE: {LONG: [1e30] * 50}}, source="quoted", title=HOSTILE),
        "memory-readings": plots.memory(*_tiers(9), source="measured"),
        "memory-meter": plots.MemoryPlot({"AdamW": _readings(30), "disk": _readings(3)}, "Two runs", 4 * GB, 2 * GB),
        "roofline": plots.roofline({"disk-read": 1.9, "disk-write": 1.4, "cpu": 0.3}, 2.3, source="measured"),
        "roofline-none": plots.roofline({}, 0, source="measured"),
        "roofline-zero": plots.roofline({"cpu": 0}, 0, source="measured"),
        "roofline-broken": plots.roofline({"cpu": 5.0, "disk-read": 0.001}, 2.0, source="measured"),
        "roofline-many": plots.roofline({f"{LONG} {n}": 10.0**n for n in range(60)}, 1e58, source="predicted", title=HOSTILE),
        "residency": plots.residency(_flags(8, 30), source="measured"),
        "residency-none": plots.residency([], source="measured"),
        "residency-one": plots.residency([[5]], source="measured", first_step=10**9),
        "residency-thousand": plots.residency(_flags(1000, 500), source="predicted", title=LONG),
        "residency-million": plots.residency(_flags(2, 10**6), source="predicted"),
        "bytes": plots.bytes_per_parameter(
            {"AdamW": {"weights": 2, "gradients": 2, "master": 4, "moments": 8}, "disk tier": {"weights": 2, "on disk": 10}},
            source="predicted",
        ),
        "bytes-none": plots.bytes_per_parameter({}, source="predicted"),
        "bytes-zero": plots.bytes_per_parameter({"a": {}, "b": {"weights": 0}}, source="predicted"),
        "bytes-tiers": plots.bytes_per_parameter(
            {LONG: {"accelerator": {"weights": 2}, "disk": {"optimizer state": 12}}, HOSTILE: {HOSTILE: {HOSTILE: 1e30}}},
            source="quoted",
            title=HOSTILE,
        ),
        "bytes-many": plots.bytes_per_parameter(
            {f"way {n}": {f"kind {k}": k for k in range(n)} for n in range(60)}, source="predicted"
        ),
        "plans": plots.plans([fitting, failing, {"name": "nothing known"}]),
        "plans-none": plots.plans([]),
        "plans-zero": plots.plans([_row(1, seconds={"cpu": 0}, bytes={"RAM": 0}, cost=0)]),
        "plans-names": plots.plans(
            [_row(1, name=LONG, fits=False, why=LONG * 3), _row(2, name=HOSTILE, bytes={HOSTILE: 1e30, LONG: 1}, why=HOSTILE)],
            title=HOSTILE,
            currency=HOSTILE,
            cost_of=LONG,
        ),
        "plans-many": plots.plans(
            [_row(n, cost=10.0**n, seconds={"cpu": 10.0**n}, bytes={f"tier {k}": k for k in range(n % 9)}) for n in range(40)]
        ),
    }  # fmt: skip


def _tiers(count):
    return plots.tiers_of(_readings(count))
