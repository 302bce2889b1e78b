"""A step on a machine that need not exist: its bytes, its lanes, what it needs, and which bandwidth matters."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.next_machine import KNOBS, SHARE, Step, all_faster, bottleneck, faster, knobs, lanes, pooled, sensitivity
from offload_lab import catalogue
from offload_lab.hardware import Figure
from offload_lab.step_time import UTILISATION

MACHINES = ("h100-80-server", "gh200", "gb10", "rtx4090-cxl")
SMALL = Step(parameters=8_000_000, tokens=100, pieces=4)


@pytest.mark.parametrize("state", ["ram", "disk"])
@pytest.mark.parametrize("name", MACHINES)
def test_a_step_moves_the_bytes_that_the_course_counts(name, state):
    hardware = catalogue.machine(name)
    moved = Counter()
    for task in replace(SMALL, state=state).tasks(hardware):
        moved[task.lane] += task.nbytes
    n, linked, on_disk = SMALL.parameters, not hardware.unified, state == "disk"
    assert moved["cpu"] == 26 * n and moved["accelerator"] == 6 * n
    assert moved["device-to-host"] == 4 * n * linked and moved["host-to-device"] == 2 * n * linked
    assert moved["disk-read"] == moved["disk-write"] == 10 * n * on_disk


def test_a_gradient_waits_for_the_forward_and_what_computing_moves_keeps_pace_with_it():
    tasks = SMALL.tasks(catalogue.machine("h100-80-server"))
    assert tasks[0].kind == "forward" and [task.number for task in tasks] == list(range(len(tasks)))
    gradients = [task for task in tasks if task.kind == "gradient"]
    assert [task.after for task in gradients] == [(0,)] * 4
    before = [(0,), *((task.number,) for task in gradients[:-1])]
    assert [task.after for task in tasks if task.kind == "compute"] == before


@pytest.mark.parametrize("state", ["ram", "disk"])
@pytest.mark.parametrize("name", MACHINES)
def test_no_step_is_shorter_than_its_longest_lane_and_none_longer_than_all_of_them(name, state):
    hardware, step = catalogue.machine(name), Step(state=state)
    run = step.run(hardware)
    found = lanes(run, hardware)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert bottleneck(run, hardware) == max(found, key=found.get)
    assert max(found.values()) <= run.makespan * (1 + 1e-9) and run.makespan <= sum(found.values()) * (1 + 1e-9)
    assert found["compute"] == pytest.approx(6 * step.parameters * step.tokens / (0.4 * hardware.gpu_flops.value))
    assert ("the one memory" in found) is hardware.unified


@given(st.sampled_from(MACHINES), st.sampled_from(["ram", "disk"]), st.floats(0.25, 8))
def test_all_of_them_together_carry_their_factor_over_and_each_alone_at_most(name, state, times):
    hardware, step = catalogue.machine(name), replace(SMALL, state=state)
    base = step.run(hardware).makespan
    assert step.run(all_faster(hardware, times)).makespan == pytest.approx(base / times)
    if hardware.unified or (state == "disk" and hardware.disk_duplex == "half"):
        return  # where two lanes share one device, a faster part can slow a step: see `simulate`
    for knob in knobs(hardware):
        alone = step.run(faster(hardware, knob, times)).makespan
        assert min(base, base / times) * (1 - 1e-9) <= alone <= max(base, base / times) * (1 + 1e-9)


@pytest.mark.parametrize("name", MACHINES)
def test_what_matters_most_comes_first(name):
    hardware = catalogue.machine(name)
    rows = sensitivity(Step(), hardware)
    base = Step().run(hardware).makespan
    assert [half >= base * (1 - 1e-9) and twice <= base * (1 + 1e-9) for _name, half, twice in rows] == [True] * len(rows)
    spans = [half - twice for _name, half, twice in rows]
    assert spans == sorted(spans, reverse=True)
    assert len(rows) == (4 if hardware.unified else 5)


def test_a_state_that_moves_within_one_memory_frees_none_of_it():
    large = Step(parameters=13_000_000_000)
    gb10, hopper = catalogue.machine("gb10"), catalogue.machine("gh200")
    assert large.needs(gb10) == [("the one memory", 14 * 13e9, gb10.ram.value)]
    assert large.needs(hopper) == [] == replace(large, state="disk").needs(gb10)
    assert large.needs(replace(hopper, ram=Figure(1e9, "assumed")))[0][0] == "CPU's memory"
    assert replace(large, state="disk").needs(replace(hopper, disk=None)) == [("disk", 130e9, 0.0)]
    assert large.needs(replace(hopper, gpu_memory=Figure(1e9, "assumed")))[0][0] == "GPU's memory"


def test_hosts_of_a_pool_share_its_bandwidth():
    server = catalogue.machine("h100-80-server")
    assert pooled(server, 50.0, 400.0, 1).disk_read.value == 50, "its own wires are the limit"
    assert pooled(server, 50.0, 400.0, 8).disk_write.value == 25, "both ways, an eighth of 400"
    for wires, memory, hosts in ((50.0, 400.0, 0), (0.0, 1.0, 1), (1.0, 0.0, 1), (float("nan"), 1.0, 1)):
        with pytest.raises(ValueError, match="at least one host"):
            pooled(server, wires, memory, hosts)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"state": "gpu"}, "state='gpu'"),
        ({"tokens": 0}, "tokens=0"),
        ({"parameters": 7e9}, "parameters=7000000000.0"),
        ({"pieces": True}, "pieces=True"),
    ],
)
def test_a_step_that_is_none_is_refused(change, said):
    with pytest.raises(ValueError, match=said):
        Step(**change)


def test_what_a_machine_lacks_is_said():
    with pytest.raises(ValueError, match="laptop has no accelerator"):
        SMALL.run(catalogue.machine("laptop"))
    with pytest.raises(ValueError, match="'RAM' is not one of compute, "):
        faster(catalogue.machine("gh200"), "RAM")
    for times in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="above 0"):
            faster(catalogue.machine("gh200"), "link", times)


def test_every_part_of_the_catalogue_makes_a_machine_that_runs():
    names = catalogue.names()
    for gpu in names["gpu"]:
        for memory in names["memory"]:
            hardware = catalogue.assemble(
                "m", memory=catalogue.memory(memory), gpu=catalogue.gpu(gpu), disk=catalogue.disk("sata")
            )
            for state in ("ram", "disk"):
                run = replace(SMALL, state=state).run(hardware)
                assert run.makespan > 0 and bottleneck(run, hardware)
    assert all(set(fields) <= set(hardware.to_dict()) for fields in KNOBS.values())
    assert UTILISATION["data sheet"] == SHARE, "the planner assumes the same"
