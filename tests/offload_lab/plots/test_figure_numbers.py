"""The numbers that the figures show, against arithmetic by hand; and what is refused."""

import itertools
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offload_lab import plots, stalls
from offload_lab.plots.drawing import WIDTH
from offload_lab.plots.rows import LEFT, RIGHT
from offload_lab.plots.runs import Run, busy_shares, doing, merged
from offload_lab.plots.scale import byte_label, second_label, share_label
from offload_lab.plots.stacked import thinned
from offload_lab.trace import Event

SVG = "{http://www.w3.org/2000/svg}"
# Two partitions. Read 0: 10–12, update 12–13; read 1: 12–16, update 16–17; write 1: 17–20. No write of 0.
STEP = [
    Event("read", "disk-read", 0, 10.0, 12.0, 400),
    Event("update", "cpu", 0, 12.0, 13.0, 0),
    Event("read", "disk-read", 1, 12.0, 16.0, 800),
    Event("update", "cpu", 1, 16.0, 17.0, 0),
    Event("write", "disk-write", 1, 17.0, 20.0, 600),
]


def row(figure, first, table=0):
    return next(list(cells[1:]) for cells in figure.tables()[table].rows if cells[0] == first)


def test_a_timeline_says_who_was_busy_and_what_was_waited_for():
    figure = plots.timeline(reversed(STEP), source="measured")
    # 10 seconds in all; 6 of reading, 2 of updating, 3 of writing.
    assert row(figure, "disk reads") == ["2", "6 s", "60 %", "1.2 kB", "200 bytes/s"]
    assert row(figure, "update") == ["2", "2 s", "20 %", "-", "-"]
    assert row(figure, "disk writes") == ["1", "3 s", "30 %", "600 bytes", "200 bytes/s"]
    # 10–12 and 13–16 reading, 12–13 and 16–17 updating, 17–20 writing.
    assert figure.run.waits == [
        (0, 2, "disk reads"), (2, 3, "update"), (3, 6, "disk reads"), (6, 7, "update"), (7, 10, "disk writes")
    ]  # fmt: skip
    assert row(figure, "waiting for disk reads", 1) == ["5 s", "50 %"]
    assert row(figure, "updating", 1) == ["2 s", "20 %"]
    # Of two stalls of three seconds the first one is named.
    assert "The longest stall: 3 s from 3 s, waiting for disk reads, before the update of partition 1." in figure.summary()
    assert [stall[2:] for stall in figure.run.stalls] == [("disk reads", 1), ("disk writes", None), ("disk reads", 0)]


def test_blocks_lie_where_their_seconds_are():
    svg = ElementTree.fromstring(plots.timeline(STEP, source="measured").svg())
    blocks = [(float(e.get("x")), float(e.get("width"))) for e in svg.iter(f"{SVG}rect") if e.get("height") == "30.0"]
    left, unit = LEFT, (WIDTH - LEFT - RIGHT) / 10
    starts = [0, 2, 2, 6, 7, 2, 6]  # reads, updates, write; then the updates of the step's own row
    expected = sorted((left + unit * start, unit * long) for start, long in zip(starts, [2, 4, 1, 1, 3, 1, 1], strict=True))
    for (x, wide), (wanted_x, wanted_wide) in zip(sorted(blocks), expected, strict=True):
        assert (x, wide) == pytest.approx((wanted_x, wanted_wide), abs=0.11)


def test_a_lane_that_stalls_does_not_know_is_waited_for_by_its_own_name():
    copies = [Event("copy", "host-to-device", 0, 0.0, 2.0, 8), Event("copy", "host-to-device", 1, 3.0, 4.0, 8)]
    run = Run.of([*copies, Event("update", "cpu", 0, 2.0, 3.0, 0), Event("publish", "cpu", 0, 4.0, 5.0, 0)])
    assert run.waits == [(0, 2, "host to device"), (2, 3, "update"), (3, 4, "host to device"), (4, 5, "other")]
    assert doing("host to device") == "waiting for host to device"


kinds = st.sampled_from([("read", "disk-read"), ("update", "cpu"), ("write", "disk-write"), ("copy", "host-to-device")])
tasks = st.lists(st.tuples(kinds, st.integers(0, 50), st.integers(0, 9)), max_size=25).map(
    lambda rows: [Event(*kind, n, float(start), float(start + long), 1) for n, (kind, start, long) in enumerate(rows)]
)


@settings(deadline=None)
@given(tasks)
def test_what_was_waited_for_covers_the_run_once_and_agrees_with_the_optimizers_own_account(events):
    run = Run.of(events)
    if run.seconds == 0:
        assert run.waits == []
        return
    assert run.waits[0][0] == 0 and run.waits[-1][1] == pytest.approx(run.seconds)
    assert all(one[1] == two[0] and one[2] != two[2] for one, two in itertools.pairwise(run.waits))
    shares = stalls.attribute(events, run.start, run.end)
    for label in ("update", "disk reads", "disk writes"):
        assert run.waited.get(label, 0.0) / run.seconds == pytest.approx(shares[label])


