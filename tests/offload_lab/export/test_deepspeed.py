"""The DeepSpeed configuration, field by field, for every placement."""

import itertools

import pytest

from bench.plans import plan
from offload_lab.export import ExportError, Recipe, as_deepspeed


def zero(*places, **more):
    return as_deepspeed(plan(*places, **more))["zero_optimization"]


def notes(*places, **more):
    return " ".join(as_deepspeed(plan(*places, **more))["_note"])


def test_zero_offload():
    config = as_deepspeed(plan("ram"))
    assert config["zero_optimization"]["stage"] == 2 and "aio" not in config
    assert config["zero_optimization"]["offload_optimizer"] == {"device": "cpu", "pin_memory": True}
    assert "offload_param" not in config["zero_optimization"]


def test_zero_infinity():
    config = as_deepspeed(plan("disk", offload={"directory": "/nvme/state"}))
    assert config["zero_optimization"]["stage"] == 3
    offload = config["zero_optimization"]["offload_optimizer"]
    assert offload["device"] == "nvme" and offload["nvme_path"] == "/nvme/state"
    assert offload["pipeline_read"] and offload["pipeline_write"] and offload["buffer_count"] >= 4 * 3
    assert config["aio"]["block_size"] == 2 * 2**20 and config["aio"]["queue_depth"] == 32


def test_weights_that_move():
    assert zero("ram", "ram", "ram")["offload_param"]["device"] == "cpu"
    disk = zero("disk", "disk", "disk", offload={"directory": "/nvme"})
    assert disk["offload_param"]["device"] == disk["offload_optimizer"]["device"] == "nvme"
    assert disk["offload_param"]["nvme_path"] == "/nvme"
    assert zero("ram", "ram", "ram")["stage"] == disk["stage"] == 3


def test_weights_in_ram_are_at_home_where_there_is_no_accelerator():
    here = zero("ram", "ram", "ram", gpus=0)
    assert "offload_param" not in here and here["stage"] == 2 and not here["offload_optimizer"]["pin_memory"]


def test_nothing_moves():
    config = as_deepspeed(plan("gpu"))
    assert not {"offload_optimizer", "offload_param"} & set(config["zero_optimization"]) and "aio" not in config


def test_batches_are_multiplied():
    config = as_deepspeed(plan("ram", gpus=4, model={"batch": 3, "accumulation": 5}))
    assert config["train_micro_batch_size_per_gpu"] == 3 and config["gradient_accumulation_steps"] == 5
    assert config["train_batch_size"] == 3 * 5 * 4


def test_the_optimizer_is_written_out():
    recipe = Recipe(lr=3e-4, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1, clip=0.5)
    config = as_deepspeed(plan("ram"), recipe)
    params = {"lr": 3e-4, "betas": [0.8, 0.95], "eps": 1e-6, "weight_decay": 0.1}
    assert config["optimizer"] == {"type": "AdamW", "params": params} and config["gradient_clipping"] == 0.5
    # DeepSpeed's own default is 1: what is to be left as it is has to be said
    assert as_deepspeed(plan("ram"), Recipe(clip=None))["gradient_clipping"] == 0


@pytest.mark.parametrize(("dtype", "section"), [("bfloat16", "bf16"), ("float16", "fp16"), ("float32", None)])
def test_precision(dtype, section):
    config = as_deepspeed(plan("ram", model={"dtype": dtype}))
    assert {"bf16", "fp16"} & set(config) == ({section} if section else set())
    assert section is None or config[section]["enabled"]


def test_gradients_summed_in_float32():
    assert as_deepspeed(plan("ram", offload={"gradients": "float32"}))["data_types"] == {"grad_accum_dtype": "fp32"}
    assert "data_types" not in as_deepspeed(plan("ram"))


@pytest.mark.parametrize("mib", [1, 64, 65, 500, 4096, None])
def test_buffers_stay_within_the_ram_budget(mib):
    """Sixteen buffers of float32; 64 MiB is what the smallest sub-group needs, 2 GiB what the largest takes."""
    budget = None if mib is None else mib << 20
    group = zero("disk", offload={"ram_budget": budget})["sub_group_size"]
    assert (1 << 20) <= group <= (32 << 20) and group % (1 << 20) == 0
    if budget is None or budget >= 2 << 30:
        assert group * 16 * 4 == 2 << 30
    elif mib >= 64:
        assert group * 16 * 4 <= budget < (group + (1 << 20)) * 16 * 4
    assert ("too small" in notes("disk", offload={"ram_budget": budget})) == (mib == 1)


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
@pytest.mark.parametrize("state", ["ram", "disk"])
def test_moments_of_fewer_bits_are_refused(state, dtype):
    with pytest.raises(ExportError, match=f"moments in {dtype}"):
        as_deepspeed(plan(state, offload={"state_dtype": dtype}))


def test_gradients_alone_do_not_move():
    with pytest.raises(ExportError, match="gradients in RAM"):
        as_deepspeed(plan("gpu", "gpu", "ram"))


@pytest.mark.parametrize("places", [*itertools.product(["ram", "disk"], ["gpu", "ram", "disk"], ["gpu", "ram", "disk"])])
def test_what_is_not_as_planned_is_said(places):
    said = notes(*places)
    assert "16 bytes a parameter" in said
    assert ("Gradients: planned" in said) == (places[0] != places[2])
    assert ("No step is published" in said) == (places[0] == "disk")


def test_more_that_is_said():
    assert "Nothing will be on disk" in notes("disk", model={"parameters": 2 * 2**20 // 4 - 1})
    assert "Nothing will be on disk" not in notes("disk", model={"parameters": 2 * 2**20 // 4})
    assert "checkpointing" in notes("ram", model={"checkpointing": "full"})
    assert 'overlap="forward"' in notes("ram", offload={"overlap": "forward"})
    assert "scaled" in notes("ram", model={"dtype": "float16"})
