"""The FSDP2 script as text: it compiles, says what is not as planned, and its arguments are OffloadPolicy's."""

import ast
import shutil
import subprocess
import sys

import pytest

from bench.plans import GB, plan
from offload_lab import OffloadPolicy
from offload_lab.export import ExportError, Recipe, as_fsdp

ALL_RAM = ("ram", "ram", "ram")


def calls(script, name):
    """The keyword arguments of every call of `name`."""
    found = (node for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Call))
    return [{k.arg: k.value for k in node.keywords} for node in found if ast.unparse(node.func).split(".")[-1] == name]


def policy(*places, **more):
    (arguments,) = calls(as_fsdp(plan(*places, **more)), "OffloadPolicy")
    return OffloadPolicy(**{name: ast.literal_eval(value) for name, value in arguments.items()})


def test_the_policy_is_the_plans():
    offload = {"directory": "/nvme/it's", "ram_budget": 4 << 30, "partition_size": 1 << 20, "depth": 6, "durability": 10}
    got = policy("disk", gpus=2, offload=offload | {"state_dtype": "int8", "gradients": "float32", "overlap": "forward"})
    assert got.tier == "disk" and str(got.directory) == "/nvme/it's" and got.existing == "resume"
    assert got.ram_budget == 2 << 30, "the plan's is of the machine, and there are two processes"
    assert (got.partition_size, got.depth, got.durability) == (1 << 20, 6, 10)
    assert (got.state_dtype, got.gradients, got.overlap) == ("int8", "float32", "forward")
    assert policy("ram") == OffloadPolicy(tier="ram")
    assert policy("disk", offload={"durability": "checkpoint"}).existing == "replace", "scratch files cannot be resumed"


@pytest.mark.parametrize(
    ("places", "gpus", "offloads"), [(("disk",), 1, 0), (ALL_RAM, 1, 1), (("disk", "ram", "ram"), 2, 1), (ALL_RAM, 0, 0)]
)
def test_weights_move_only_where_they_must(places, gpus, offloads):
    assert len(calls(as_fsdp(plan(*places, gpus=gpus)), "CPUOffloadPolicy")) == offloads


def test_adamw_and_clipping():
    (arguments,) = calls(as_fsdp(plan("ram"), Recipe(lr=3e-4, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.1)), "OffloadAdamW")
    arguments = {name: ast.literal_eval(value) for name, value in arguments.items() if name != "offload"}
    assert arguments == {"lr": 3e-4, "betas": (0.8, 0.9), "eps": 1e-6, "weight_decay": 0.1}
    assert "clip_grad_norm_(model.parameters(), 0.5)" in as_fsdp(plan("ram"), Recipe(clip=0.5))
    assert "clip_grad" not in as_fsdp(plan("ram"), Recipe(clip=None))
    assert len(calls(as_fsdp(plan("gpu")), "AdamW")) == 1 and not calls(as_fsdp(plan("gpu")), "OffloadPolicy")


@pytest.mark.parametrize(
    ("places", "more", "says"),
    [
        (("disk", "disk", "disk"), {}, "weights on disk"),
        (("disk", "gpu", "disk"), {}, "gradients on disk"),
        (("gpu", "ram", "ram"), {}, "keeps them together"),
        (("ram",), {"model": {"dtype": "float16"}}, "float16"),
    ],
)
def test_what_fsdp2_cannot_do_is_refused(places, more, says):
    with pytest.raises(ExportError, match=says):
        as_fsdp(plan(*places, **more))


def test_gradients_that_were_to_be_used_up_during_backward_need_room():
    """Two bytes each of a million, on two accelerators: one more megabyte on each."""
    for room in (1_000_000, 999_999):
        wanted = plan("disk", "gpu", "ram", gpus=2, capacity={"gpu": room, "ram": GB}, offload={"overlap": "backward"})
        if room == 1_000_000:
            assert "beside the weights until the step" in as_fsdp(wanted) and 'overlap="' not in as_fsdp(wanted)
        else:
            with pytest.raises(ExportError, match="1,000,000 bytes more"):
                as_fsdp(wanted)


def test_gradients_that_deepspeed_writes_to_disk_are_in_ram_with_the_weights():
    """Two bytes each of a million, of two accelerators together."""
    for room in (2_000_000, 1_999_999):
        wanted = plan("disk", "ram", "disk", gpus=2, capacity={"gpu": GB, "ram": room})
        if room == 2_000_000:
            assert "moves them to RAM with the weights; the plan has them on disk" in " ".join(as_fsdp(wanted).split())
        else:
            with pytest.raises(ExportError, match="2,000,000 bytes more, where 0 of 1,999,999"):
                as_fsdp(wanted)


def test_what_is_not_as_planned_is_said():
    assert "CPUOffloadPolicy moves them to RAM" in as_fsdp(plan("disk", "ram", "gpu")).replace("\n", " ")
    assert "no masters" in as_fsdp(plan("gpu")).replace("\n", " ")
    assert "it goes on from the last step" in as_fsdp(plan("disk"))


@pytest.mark.parametrize("name", ['"""', "\\", "\\N{nope}", "{x}", "a\nb\x00", "'" * 3])
def test_a_name_stays_in_the_docstring(name):
    script = as_fsdp(plan("ram", model={"name": name}))
    assert ast.get_docstring(ast.parse(script)) and len(calls(script, "OffloadAdamW")) == 1


@pytest.mark.parametrize("places", [("disk",), ALL_RAM, ("gpu",)])
@pytest.mark.parametrize("checkpointing", ["none", "full"])
def test_the_script_is_as_tidy_as_ours(tmp_path, places, checkpointing):
    if shutil.which("ruff") is None and subprocess.run([sys.executable, "-m", "ruff", "-V"], capture_output=True).returncode:
        pytest.skip("ruff is in the extra 'test'")
    script = tmp_path / "train.py"
    script.write_text(as_fsdp(plan(*places, model={"checkpointing": checkpointing})), encoding="utf-8")
    command = [sys.executable, "-m", "ruff"]
    ours = ["--config", 'lint.isort.known-first-party=["offload_lab"]', "--line-length=128"]
    for what in (["check", "--select=E,F,I", *ours], ["format", "--diff", *ours]):
        done = subprocess.run([*command, *what, str(script)], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
