"""The Accelerate file: its fields, Accelerate's own reader, and what it says or refuses."""

import pytest
import yaml

from bench.plans import plan
from offload_lab.export import ExportError, Recipe, as_accelerate

ALL_RAM = ("ram", "ram", "ram")


def comments(text):
    return " ".join(line.lstrip("# ") for line in text.splitlines() if line.startswith("#"))


def fields(*places, kind=None, file=None, recipe=None, **more):
    return yaml.safe_load(as_accelerate(plan(*places, **more), recipe, kind, file))


def test_plain():
    text = as_accelerate(plan("disk", offload={"directory": "/nvme", "ram_budget": 1 << 30}))
    assert yaml.safe_load(text)["distributed_type"] == "NO" and yaml.safe_load(text)["num_processes"] == 1
    said = comments(text)
    wanted = 'tier="disk", directory="/nvme", durability="step", existing="resume", depth=4, ram_budget=1073741824'
    assert f"OffloadPolicy({wanted})" in said and "torch.bfloat16" in said
    assert fields("ram", gpus=3)["distributed_type"] == "MULTI_GPU" and fields("ram", gpus=3)["num_processes"] == 3
    on_cpu = fields(*ALL_RAM, gpus=0)
    assert on_cpu["use_cpu"] and on_cpu["distributed_type"] == "NO" and "gpu_ids" not in on_cpu


def test_gradients_that_are_used_up_during_backward():
    wanted = ("disk", "gpu", "ram")
    alone = comments(as_accelerate(plan(*wanted, offload={"overlap": "backward"})))
    assert 'overlap="backward")' in alone and "Nothing can be clipped" in alone and "Gradients stay" not in alone
    together = comments(as_accelerate(plan(*wanted, gpus=2, offload={"overlap": "backward"})))
    assert 'overlap="backward"' not in together and "Gradients stay beside the weights until the step, not in RAM" in together


def test_the_kind_follows_from_where_weights_are():
    assert fields("ram")["distributed_type"] == "NO"
    assert fields(*ALL_RAM)["distributed_type"] == "FSDP"
    assert fields("disk", "disk", "disk", file="ds.json", kind="deepspeed")["distributed_type"] == "DEEPSPEED"


def test_fsdp2():
    text = as_accelerate(plan(*ALL_RAM, gpus=2, model={"checkpointing": "full"}))
    fsdp = yaml.safe_load(text)["fsdp_config"]
    assert fsdp["fsdp_version"] == 2 and fsdp["fsdp_offload_params"] and fsdp["fsdp_activation_checkpointing"]
    assert "no masters" in comments(text)
    assert not fields("gpu", kind="fsdp2", gpus=2)["fsdp_config"]["fsdp_offload_params"]
    # with "bf16" Accelerate makes float32 weights of bfloat16 ones
    assert yaml.safe_load(text)["mixed_precision"] == "no"


def test_deepspeed_by_questionnaire():
    text = as_accelerate(plan("ram", model={"accumulation": 4}), Recipe(clip=0.5), "deepspeed")
    config = yaml.safe_load(text)["deepspeed_config"]
    assert (
        config["offload_optimizer_device"] == "cpu" and config["offload_param_device"] == "none" and config["zero_stage"] == 2
    )
    assert config["gradient_accumulation_steps"] == 4 and config["gradient_clipping"] == 0.5
    assert yaml.safe_load(text)["mixed_precision"] == "bf16" and "weight_decay=0.01" in comments(text)
    moved = fields(*ALL_RAM, kind="deepspeed", recipe=Recipe(clip=None))["deepspeed_config"]
    assert moved["offload_param_device"] == "cpu" and moved["zero_stage"] == 3
    # Accelerate drops a 0, and DeepSpeed's default is to clip at 1
    assert moved["gradient_clipping"] >= 1e30 and "Nothing is to be clipped" in comments(
        as_accelerate(plan(*ALL_RAM), Recipe(clip=None), "deepspeed")
    )


def test_deepspeed_by_file():
    text = as_accelerate(plan("disk"), kind="deepspeed", deepspeed_file="ds.json")
    read = yaml.safe_load(text)
    assert read["deepspeed_config"] == {"deepspeed_config_file": "ds.json", "zero3_init_flag": False}
    assert "mixed_precision" not in read, "it is in the file, and Accelerate refuses it in both"
    assert "DummyOptim" in comments(text) and "16 bytes a parameter" in comments(text)


@pytest.mark.parametrize(
    ("places", "more", "says"),
    [
        (ALL_RAM, {"kind": "plain"}, "puts weights in RAM"),
        (("disk", "disk", "disk"), {"kind": "plain"}, "deepspeed"),
        (("disk", "disk", "disk"), {"kind": "fsdp2"}, "to RAM only"),
        (("disk",), {"kind": "deepspeed"}, "--deepspeed-file"),
        (("disk", "ram", "ram"), {}, "--deepspeed-file"),
        (("disk", "ram", "ram"), {"kind": "fsdp2"}, "OffloadAdamW holds it elsewhere"),
        (("ram",), {"kind": "fsdp2"}, "OffloadAdamW holds it elsewhere"),
        (("gpu", "ram", "ram"), {"kind": "fsdp2"}, "is in RAM"),
        (ALL_RAM, {"kind": "fsdp2", "gpus": 0}, "no accelerator"),
        (("ram",), {"model": {"dtype": "float16"}}, "float32 ones"),
        (ALL_RAM, {"model": {"dtype": "float16"}}, "float32 ones"),
        (ALL_RAM, {"offload": {"state_dtype": "int8"}}, "moments in int8"),
        (("ram",), {"kind": "deepspeed", "offload": {"state_dtype": "bfloat16"}}, "moments in bfloat16"),
    ],
)
def test_what_accelerate_cannot_do_is_refused(places, more, says):
    with pytest.raises(ExportError, match=says):
        fields(*places, **more)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="fsdp1"):
        fields("ram", kind="fsdp1")
    with pytest.raises(ValueError, match="plain"):
        fields("ram", file="ds.json")


@pytest.mark.parametrize("kind", ["plain", "fsdp2", "deepspeed", "deepspeed-file"])
def test_accelerates_own_reader_takes_every_field(tmp_path, kind):
    pytest.importorskip("accelerate", reason="accelerate is in the extra 'test'")
    from accelerate.commands.config.config_args import load_config_from_file

    chosen = plan(*(ALL_RAM if kind == "fsdp2" else ("ram",)), gpus=2)
    file = "ds.json" if kind == "deepspeed-file" else None
    (tmp_path / "config.yaml").write_text(as_accelerate(chosen, kind=kind.split("-")[0], deepspeed_file=file), encoding="utf-8")
    read = load_config_from_file(str(tmp_path / "config.yaml"))
    assert read.num_processes == 2 and read.main_training_function == "main" and not read.use_cpu


@pytest.mark.parametrize("name", ["a\nb", "a\u2028b: c", "a\x85b: c", "# evil", "x: y", "日本", "a" * 300])
def test_a_name_stays_in_its_comment(name):
    assert fields("ram", model={"name": name}) == fields("ram")
