"""`offload-lab export …` as it is typed: where it writes, and one line for what is wrong."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from bench.plans import plan
from offload_lab.cli import app

RUN = CliRunner()


@pytest.fixture
def plan_file(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(plan("ram").to_json(), encoding="utf-8")
    return path


def run(what, path, *more):
    return RUN.invoke(app, ["export", what, "--plan", str(path), *map(str, more)])


def test_stdout_is_the_file(plan_file, tmp_path):
    for what, read in (
        ("deepspeed", json.loads),
        ("accelerate", yaml.safe_load),
        ("fsdp", lambda text: compile(text, "x", "exec")),
    ):
        shown, written = run(what, plan_file), run(what, plan_file, "--out", tmp_path / what)
        assert shown.exit_code == written.exit_code == 0 and written.stdout == ""
        assert (tmp_path / what).read_text(encoding="utf-8") == shown.stdout and read(shown.stdout) != {}


def test_settings_go_through(plan_file):
    config = json.loads(run("deepspeed", plan_file, "--lr", "3e-4", "--weight-decay", "0.1", "--clip", "0").stdout)
    assert config["optimizer"]["params"]["lr"] == 3e-4 and config["optimizer"]["params"]["weight_decay"] == 0.1
    assert config["gradient_clipping"] == 0
    told = yaml.safe_load(run("accelerate", plan_file, "--kind", "deepspeed", "--deepspeed-file", "ds.json").stdout)
    assert told["deepspeed_config"]["deepspeed_config_file"] == "ds.json"


@pytest.mark.parametrize("what", ["deepspeed", "accelerate", "fsdp"])
def test_what_is_wrong_is_one_line(plan_file, tmp_path, what):
    foreign = tmp_path / "package.json"
    foreign.write_text('{"name": "x", "version": "1.0"}', encoding="utf-8")
    for arguments, code, says in (
        ((tmp_path / "none.json",), 2, "there is no file"),
        ((tmp_path,), 2, "cannot be read"),
        ((foreign,), 2, "package.json: format=None"),
        ((plan_file, "--out", tmp_path / "no" / "folder"), 2, "cannot be written"),
        ((plan_file, "--lr", "nan"), 2, "lr=nan"),
        ((plan_file, "--clip", "-1"), 2, "clip=-1"),
    ):
        done = run(what, *arguments)
        assert done.exit_code == code and says in done.stderr and done.stdout == "", (arguments, done.output)
        assert len(done.stderr.splitlines()) == 1


def test_what_cannot_be_had_has_an_exit_code_of_its_own(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(plan("ram", offload={"state_dtype": "int8"}).to_json(), encoding="utf-8")
    done = run("deepspeed", path, "--out", tmp_path / "out")
    assert done.exit_code == 1 and done.stderr.startswith("cannot be exported: the plan keeps moments in int8")
    assert not (tmp_path / "out").exists()
