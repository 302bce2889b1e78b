"""What a plan warns of: formats that are emulated, sizes and speeds that nobody gave or measured."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from offload_lab import catalogue, plan
from offload_lab.cli import app
from offload_lab.given_machine import machine
from offload_lab.hardware import Figure, Hardware
from offload_lab.plan import Plan

GIB, TB = 1 << 30, 10**12
EMULATED = "has no matrix units for bfloat16: it is emulated in float32, at 8.1 TFLOP/s and not 65.0"


def run(*arguments):
    return CliRunner().invoke(app, ["plan", *arguments])


def test_a_t4_and_bfloat16_are_a_warning_in_words_and_as_data():
    card = machine(ram=64 * GIB, gpu="t4")
    slow, quick = (plan("gpt2-xl", card, dtype=dtype) for dtype in ("bfloat16", "float16"))
    assert EMULATED in slow.why and any(EMULATED in warning for warning in slow.warnings)
    assert "Train in float16, with a loss scaler" in slow.why
    assert "emulated" not in quick.why and not any("emulated" in warning for warning in quick.warnings)
    way = {"checkpointing": "none", "batch": 1, "sequence": 128}
    slow, quick = (plan("gpt2-xl", card, dtype=dtype, **way).time.lanes["compute"] for dtype in ("bfloat16", "float16"))
    assert slow / quick == pytest.approx(65 / 8.1)


@pytest.mark.parametrize("options", [["--machine", "colab-t4"], ["--gpu", "t4", "--ram", "64GiB"]])
def test_the_command_says_it_too(options):
    said = run("--model", "gpt2", *options)
    assert said.exit_code == 0 and EMULATED in said.stdout
    made = json.loads(run("--model", "gpt2", *options, "--json").stdout)
    assert EMULATED in made["why"] and any(EMULATED in warning for warning in made["warnings"])
    assert "emulated" not in run("--model", "gpt2", *options, "--dtype", "float16").stdout


def test_a_comparison_says_it_beneath_the_table():
    asked = ["--model", "gpt2", "--compare", "t4-cloud,l4-cloud", "--run-tokens", "1e6"]
    assert f"! The accelerator of t4-cloud {EMULATED}" in run(*asked).stdout
    assert "!" not in run(*asked, "--dtype", "float16").stdout


def test_float32_is_counted_at_its_own_speed():
    """A100: 19.5 TFLOP/s where 16-bit matrices have 312. Where float32's is not known, the plan says what it took."""
    card = machine(ram=512 * GIB, gpu="a100-80")
    full, half = (plan("gpt2-xl", card, dtype=d, checkpointing="none", sequence=128) for d in ("float32", "bfloat16"))
    assert full.time.lanes["compute"] / half.time.lanes["compute"] == pytest.approx(312 / 19.5)
    unknown = plan("gpt2-xl", replace(card, gpu_flops_float32=None), dtype="float32", checkpointing="none", sequence=128)
    assert unknown.time.lanes["compute"] == half.time.lanes["compute"]
    assert "No speed of float32 matrices is known" in unknown.why
    assert "No speed of float32" not in full.why + half.why
    with_units = replace(card, gpu_dtypes=())  # not known: nothing is claimed
    assert "emulated" not in plan("gpt2-xl", with_units).why


def test_sizes_that_nobody_gave_are_named():
    given = plan("gpt2", machine(ram=64 * GIB, gpu_memory=24 * GIB, disk=2 * TB), state="disk")
    assert given.capacity_from == {"gpu": "given", "ram": "given", "disk": "given"}
    assert "Sizes that are assumed" not in given.why and "taken to be empty" not in given.why
    whole = plan("gpt2", catalogue.machine("rtx4090-nvme"), state="disk")
    assert whole.capacity_from == {"gpu": "data sheet", "ram": "assumed", "disk": "data sheet"}
    assert "Sizes that are assumed, neither given nor measured: RAM 137.4 GB (128 GiB fitted)" in whole.why
    assert "The disk is taken to be empty, 2.0 TB as it is sold" in whole.why
    assert "of 137.4 GB, assumed" in str(whole) and "of 25.8 GB, data sheet" in str(whole) and "runtime (assumed)" in str(whole)
    measured = Hardware("measured", Figure(32e9, "measured"), Figure(1e10, "measured"), cpu_flops=Figure(1e12, "measured"))
    here = plan("gpt2", measured)
    assert here.capacity_from == {"ram": "measured"} and here.warnings == () and "of 32.0 GB, measured" in str(here)


def test_speeds_that_nobody_measured_are_named():
    made = plan("gpt2", catalogue.machine("rtx4090-server-nvme"), state="disk", sequence=64)
    (said,) = [warning for warning in made.warnings if warning.startswith("Speeds")]
    names = said.split(": ")[1].split(", ")
    assert set(names) == {"device_to_host", "host_to_device", "dram_bandwidth", "disk_mixed"}
    assert all(getattr(made.hardware, name).source == "assumed" for name in names)


def test_warnings_are_sentences_of_the_reason_and_survive_the_file():
    made = plan("gpt2", catalogue.machine("colab-t4"), state="disk")
    assert made.warnings and all(f"{warning}." in made.why for warning in made.warnings)
    assert Plan.from_json(made.to_json()) == made
    old = {key: value for key, value in made.to_dict().items() if key not in ("warnings", "capacity_from")}
    for name in ("gpu_flops_float32", "gpu_dtypes", "gpu_between"):
        del old["hardware"][name]
    del old["time"]["between"]
    read = Plan.from_dict(old)  # of an edition before this one
    assert read.warnings == () and read.why == made.why and "of 13.6 GB" in str(read)


@pytest.mark.parametrize("wrong", ["float16", ["float16", 3], 16])
def test_formats_of_a_file_are_a_list_of_names(wrong):
    given = catalogue.machine("colab-t4").to_dict() | {"gpu_dtypes": wrong}
    with pytest.raises(ValueError, match="gpu_dtypes"):
        Hardware.from_dict(given)
