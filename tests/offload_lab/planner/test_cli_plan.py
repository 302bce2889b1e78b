"""`offload-lab plan` as it is typed."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import offload_lab
from offload_lab import catalogue
from offload_lab.cli import app
from offload_lab.plan import Plan

DESKTOP = ["--gpu-memory", "24GiB", "--ram", "128GiB", "--disk", "2TB", "--link", "pcie4x16"]


def run(*arguments: str):
    return CliRunner().invoke(app, ["plan", *arguments])


def test_thirteen_billion_on_a_desktop_as_json():
    done = run("--params", "13e9", *DESKTOP, "--json", "--directory", "state", "--loss", "2.5")
    assert done.exit_code == 0, done.output
    made = json.loads(done.stdout)
    assert made["fits"] is True and "26.0 GB and do not fit on an accelerator of 25.8 GB" in made["why"]
    assert made["tiers"]["ram"]["weights"] == 26 * 10**9 and made["tiers"]["disk"]["moments"] == 104 * 10**9
    assert made["capacity"] == {"gpu": 24 << 30, "ram": 128 << 30, "disk": 2 * 10**12}
    assert made["offload"]["directory"] == "state" and made["targets"]["loss"] == 2.5
    assert made["hardware"]["gpu_memory"]["source"] == made["hardware"]["gpu_flops"]["source"] == "assumed"
    plan = Plan.from_json(done.stdout)
    assert plan.to_dict() == made


def test_as_text_and_with_what_cannot_be():
    said = run("--model", "llama-2-13b", *DESKTOP, "--weights", "gpu")
    assert said.exit_code == 0 and "does not fit" in said.stdout and "predicted" in said.stdout
    assert "weights 26.0 GB" in said.stdout


def test_a_machine_by_name_and_by_file(tmp_path):
    file = tmp_path / "machine.json"
    file.write_text(catalogue.machine("rtx4090-nvme").to_json())
    by_name = json.loads(run("--model", "gpt2-xl", "--machine", "rtx4090-nvme", "--json").stdout)
    by_file = json.loads(run("--model", "gpt2-xl", "--hardware", str(file), "--json").stdout)
    assert by_name == by_file
    more = json.loads(run("--model", "gpt2-xl", "--machine", "rtx4090-nvme", "--ram", "64GiB", "--price", "1", "--json").stdout)
    assert more["capacity"]["ram"] == 64 << 30 and more["hardware"]["price"]["value"] == 1


def test_without_a_machine_it_is_the_arithmetic_of_a_parameter():
    said = run("--params", "25M")
    assert said.exit_code == 0 and "25,000,000 parameters in bfloat16, disk" in said.stdout
    assert "350,000,000 bytes   14.00 a parameter" in said.stdout


def test_machines_side_by_side():
    said = run("--model", "llama-2-7b", "--compare", "rtx4090-nvme,a100-80-server", "--run-tokens", "1e9")
    assert said.exit_code == 0 and "rtx4090-nvme" in said.stdout and "$" in said.stdout
    made = json.loads(run("--model", "gpt2", "--compare", "laptop", "--run-tokens", "1e6", "--json").stdout)
    assert made[0]["time"]["run_hours"] > 0


def test_a_number_of_accelerators_goes_with_machines_of_the_catalogue():
    made = json.loads(run("--model", "llama-2-7b", "--machine", "h100-80-server", "--gpus", "8", "--json").stdout)
    assert made["hardware"]["gpus"] == 8 and made["time"]["between"] == 3 * 2 * 6_738_415_616 * 7 // 8
    asked = ["--compare", "laptop,rtx4090-nvme", "--run-tokens", "1e9", "--gpus", "2"]
    compared = json.loads(run("--model", "gpt2-xl", *asked, "--json").stdout)
    assert {plan["hardware"]["name"]: plan["hardware"]["gpus"] for plan in compared} == {
        "laptop": 0,
        "rtx4090-nvme with 2 accelerators": 2,
    }


@pytest.mark.parametrize(
    "arguments, said",
    [
        ([], "either --params (13e9) or --model"),
        (["--params", "1e9", "--model", "gpt2"], "either --params (13e9) or --model"),
        (["--params", "many"], "--params: cannot read 'many'"),
        (["--params", "0", "--ram", "1GiB"], "--params: 0: a whole number"),
        (["--model", "gpt9", "--ram", "1GiB"], "--model: 'gpt9' is not known"),
        (["--model", "gpt2", "--ram", "lots"], "--ram: cannot read 'lots'"),
        (["--model", "gpt2", "--ram", "24"], "--ram: '24' is 24 bytes; write the unit"),
        (["--model", "gpt2", "--disk", "2TB"], "--ram is needed"),
        (["--model", "gpt2", "--ram", "8GiB", "--link", "pcie4x16"], "give gpu or gpu_memory"),
        (["--model", "gpt2", "--ram", "8GiB", "--gpu-memory", "8GiB", "--link", "pcie9x16"], "pcie9x16"),
        (["--model", "gpt2", "--machine", "abacus"], "abacus"),
        (["--model", "gpt2", "--machine", "laptop", "--gpu-memory", "8GiB"], "laptop has no accelerator"),
        (["--model", "gpt2", "--machine", "laptop", "--link", "pcie4x16"], "--link: --machine and --hardware have their own"),
        (["--model", "gpt2", "--machine", "laptop", "--gpus", "8"], "--gpus: 8: laptop has no accelerator"),
        (["--model", "gpt2", "--machine", "gb10", "--gpus", "2"], "--gpus: 2: gb10 has one memory for both"),
        (["--model", "gpt2", "--compare", "laptop", "--run-tokens", "1e6", "--gpus", "2"], "--gpus: no machine of laptop"),
        (["--model", "gpt2", "--compare", "laptop", "--run-tokens", "1e6", "--hardware", "x"], "--hardware: --compare takes"),
        (["--model", "gpt2", "--hardware", "nowhere.json"], "--hardware: 'nowhere.json' cannot be read"),
        (["--model", "gpt2", "--ram", "8GiB", "--state", "tape"], "--state: 'tape': one of"),
        (["--model", "gpt2", "--ram", "8GiB", "--dtype", "int8"], "--dtype: 'int8': one of"),
        (["--model", "gpt2", "--ram", "8GiB", "--sequence", "4096"], "this model has 1,024 positions"),
        (["--model", "gpt2", "--json"], "--json needs a machine"),
        (["--model", "gpt2", "--gpus", "4", "--loss", "2"], "--gpus, --loss need a machine"),
        (["--params", "1e16", "--ram", "8GiB"], "--params: 10,000,000,000,000,000: more than the 2,000,000,000,000"),
        (["--model", "gpt2", "--compare", "laptop"], "--compare: give --run-tokens"),
        (["--params", "1e99", "--ram", "8GiB"], "more than the 2,000,000,000,000"),
        (["--params", "1.5", "--ram", "8GiB"], "--params: '1.5' is no whole number"),
        (["--model", "gpt2", "--ram", "24Go"], "Is '24GB' meant?"),
        (["--model", "gpt2", "--ram", "24,5 Gio"], "Is '24.5 GiB' meant?"),
        (["--model", "gpt2", "--ram", "8GiB", "--durability", "²"], "--durability: '²': a whole number"),
        (["--model", "gpt2", "--ram", "8GiB", "--batch", "9" * 30], "at most 1,000,000,000; is there a digit too many?"),
        (["--model", "gpt2", "--ram", "8GiB", "--run-tokens", "1e99"], "--run-tokens: 1e+99: at most 1e18"),
        (["--model", "gpt2", "--ram", "8GiB", "--price", "inf"], "--price: inf: a number of 0 to 1,000,000,000"),
        (["--model", "gpt2", "--ram", "8GiB", "--price", "1e308", "--run-tokens", "1e9"], "--price: 1e+308: a number"),
        (["--model", "gpt2", "--ram", "8GiB", "--gpu", "t4", "--gpus", "9" * 9], "--gpus: 999999999: a whole number of 1 to"),
        (["--model", "gpt2", "--ram", "8GiB", "--disk-kind", "tape"], "--disk-kind: give --disk as well"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_typed_wrong_is_told_in_a_line(arguments, said):
    done = run(*arguments)
    assert done.exit_code == 2 and said in done.output and "Traceback" not in done.output, done.output


@pytest.mark.parametrize(
    "content, said",
    [
        (b"\xff\xfe", "is no text in UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"name": NaN}', "NaN is no number of JSON"),
        (b"{}", "it has no name, ram, dram_bandwidth"),
        (b"[]", "hardware is a JSON object"),
        (b'{"name": "x", "ram": {"value": 1e400, "source": "assumed"}}', "ram is no figure"),
    ],
)
def test_a_file_that_is_no_machine_is_told_by_its_name(tmp_path, content, said):
    file = tmp_path / "une machine é.json"
    file.write_bytes(content)
    done = run("--model", "gpt2", "--hardware", str(file))
    assert done.exit_code == 2 and said in done.output and "une machine é.json" in done.output, done.output


def test_json_is_all_that_goes_to_stdout():
    """Of a process, since the test runner's stdout is not the real one."""
    command = [sys.executable, "-m", "offload_lab", "plan", "--model", "gpt2", "--machine", "colab-t4", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stderr == ""

    def none(name):
        raise AssertionError(name)

    assert json.loads(done.stdout, parse_constant=none)["fits"] is True


def test_the_planner_needs_no_torch():
    code = (
        "import sys, types\n"
        "package = types.ModuleType('offload_lab'); package.__path__ = [sys.argv[1]]; sys.modules['offload_lab'] = package\n"
        "sys.modules['torch'] = None\n"
        "from offload_lab.planner import plan; from offload_lab.catalogue import machine\n"
        "print(plan('gpt2', machine('laptop')).fits)"
    )
    done = subprocess.run([sys.executable, "-c", code, offload_lab.__path__[0]], capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr
