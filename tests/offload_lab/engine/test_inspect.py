"""`offload-lab inspect` and `offload-lab clean`: what is there, what is damaged, what may go."""

import json
import os
import subprocess
import sys

import pytest
import torch
from typer.testing import CliRunner

from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.cli import app


def cli(*arguments, **options):
    return CliRunner().invoke(app, [str(a) for a in arguments], **options)


@pytest.fixture
def stepped(tmp_path):
    """An optimizer that has made two steps in `state`, still open."""
    parameters = [torch.nn.Parameter(torch.zeros(3000, dtype=torch.bfloat16)), torch.nn.Parameter(torch.zeros(7))]
    policy = OffloadPolicy(tier="disk", directory=tmp_path / "state", partition_size=1000)
    with OffloadAdamW(parameters, offload=policy) as optimizer:
        for _ in range(2):
            for parameter in parameters:
                parameter.grad = torch.ones_like(parameter)
            optimizer.step()
        yield optimizer


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_live_and_a_closed_run(stepped, tmp_path):
    seen = cli("inspect", tmp_path / "state", "--json")
    told = json.loads(seen.stdout)
    assert seen.exit_code == 0 and told["ok"] and told["step"] == 2 and told["previous_step"] == 1
    assert f"pid {os.getpid()}" in told["in_use_by"] and told["written_by"] == os.getpid()
    assert told["dtypes"] == {"bfloat16": 3000, "float32": 7} and told["partitions"] == 4
    stepped.close()
    before = contents(tmp_path / "state")
    seen = cli("inspect", tmp_path / "state", "--verify")
    assert seen.exit_code == 0 and "not in use" in seen.stdout and "no damage was found" in seen.stdout
    assert "chunks read and compared" in seen.stdout
    assert contents(tmp_path / "state") == before


def test_damage_is_named_and_is_an_exit_code(stepped, tmp_path):
    files = stepped._engine.files
    _, at = files.where(1, files.slots[1], 5)
    stepped.close()
    with open(tmp_path / "state" / "offload.state", "r+b") as file:
        file.seek(at)
        file.write(b"\xaa")
    assert cli("inspect", tmp_path / "state").exit_code == 0, "it is only seen when it is read"
    seen = cli("inspect", tmp_path / "state", "--verify")
    assert seen.exit_code == 1 and "DAMAGED: partition 1 (of parameters 0)" in seen.stdout
    manifest = tmp_path / "state" / "offload.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"step": 2', b'"step": 3'))
    seen = cli("inspect", tmp_path / "state", "--json")
    assert seen.exit_code == 1 and "checksum does not fit" in json.loads(seen.stdout)["damage"][0]


def test_nothing_there(tmp_path):
    assert cli("inspect", tmp_path / "nowhere").exit_code == 2
    seen = cli("inspect", tmp_path)
    assert seen.exit_code == 0 and "holds no published step" in seen.stdout
    assert "nothing to delete" in cli("clean", tmp_path, "--yes").stdout
    assert cli("clean", tmp_path / "nowhere", "--yes").exit_code == 2


def test_clean_takes_what_dead_runs_left_and_nothing_else(stepped, tmp_path):
    """Case 104: a run that was killed with scratch files, one that was killed with published ones, one that lives."""
    code = (
        "import os, sys, torch; from offload_lab import OffloadAdamW, OffloadPolicy\n"
        "p = torch.nn.Parameter(torch.zeros(5000)); p.grad = torch.ones(5000)\n"
        "o = OffloadAdamW([p], offload=OffloadPolicy(tier='disk', directory=sys.argv[1], durability=sys.argv[2])); o.step()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    for name in ("step", "checkpoint"):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "dead" / name), name], check=False)
    (tmp_path / "dead" / "step" / "notes.txt").write_text("mine")
    asked = cli("clean", tmp_path, input="n\n")
    assert asked.exit_code == 1 and (tmp_path / "dead" / "step" / "offload.json").exists()
    done = cli("clean", tmp_path, "--yes")
    assert done.exit_code == 0 and "bytes freed" in done.stdout
    left = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert left == ["dead/step/notes.txt", "state/offload.json", "state/offload.lock", "state/offload.state"]
    stepped.param_groups[0]["params"][0].grad = torch.ones(3000, dtype=torch.bfloat16)
    stepped.step()