@given(tasks, st.integers(1, 40))
def test_columns_together_hold_what_the_spans_hold(events, columns):
    spans = merged((event.start, event.end) for event in events)
    assert all(one[1] < two[0] for one, two in itertools.pairwise(spans))
    covered = {second for event in events for second in range(int(event.start), int(event.end))}
    assert sum(right - left for left, right in spans) == len(covered)
    shares = busy_shares(spans, 60.0, columns)
    assert all(0 <= share <= 1 for share in shares)
    assert sum(shares) * 60 / columns == pytest.approx(len(covered))


def test_predicted_and_measured_are_compared_lane_by_lane():
    measured = [Event(e.name, e.lane, e.partition, 2 * e.start, 2 * e.end, e.nbytes) for e in STEP]
    figure = plots.predicted_over_measured(STEP, measured)
    assert figure.summary()[0] == "Predicted: 10 s. Measured: 20 s, 100 % more than predicted."
    assert figure.summary()[1] == "The lane that is farthest off: disk reads, predicted 6 s, measured 12 s."
    assert row(figure, "start to end") == ["10 s", "20 s", "2.00 × predicted"]
    assert row(figure, "update", 1) == ["2 s", "4 s", "2.00 × predicted"]
    same = plots.predicted_over_measured(STEP, STEP)
    assert same.summary() == ["Predicted: 10 s. Measured: 10 s, the same within half a percent."]


def test_memory_stacks_to_the_sum_and_names_the_peak():
    tiers = {"RAM": {"weights": [10, 10, 10], "gradients": [0, 20, 5]}, "disk": {"optimizer state": [0, 0, 7]}}
    figure = plots.memory([5.0, 6.0, 9.0], tiers, source="measured", limits={"RAM": 25})
    ram = "RAM: at most 30 bytes, at 1 s: gradients 20 bytes, weights 10 bytes. Limit: 25 bytes, which it passed."
    assert figure.summary() == ["Measured, over 4 s.", ram, "disk: at most 7 bytes, at 4 s: optimizer state 7 bytes."]
    assert row(figure, "RAM, together") == ["10 bytes", "30 bytes", "30 bytes", "15 bytes"]
    svg = ElementTree.fromstring(figure.svg())
    # The upper edge of the gradients, at the second moment, is three times as high as that of the weights.
    areas = [e.get("d") for e in svg.iter(f"{SVG}path") if e.get("class") == "edge" and e.get("d").endswith("Z")]
    weights, gradients, _ = ([float(y) for y in re.findall(r",([\d.]+)", area)] for area in areas)
    zero = weights[-1]
    assert (zero - gradients[1]) / (zero - weights[1]) == pytest.approx(3, abs=0.05)


@given(st.lists(st.integers(0, 9), max_size=300), st.integers(1, 40))
def test_thinning_keeps_the_ends_and_the_peak(totals, buckets):
    kept = thinned(totals, buckets)
    assert kept == sorted(set(kept)) and len(kept) <= max(2 * buckets + 2, 0)
    if totals:
        assert kept[0] == 0 and kept[-1] == len(totals) - 1 and max(totals) in [totals[moment] for moment in kept]


def test_a_roofline_gives_each_bound_as_a_share_of_the_step():
    figure = plots.roofline({"cpu": 0.5, "disk-read": 1.5}, 2.0, source="measured")
    assert figure.summary() == [
        "The step, measured: 2 s. The longest bound, predicted: 1.5 s, disk reads.",
        "The step reaches 75 % of what its hardware allows.",
    ]
    assert [cells[0] for cells in figure.tables()[0].rows] == ["disk reads", "update", "all after each other"]
    assert row(figure, "update") == ["500 ms", "25 %"] and row(figure, "all after each other") == ["2 s", "100 %"]
    broken = plots.roofline({"cpu": 3}, 2.0, source="measured").summary()[1]
    assert broken.startswith("The step is shorter than its bound")


def test_residency_from_the_events_of_two_steps():
    again = [Event("update", "cpu", 0, 0, 1, 0), Event("read", "disk-read", 1, 0, 1, 9), Event("update", "cpu", 1, 1, 2, 0)]
    flags = plots.residency_flags([STEP, again])
    assert flags.tolist() == [[plots.READ, plots.HIT], [plots.READ | plots.WRITTEN, plots.READ]]
    figure = plots.residency(flags, source="measured", first_step=7)
    # Four uses, one of them a hit; one of four cells written.
    said = "Of all uses 25 % were hits. Written: 25 % of all partitions a step."
    assert figure.summary() == [f"Measured: 2 partitions over 2 steps. {said}"]
    assert row(figure, "partition 0") == ["50 %", "50 %", "0 %"] and row(figure, "step 7", 1) == ["100 %", "0 %", "50 %"]
    assert plots.residency_flags([]).shape == (0, 0) and plots.residency_flags([[], []]).shape == (0, 2)


def test_a_large_map_is_aggregated_by_share():
    flags = np.zeros((100, 1000), np.uint8)
    flags[:50] = plots.READ
    figure = plots.residency(flags, source="predicted")
    by_partition = figure.tables()[0].rows
    assert len(by_partition) == 20 and by_partition[0] == ("partitions 0 to 4", "100 %", "0 %", "0 %")
    assert by_partition[10][1] == "0 %" and row(figure, "steps 0 to 49", 1) == ["50 %", "0 %", "0 %"]


