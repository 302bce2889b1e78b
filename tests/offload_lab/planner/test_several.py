"""Several accelerators: what they send each other against arithmetic by hand, what each holds, and what they cost."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offload_lab import catalogue, plan
from offload_lab.between import Between, between
from offload_lab.given_machine import changed, machine, several
from offload_lab.hardware import Figure
from offload_lab.known_models import spec
from offload_lab.plan import Load, Placement

GIB, TB = 1 << 30, 10**12
LLAMA = 13_015_864_320
TORCH = Placement("gpu", "gpu", "gpu", "torch")
DEEPSPEED = Placement("ram", "gpu", "ram", "deepspeed")


def load(**more):
    return Load("llama-2-13b", LLAMA, "bfloat16", 1, 2048, **more)


def test_by_hand_on_eight():
    """26.0 GB of weights gathered by forward and by backward, and as many gradients summed: 7/8 of 78.1 GB from each."""
    sent = between(spec("llama-2-13b"), load(), TORCH, 8)
    assert sent == Between(8, 2, 1, 2 * 2 * LLAMA * 7 // 8, 2 * LLAMA * 7 // 8)
    assert sent.nbytes == pytest.approx(68.33e9, rel=1e-3)
    # With micro-batches each gathers and sums; DeepSpeed gathers for the repeated forward too, FSDP2 does not.
    four = load(accumulation=4, checkpointing="full")
    assert (between(spec("llama-2-13b"), four, TORCH, 8).gathers, between(spec("llama-2-13b"), four, TORCH, 8).sums) == (8, 4)
    assert between(spec("llama-2-13b"), four, DEEPSPEED, 8).gathers == 12
    assert between(spec("llama-2-13b"), load(), TORCH, 1).nbytes == 0 == between(spec("llama-2-13b"), load(), TORCH, 0).nbytes


def test_frozen_weights_are_gathered_and_have_no_gradients():
    model = spec("gpt2")
    frozen = replace(model, weights=tuple(replace(w, trainable=w.name == "tokens") for w in model.weights))
    sent = between(frozen, load(), TORCH, 2)
    assert sent.weights == 2 * 2 * 124_439_808 // 2 and sent.gradients == 2 * 50257 * 768 // 2


def test_nvlink_is_a_lane_of_its_own_and_says_its_formula():
    made = plan("llama-2-13b", machine(ram=512 * GIB, gpu="h100-80", gpus=8))
    bytes_each = 3 * 2 * LLAMA * 7 // 8
    assert made.time.between == pytest.approx(bytes_each, abs=2)
    assert made.time.lanes["between"] == pytest.approx(bytes_each / (0.75 * 450e9))
    for said in (
        "7/8 of all weights, gathered twice",
        "7/8 of all gradients, summed once",
        "Rajbhandari et al. 2020, section 7",
    ):
        assert said in made.why
    assert made.to_dict()["time"]["between"] == made.time.between
    # What is exchanged is hidden behind computing, and else takes its time.
    slow = replace(made.hardware, gpu_between=Figure(1e9, "assumed", "slow"))
    assert plan("llama-2-13b", slow).time.overlapped == pytest.approx(bytes_each / 1e9)
    assert plan("llama-2-13b", slow).time.bound_by == "between"


def test_without_wires_of_their_own_it_goes_over_the_hosts_link():
    """Two RTX 4090: half of 78.1 GB from each, down and up at once, beside what OffloadAdamW moves: 4 · n down, 2 · n up."""
    there = machine(ram=512 * GIB, gpu="rtx4090", gpus=2, disk=4 * TB)
    made = plan("tinyllama-1.1b", there, state="ram", weights="gpu", gradients="gpu", checkpointing="none", sequence=512)
    n, rate = 1_100_048_384, there.host_to_device.value
    exchanged = 3 * 2 * n // 2
    assert made.time.between == exchanged and "between" not in made.time.lanes
    assert made.time.lanes["link-down"] == pytest.approx((exchanged + 4 * n // 2) / rate)
    assert made.time.lanes["link-up"] == pytest.approx((exchanged + 2 * n // 2) / rate)
    assert "over the host's link, for no other is known" in made.why
    half = plan("tinyllama-1.1b", replace(there, link_duplex="half"), state="ram", weights="gpu", gradients="gpu", sequence=512)
    assert half.time.lanes["link"] == pytest.approx((2 * exchanged + 3 * n) / rate)
    one = plan("tinyllama-1.1b", replace(there, gpus=1), state="ram", weights="gpu", gradients="gpu", sequence=512)
    assert one.time.between == 0 and "sends" not in one.why


def test_each_holds_whole_layers_while_it_computes():
    """Llama-2-70B on eight: beside its share two layers of weights, a layer of gradients, and the embedding and the head."""
    made = plan("llama-2-70b", machine(ram=2048 * GIB, gpu="h100-80", gpus=8), checkpointing="full")
    layer = 2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672 + 2 * 8192
    outside = 2 * 32000 * 8192 + 8192
    assert made.tiers["gpu"]["buffers"] == 2 * (3 * layer + outside)
    assert "buffers" not in made.phases["steady"]["gpu"]


def test_layers_that_are_brought_from_ram_are_whole_on_each():
    one, four = (plan("llama-2-13b", machine(ram=512 * GIB, gpu="rtx4090", gpus=n), weights="ram") for n in (1, 4))
    for kind in ("weights", "gradients"):
        assert four.tiers["gpu"][kind] == one.tiers["gpu"][kind]


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["gpt2", "tinyllama-1.1b", "llama-2-7b"]), st.integers(1, 64), st.sampled_from(["rtx4090", "a100-80"]))
def test_the_lanes_add_up_however_many_there_are(model, count, card):
    made = plan(model, machine(ram=1024 * GIB, gpu=card, gpus=count, disk=4 * TB), sequence=512)
    time = made.time
    assert time.overlapped <= time.pipelined * (1 + 1e-9) <= time.one_after_another * (1 + 1e-9)
    assert time.one_after_another == pytest.approx(sum(time.lanes.values()) + time.fixed)
    assert time.between <= 3 * 2 * made.model.parameters * made.model.accumulation * 4 / 3 and (time.between > 0) == (count > 1)


def test_a_machine_with_more_accelerators_costs_in_proportion_and_says_so():
    one = catalogue.machine("h100-80-server")
    eight = several(one, 8)
    assert eight.gpus == 8 and eight.ram == one.ram and several(one, 1) is one
    assert eight.price.value == 8 * one.price.value and eight.price.source == "assumed" and "8/1 of $" in eight.price.note
    assert changed(one, gpus=8) == eight and changed(one, gpus=8, price=5.0).price.value == 5
    for name in ("laptop", "gb10"):
        with pytest.raises(ValueError, match=rf"gpus=8: {name} has"):
            several(catalogue.machine(name), 8)
    with pytest.raises(ValueError, match="gpus=0"):
        several(one, 0)
