"""Plans against arithmetic by hand, and what a plan must be whatever is asked."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from offload_lab import ModelSpec, catalogue, plan
from offload_lab.comparing import compare, table
from offload_lab.given_machine import changed, machine
from offload_lab.hardware import Figure, Hardware
from offload_lab.known_models import spec
from offload_lab.placing import RUNTIME, pinned
from offload_lab.plan import PHASES

GIB, TB = 1 << 30, 10**12


def held(made, tier, phase="peak"):
    kinds = dict(made.phases[phase].get(tier, {}))
    kinds.pop("runtime", None)
    return kinds


def test_gpt2_in_float32_in_ram_by_hand():
    """Weight 4, gradient 4, moments 8 bytes a parameter. A token keeps, in a layer of width 768, 16 · 768 elements of 4 bytes,
    two masks of 768 bytes, and 12 sums; besides layers two inputs, a mask and 50,257 logits."""
    n, w, tokens = 124_439_808, 768, 1024
    made = plan("gpt2", machine(ram=16 * GIB), dtype="float32", state="ram")
    ram = held(made, "ram")
    assert made.fits and made.placement.runs_with == "offload_lab" and held(made, "gpu") == {}
    assert (ram["weights"], ram["gradients"], ram["moments"]) == (4 * n, 4 * n, 8 * n) and "master" not in ram
    assert ram["activations"] == tokens * (12 * (16 * w * 4 + 2 * w + 12 * 4) + 2 * w * 4 + w + 4 * 50257)
    assert held(made, "ram", "construction") == {"weights": 4 * n}
    assert "activations" not in held(made, "ram", "steady")


def test_llama_13b_on_a_24_gib_card_by_hand():
    """26.0 GB of weights are more than 25.8 GB. Beside RAM for 2 · n of weights no 12 · n + 4 · n of state fit into 128 GiB."""
    n = 13_015_864_320
    desktop = machine(ram=128 * GIB, gpu_memory=24 * GIB, disk=2 * TB, link="pcie4x16")
    made = plan("llama-2-13b", desktop)
    assert made.fits and "13,015,864,320 bfloat16 weights are 26.0 GB and do not fit on an accelerator of 25.8 GB" in made.why
    assert "moving optimizer state alone does not work" in made.why and "weights must move too" in made.why
    assert (made.placement.state, made.placement.weights, made.placement.gradients) == ("disk", "ram", "disk")
    assert "state on disk, gradients on disk, weights in RAM" in str(made) and "gradients in RAM" not in made.why
    assert held(made, "disk") == {"master": 4 * n, "moments": 8 * n, "gradients": 4 * n}
    assert held(made, "ram")["weights"] == 2 * n
    assert made.total("gpu") <= 24 * GIB and made.total("ram") <= 128 * GIB
    alone = plan("llama-2-13b", desktop, weights="gpu", checkpointing="none")
    assert not alone.fits and alone.total("gpu") >= 2 * n
    tried = {str(t.placement): t for t in alone.tried}
    first = tried["state on disk, gradients on the accelerator, weights on the accelerator"]
    assert not first.fits and "weights 26.0 GB" in first.why and "has 25.8 GB" in first.why


def test_llama_7b_on_an_80_gib_card_by_hand():
    """On the card 2 + 2 bytes a parameter and activations; in RAM 8 + 2, and three slabs of 4 for partitions of 16 Mi."""
    n, token = 6_738_415_616, 2 * (8 * 4096 + 4 * 11008) + 4 * 32
    made = plan("llama-2-7b", machine(ram=256 * GIB, gpu="h100-80", disk=2 * TB))
    assert made.fits and (made.placement.state, made.placement.weights) == ("ram", "gpu")
    activations = 2048 * (32 * token + 2 * 2 * 4096 + 4 * 32000)
    assert held(made, "gpu") == {"weights": 2 * n, "gradients": 2 * n, "activations": activations}
    ram = held(made, "ram")
    assert (ram["moments"], ram["master"], ram["staging"]) == (8 * n, 2 * n, 3 * 4 * (16 << 20)) and "copies" not in ram
    assert ram.get("record padding", 0) < 1 << 20 and "disk" not in made.tiers
    assert made.tiers["gpu"]["runtime"] == RUNTIME["gpu"]
    assert made.targets.peak_gpu_bytes == 4 * n + activations + RUNTIME["gpu"]


def test_mistral_7b_on_disk_without_a_card_by_hand():
    """10 bytes a parameter of state do not fit beside 4 of weights and gradients in 48 GiB; on disk they are 12, twice."""
    n = 7_241_732_096
    made = plan("mistral-7b", machine(ram=48 * GIB, disk=2 * TB), sequence=512)
    assert made.fits and (made.placement.state, made.placement.weights) == ("disk", "ram")
    disk = held(made, "disk")
    assert (disk["moments"], disk["master"], disk["weights"]) == (8 * n, 2 * n, 2 * n)
    assert disk["second generation"] == sum(disk.values()) // 2
    assert made.time.disk_written == disk["second generation"]  # every step is published whole
    resident = sum(held(made, "ram").get(kind, 0) for kind in ("moments", "master"))
    assert 10 * n - resident == pytest.approx(made.time.disk_read, rel=1e-4)
    assert made.total("ram") <= 48 * GIB and made.offload.ram_budget < 48 * GIB - 4 * n


def test_llama_70b_on_eight_cards_by_hand():
    """Of 4 bytes a parameter each card has an eighth; activations of one sequence are each card's own."""
    n = 68_976_648_192
    made = plan("llama-2-70b", machine(ram=2048 * GIB, gpu="h100-80", gpus=8), checkpointing="full")
    gpu = held(made, "gpu")
    assert (gpu["weights"], gpu["gradients"]) == (n // 4, n // 4) and made.tiers["gpu"]["runtime"] == RUNTIME["gpu"]
    # Inputs of two norms, of the projections, of the output's and of the network, and queries: six widths; keys, values: 1,024.
    layer = 2048 * (2 * (6 * 8192 + 2 * 1024 + 4 * 28672) + 4 * 64)
    assert gpu["activations"] == 80 * 2048 * 2 * 8192 + layer + 2048 * (2 * 2 * 8192 + 4 * 32000)
    assert made.time.tokens == 8 * 2048


ROUND = Hardware(
    "round figures",
    Figure(10 * 10**9, "assumed"),
    Figure(28e9, "assumed"),
    disk=Figure(TB, "assumed"),
    disk_read=Figure(2e9, "assumed"),
    disk_write=Figure(1e9, "assumed"),
    disk_mixed=Figure(1.5e9, "assumed"),
    disk_endurance=Figure(100 * TB, "assumed"),
    cpu_flops=Figure(1e12, "measured"),
    price=Figure(2.0, "assumed"),
)


def test_the_seconds_of_a_step_by_hand():
    """10^9 bfloat16 parameters, all state on disk: 10 GB are read and 12 written, 20 of these together at 1.5 GB/s and 2 at 1;
    30 bytes a parameter go through memory at 28 GB/s, 2 of them, the gradients, before anything else; 6 · 10^9 operations a
    token, and attention's."""
    n = 10**9
    made = plan(n, ROUND, state="disk", ram_budget="300MiB", sequence=100, batch=10, utilisation=0.5, run_tokens=2_500_000)
    time, shape = made.time, ModelSpec.sized(n).architecture
    assert time.disk_written == pytest.approx(12 * n, rel=1e-3)
    read = time.disk_read
    assert time.lanes["disk"] == pytest.approx(2 * read / 1.5e9 + (time.disk_written - read) / 1e9)
    assert time.lanes["dram"] == pytest.approx(30 * n / 28e9, rel=1e-3)
    compute = 1000 * (6 * n + 12 * shape.layers * shape.width * 100) / 0.5e12
    assert time.lanes["compute"] == pytest.approx(compute)
    assert time.one_after_another == pytest.approx(sum(time.lanes.values()))
    assert time.pipelined == pytest.approx(compute + 2 * n / 28e9 + time.lanes["disk"])
    assert time.overlapped == pytest.approx(max(compute + time.lanes["dram"], time.lanes["disk"]))
    assert time.tokens == 1000 and time.tokens_to_hide == pytest.approx(1000 * time.lanes["disk"] / compute, abs=1)
    assert time.wear == pytest.approx(1000 * time.disk_written / (100 * TB))
    assert time.steps == 2500 and time.run_hours == pytest.approx(2500 * made.seconds_per_step / 3600)
    assert time.run_cost == made.targets.cost == pytest.approx(2.0 * time.run_hours)


def test_what_is_written_beyond_what_is_read_goes_no_faster_than_both_together():
    quick = replace(ROUND, disk_write=Figure(8e9, "assumed"))
    time = plan(10**9, quick, state="disk", ram_budget="7GB", sequence=16).time
    assert time.disk_written > 2 * time.disk_read > 0
    assert time.lanes["disk"] == pytest.approx((time.disk_read + time.disk_written) / 1.5e9)
    only_writes = plan(10**9, quick, state="disk", ram_budget="20GB", sequence=16).time
    assert only_writes.disk_read == 0 and only_writes.lanes["disk"] == pytest.approx(only_writes.disk_written / 8e9)


def test_what_a_step_takes_beside_its_bytes():
    """3 s a step, 5 s a tensor, and 7 s wherever it is made durable: each step, every fourth, never."""
    told = {"step_seconds": 3.0, "tensor_seconds": 5.0, "publish_seconds": 7.0}
    slow = replace(ROUND, **{name: Figure(value, "assumed") for name, value in told.items()})
    tensors = sum(weight.numel > 0 and weight.trainable for weight in spec("gpt2").each())
    for durability, published in (("step", 1), (4, 0.25), ("checkpoint", 0)):
        without, made = (plan("gpt2", one, state="disk", durability=durability, sequence=16).time for one in (ROUND, slow))
        assert made.fixed == pytest.approx(3 + 5 * tensors + 7 * published) and without.fixed == 0
        for name in ("one_after_another", "pipelined", "overlapped"):
            assert getattr(made, name) - getattr(without, name) == pytest.approx(made.fixed)
    there = replace(machine(ram=64 * GIB, gpu_memory=64 * GIB), **{name: getattr(slow, name) for name in told})
    assert plan("gpt2", there, state="gpu", sequence=16).time.fixed == 0, "torch's own update is not measured by these"


def test_a_step_that_is_made_durable_every_fourth_time_counts_its_share():
    """12 bytes of each parameter are written by one step of four, and by the other three what was read."""
    time = plan(10**9, ROUND, state="disk", ram_budget="300MiB", durability=4, sequence=16).time
    assert time.disk_written == pytest.approx((12 * 10**9 + 3 * time.disk_read) / 4, rel=1e-3)


def test_a_full_duplex_disk_reads_while_it_writes():
    made = plan(10**9, replace(ROUND, disk_duplex="full"), state="disk", ram_budget="300MiB", sequence=16)
    assert made.time.lanes["disk-write"] == pytest.approx(made.time.disk_written / 1e9)
    assert made.time.lanes["disk-read"] == pytest.approx(made.time.disk_read / 2e9)


def test_what_is_not_known_leaves_the_time_out_and_says_so():
    made = plan("gpt2", replace(ROUND, disk_read=None), state="disk")
    assert made.fits and made.time is None and made.targets.seconds_per_step is None
    assert "disk_read of round figures is not known" in made.why


def test_one_memory_for_both_counts_once():
    """What fits into two memories of a size does not into one that both share."""
    apart = plan(10**9, machine(ram=64 * GIB, gpu_memory=64 * GIB), state="gpu", sequence=64)
    room = apart.total("gpu") + RUNTIME["ram"] // 2
    two = changed(apart.hardware, ram=room, gpu_memory=room, disk=None, price=None)
    assert plan(10**9, two, state="gpu", sequence=64, checkpointing="none").fits
    one = plan(10**9, replace(two, unified=True), state="gpu", sequence=64, checkpointing="none")
    assert not one.fits and "the accelerator's" in one.why


def test_the_disk_waits_while_what_stays_in_ram_is_updated():
    """Nothing is published: the update of the resident share passes with the disk idle, but for what the buffers hold."""
    made = plan(10**9, ROUND, state="disk", ram_budget=5 * 10**9, durability="checkpoint", sequence=16)
    time, kept = made.time, held(made, "ram")
    share = (kept["moments"] + kept["master"]) / (10 * 10**9)
    assert 0.4 < share < 0.5
    update = 28 * 10**9 * share / 28e9  # without a copy of the weights, 28 bytes a parameter
    ahead = 4 * 10 * (4 << 20) / 2e9  # four buffers of 4 Mi elements, 10 bytes each
    both = 10 * 10**9 * (1 - share)
    assert time.lanes["disk"] == pytest.approx(2 * both / 1.5e9, rel=1e-3)
    first = 2 * 10**9 / 28e9  # gradients are looked through
    assert time.pipelined - time.lanes["compute"] == pytest.approx(time.lanes["disk"] + update - ahead + first, rel=1e-3)


def test_a_slow_update_waits_for_the_first_read_and_is_followed_by_the_last_write():
    slow = replace(ROUND, dram_bandwidth=Figure(1e9, "assumed"))
    made = plan(10**9, slow, state="disk", ram_budget="500MiB", sequence=16)
    ends = 10 * (4 << 20) / 2e9 + 12 * (4 << 20) / 1e9
    assert made.time.pipelined - made.time.lanes["compute"] == pytest.approx(made.time.lanes["dram"] + ends, rel=1e-4)


def test_pinned_memory_is_whole_powers_of_two():
    assert [pinned(n) for n in (0, 1, 2, 3, 1 << 20, (1 << 20) + 1, 4347592704 * 2)] == [0, 1, 2, 4, 1 << 20, 1 << 21, 1 << 34]


def test_a_module_is_planned_as_it_is():
    """LoRA: frozen weights take their bytes, and neither gradients nor state."""
    model = torch.nn.Sequential(torch.nn.Linear(1000, 1000, bias=False), torch.nn.Linear(1000, 10, bias=False)).bfloat16()
    model[0].weight.requires_grad_(False)
    made = plan(model, machine(ram=GIB + RUNTIME["ram"]), state="ram")
    ram = held(made, "ram")
    assert (ram["weights"], ram["gradients"], ram["moments"]) == (2 * 1_010_000, 2 * 10_000, 8 * 10_000)
    assert "activations" not in ram and "Activations are not counted" in made.why


@pytest.mark.parametrize(
    "wrong, named",
    [
        ({"model": 0}, r"parameters=0: a whole number"),
        ({"model": "gpt5"}, r"model='gpt5' is not known"),
        ({"model": 1.5}, r"model=1\.5: a ModelSpec"),
        ({"dtype": "int8"}, r"dtype='int8': one of 'float32'"),
        ({"batch": 0}, r"batch=0: a whole number of at least 1"),
        ({"sequence": 4096}, r"sequence=4,096: this model has 1,024 positions"),
        ({"accumulation": True}, r"accumulation=True: a whole number"),
        ({"checkpointing": "half"}, r"checkpointing='half': one of 'auto'"),
        ({"state": "tape"}, r"state='tape': one of 'auto'"),
        ({"weights": "gpu"}, r'weights="gpu": the machine described has no accelerator'),
        ({"gradients": "disk"}, r'gradients="disk": the machine described has no disk'),
        ({"ram_budget": "much"}, r"ram_budget='much': cannot read"),
        ({"run_tokens": -1}, r"run_tokens=-1: a finite number above 0"),
        ({"loss": float("nan")}, r"loss=nan"),
        ({"utilisation": 2}, r"utilisation=2: a share"),
        ({"depth": 1}, r"depth=1"),
        ({"state_dtype": "int4"}, r"state_dtype='int4'"),
        ({"durability": "never", "hardware": machine(ram=GIB, disk=TB), "state": "disk"}, r"durability='never'"),
    ],
    ids=str,
)
def test_wrong_arguments_are_named(wrong, named):
    arguments = {"model": "gpt2", "hardware": machine(ram=16 * GIB), **wrong}
    with pytest.raises(ValueError, match=named):
        plan(**arguments)


def test_hardware_that_is_none_is_told():
    with pytest.raises(TypeError, match=r"hardware='laptop': a Hardware is needed"):
        plan("gpt2", "laptop")
    with pytest.raises(ValueError, match=r"no system runs with state='gpu', weights='ram'"):
        plan("gpt2", catalogue.machine("h100-80-server"), state="gpu", weights="ram")
    with pytest.raises(ValueError, match="give gpu or gpu_memory"):
        machine(ram=GIB, link="pcie4x16")


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 3 * 10**9),
    st.sampled_from(["float32", "bfloat16", "float16"]),
    st.integers(1, 100),
    st.integers(0, 80),
    st.integers(0, 1000),
)
def test_what_fits_fits_and_more_memory_never_takes_it_away(parameters, dtype, ram, gpu, disk):
    def on(ram):
        sizes = {"ram": ram * GIB, "gpu_memory": gpu * GIB or None, "disk": disk * 10**9 or None}
        return plan(parameters, machine(**sizes), dtype=dtype, sequence=64)

    made = on(ram)
    for phase in PHASES:
        for tier in made.phases[phase]:
            if made.fits:
                assert made.total(tier, phase) <= made.capacity[tier]
    assert made.fits == any(tried.fits for tried in made.tried)
    if made.fits:
        assert on(2 * ram).fits
    if made.time is not None:
        assert made.time.overlapped <= made.time.pipelined * (1 + 1e-9) <= made.time.one_after_another * (1 + 1e-9)