def test_bytes_add_up():
    figure = plots.bytes_per_parameter({"AdamW": {"weights": 2, "moments": 8.5}}, source="predicted")
    assert row(figure, "AdamW") == ["2", "8.5", "10.5"] and "AdamW: 10.5" in figure.summary()[0]
    tiers = plots.bytes_per_parameter({"ours": {"RAM": {"weights": 2}, "disk": {"moments": 8}}}, source="predicted")
    assert row(tiers, "ours, RAM") == ["2", "-", "2"] and row(tiers, "ours, disk") == ["-", "8", "8"]


def test_plans_name_the_fastest_and_the_cheapest_of_those_that_fit():
    rows = [
        {"name": "a", "seconds": {"cpu": 1, "disk-read": 3}, "cost": 5, "fits": True},
        {"name": "b", "seconds": {"cpu": 2}, "cost": 9.5, "fits": True, "bytes": {"RAM": 1000}},
        {"name": "c", "seconds": {"cpu": 0.1}, "cost": 1, "fits": False, "why": "too small"},
    ]
    figure = plots.plans(rows, currency="EUR", cost_of="an hour")
    assert figure.summary() == [
        "3 plans, predicted; costs are of an hour.", "Not fitting: c.",
        "Fastest: b, 2 s a step at least.", "Cheapest: a, 5.00 EUR.",
    ]  # fmt: skip
    assert row(figure, "a") == ["yes", "3 s", "4 s", "3 s", "1 s", "-", "5.00 EUR"]
    assert row(figure, "c")[0] == "no (too small)"
    assert plots.plans([{"name": "x", "fits": False}]).summary()[-1] == "None of them fits."


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: plots.timeline([Event("read", "disk-read", 3, 2.0, 1.0, 0)], source="measured"), "ends at 1.0 s, before it"),
        (lambda: plots.timeline([Event("read", "l", 3, 0.0, float("nan"), 0)], source="measured"), "finite seconds"),
        (lambda: plots.timeline([Event("read", "l", 3, 0.0, 1.0, -1)], source="measured"), "moves -1 bytes"),
        (lambda: plots.timeline([Event("a", "l", 0, -1e308, 1e308, 0)], source="measured"), "too far apart"),
        (lambda: plots.memory([0, 1], {"RAM": {"weights": [1]}}, source="measured"), "weights in RAM has 1 numbers for 2"),
        (lambda: plots.memory([1, 0], {"RAM": {"weights": [1, 1]}}, source="measured"), "seconds falls"),
        (lambda: plots.memory([0], {"RAM": {"weights": [-1]}}, source="measured"), "weights in RAM is -1"),
        (lambda: plots.memory([float("inf")], {}, source="measured"), "not finite"),
        (lambda: plots.memory([0], {"RAM": {}}, source="measured", limits={"disk": 1}), "limits names disk"),
        (lambda: plots.roofline({"cpu": -1}, 1, source="measured"), "lane 'cpu' is -1"),
        (lambda: plots.roofline({}, 10**400, source="measured"), "step_seconds is inf"),
        (lambda: plots.roofline({}, None, source="measured"), "step_seconds is None"),
        (lambda: plots.residency([1, 2], source="measured"), "1 dimension:"),
        (lambda: plots.residency([[8]], source="measured"), "only 0 to 7"),
        (lambda: plots.residency([[0.5]], source="measured"), "whole numbers"),
        (lambda: plots.residency_flags([[Event("read", "l", -1, 0, 1, 0)]]), "partition -1"),
        (lambda: plots.bytes_per_parameter({"a": {"weights": "two"}}, source="measured"), "a: 'weights' is 'two'"),
        (lambda: plots.plans([{"nam": "a"}]), "row 0 of the plans has no field nam"),
        (lambda: plots.plans([{"cost": 1}]), "row 0 of the plans needs a name"),
        (lambda: plots.plans([{"name": "a", "cost": -1}]), "cost of 'a' is -1"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused_by_name(make, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        make()


@pytest.mark.parametrize(
    "seconds, label",
    [(0, "0 s"), (0.0123, "12.3 ms"), (1.5, "1.5 s"), (0.9999, "1 s"), (100, "100 s"), (599, "599 s"), (5400, "90 min"),
     (9000, "2.5 h"), (172_800, "2 d"), (-0.5, "-500 ms"), (3e-9, "3 ns"), (0.0009999, "1 ms")],
)  # fmt: skip
def test_seconds_have_three_digits_and_a_unit(seconds, label):
    assert second_label(seconds) == label


def test_shares_and_bytes_have_few_digits_however_large():
    shares = {0: "0 %", 0.001: "< 1 %", 0.0099: "< 1 %", 0.42: "42 %", 1: "100 %", 12: "1200 %"}
    assert {share: share_label(share) for share in shares} == shares
    assert byte_label(1e30) == "1e+15 PB" and byte_label(10**9) == "1 GB"