def test_machines_are_compared_by_what_a_run_costs():
    plans = compare("llama-2-7b", [catalogue.machine(n) for n in ("laptop", "h100-80-server", "rtx4090-nvme")], 1e9)
    assert [made.fits for made in plans] == [True, True, False]
    costs = [made.time.run_cost for made in plans if made.fits]
    assert costs == sorted(costs)
    for made in plans[:2]:
        hours = -(-(10**9) // 2048) * made.seconds_per_step / 3600
        assert made.time.run_cost == pytest.approx(hours * made.hardware.price.value)
        assert f"${made.time.run_cost:,.2f}" in table(plans)
    assert "does not fit" in table(plans)


def test_gradients_that_are_summed_over_several_backwards_are_not_given_up_during_one():
    alone = plan("llama-3-8b", machine(ram=64 * GIB, gpu="rtx4090", disk=TB))
    assert alone.offload.overlap == "backward" and alone.placement.runs_with == "offload_lab"
    summed = plan("llama-3-8b", machine(ram=64 * GIB, gpu="rtx4090", disk=TB), accumulation=16)
    assert not (summed.fits and summed.offload.overlap == "backward")
    assert any("over 16 they are summed" in tried.why for tried in summed.tried)


def test_what_was_asked_for_is_not_dropped():
    card = machine(ram=32 * GIB, gpu="t4", disk=TB)
    for asked in ({"state_dtype": "int8"}, {"ram_budget": 300 << 20}, {"partition_size": 1 << 20}):
        made = plan("gpt2-xl", card, **asked)
        assert made.placement.runs_with == "offload_lab"
    with pytest.raises(ValueError, match=r"state_dtype: only OffloadAdamW has such a setting.*weights='ram'"):
        plan("gpt2-xl", card, state_dtype="int8", weights="ram")
    for wrong in ("banana", 0, -1, True, 1.5):
        with pytest.raises(ValueError, match="durability="):
            plan("gpt2", machine(ram=8 * GIB), durability=wrong)


def test_each_accelerator_has_a_process_and_slabs_of_its_own():
    one, eight = (plan("llama-2-7b", machine(ram=512 * GIB, gpu="h100-80", gpus=n), state="ram") for n in (1, 8))
    for kind in ("runtime", "staging"):
        assert eight.tiers["ram"][kind] == 8 * one.tiers["ram"][kind]
