"""The gate, with real child processes: met, missed, and every way in which a workload can end badly."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from offload_lab.health import Targets
from offload_lab.health.gate import gate

ROOT = Path(__file__).resolve().parents[3]
WORKLOAD = """
import os, signal, subprocess, sys, time
import torch
from offload_lab import OffloadAdamW, OffloadPolicy

def workload(folder):
    print("hello from the workload")
    torch.manual_seed(0)
    model = torch.nn.Linear(300, 100)
    policy = OffloadPolicy(tier="disk", directory=folder / "state", durability="checkpoint")
    optimizer = OffloadAdamW(model.parameters(), lr=1e-2, offload=policy)
    def losses():
        for step in range({length}):
            {each}
            yield model(torch.ones(2, 300)).pow(2).mean()
    return model, optimizer, losses()
"""
LOOSE = Targets(seconds_per_step=1000, peak_ram_bytes="1TB", disk_bytes="1TB", loss=1000.0)


@pytest.fixture
def workload(tmp_path):
    """Write the workload with `each` done at every step; the folder in which a gate makes its scratch folder is empty after."""
    scratch = tmp_path / "disk"
    scratch.mkdir()

    def write(each="pass", length=100):
        path = tmp_path / "my_workload.py"
        path.write_text(WORKLOAD.format(each=each, length=length))
        return path

    write.scratch = scratch
    yield write
    assert list(scratch.iterdir()) == []


def test_targets_that_are_met(workload):
    decision = gate(workload(), LOOSE, steps=6, directory=workload.scratch)
    assert decision.passed and decision.why == "all 4 targets are met" and decision.steps == 6, str(decision)
    # 30,100 float32 parameters: two moments each, written in place, in blocks of 4096 bytes.
    assert 30_100 * 8 <= decision.measured.disk_bytes <= 30_100 * 8 + 3 * 4096
    assert len(decision.measured.seconds) == 4 and len(decision.measured.losses) == 6
    assert decision.measured.peak_ram_bytes > decision.machine["resident_before_workload"] > 1e7
    assert decision.workload["parameters"] == 30_100 and decision.workload["stats"]["tier"] == "disk"


@pytest.mark.parametrize(
    ("each", "length", "why"),
    [
        (
            "if step == 3: raise ValueError('the batch is empty')",
            100,
            "failed: ValueError: the batch is empty",
        ),
        ("if step == 3: os.kill(os.getpid(), signal.SIGKILL)", 100, "killed by SIGKILL; the system does this when memory"),
        ("if step == 3: os._exit(0)", 100, "ended with exit code 0 after 3 of 6 steps"),
        ("if step == 3: os._exit(7)", 100, "exit code 7; the last that it printed: hello from the workload"),
        ("pass", 3, "losses for 3 of 6 steps only"),
        ("if step == 3: model.weight.data.fill_(float('nan'))", 100, "the loss of step 6 is nan"),
    ],
)
def test_a_workload_that_ends_badly_fails_with_the_reason(workload, each, length, why):
    decision = gate(workload(each, length), LOOSE, steps=6, directory=workload.scratch)
    assert not decision.passed and why in decision.why, decision.why
    assert decision.steps == (6 if "nan" in why else 3) and "hello from the workload" in decision.output
    json.dumps(decision.to_dict(), allow_nan=False)


def test_a_run_that_takes_too_long_is_stopped_with_all_that_it_started(workload, tmp_path, monkeypatch):
    """The limit is over as soon as the workload has started a process of its own, however fast this machine is."""
    mark = tmp_path / "pid"

    class Impatient(subprocess.Popen):
        def wait(self, timeout=None):
            while timeout is not None and not (mark.exists() and mark.read_text()):
                assert self.poll() is None
                time.sleep(0.05)
            if timeout is not None:
                raise subprocess.TimeoutExpired(self.args, timeout)
            return super().wait()

    monkeypatch.setattr("offload_lab.health.gate.subprocess.Popen", Impatient)
    each = f"""
            if step == 2:
                child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
                open({str(mark)!r}, "w").write(str(child.pid))
                time.sleep(600)"""
    decision = gate(workload(each), LOOSE, steps=6, time_limit=25, directory=workload.scratch)
    assert not decision.passed and "time limit 25 s" in decision.why and decision.steps == 2
    pid = int(mark.read_text())
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:  # killed, not yet collected
        time.sleep(0.05)


def test_a_mistake_of_the_caller_is_no_decision(workload, tmp_path):
    for wrong, kind, named in (
        ({"steps": 2}, ValueError, "steps=2"),
        ({"time_limit": 0}, ValueError, "time_limit=0"),
        ({"directory": tmp_path / "none"}, FileNotFoundError, "none"),
    ):
        with pytest.raises(kind, match=named):
            gate(workload(), LOOSE, **wrong)
    with pytest.raises(FileNotFoundError, match="nothing"):
        gate(tmp_path / "nothing.py", LOOSE)


def command(*arguments, cwd):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "offload_lab", "gate", *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
    )


def test_the_command_adds_to_its_log_and_says_it_with_its_exit_code(workload, tmp_path):
    path = workload()
    targets = tmp_path / "targets.json"
    log = tmp_path / "gates"
    before = {}
    for limit, code in ((1000, 0), (1e-9, 1)):
        targets.write_text(json.dumps({"seconds_per_step": limit}))
        done = command("--script", path.name, "--targets", targets, "--steps", 3, "--out", log, "--directory", workload.scratch,
                       cwd=tmp_path)  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        assert done.stdout.startswith("PASSED" if code == 0 else "FAILED: missed: seconds_per_step")
        now = {path.name: path.read_bytes() for path in log.iterdir()}
        assert sorted(now) == ["decisions.jsonl", "decisions.md"]
        assert all(now[name].startswith(old) and len(now[name]) > len(old) for name, old in before.items())
        before = now
    entries = [json.loads(line) for line in before["decisions.jsonl"].splitlines()]
    assert [entry["passed"] for entry in entries] == [True, False] and entries[0]["when"] <= entries[1]["when"]
    assert before["decisions.md"].decode().count("## 20") == 2
    for targets_text, named in (("{}", "no target is set"), ("[", "targets.json")):
        targets.write_text(targets_text)
        done = command("--script", path, "--targets", targets, cwd=tmp_path)
        assert done.returncode == 2 and named in done.stderr and "Traceback" not in done.stderr


def test_a_polite_kill_leaves_nothing(workload, tmp_path):
    """SIGTERM while the workload runs: the child is gone and the scratch folder as well."""
    mark = tmp_path / "pid"
    # Written once: at a second writing the file would be empty for a moment.
    path = workload(f"step or open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(step and 600)")
    targets = tmp_path / "targets.json"
    targets.write_text(LOOSE.to_json())
    process = subprocess.Popen(
        [sys.executable, "-m", "offload_lab", "gate", "--script", str(path), "--targets", str(targets), "--directory",
         str(workload.scratch), "--out", str(tmp_path / "gates")],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    while not (mark.exists() and mark.read_text()):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    assert not psutil.pid_exists(int(mark.read_text()))
    assert (tmp_path / "gates" / "decisions.jsonl").read_text() == ""


def test_the_example_passes_its_own_targets(tmp_path):
    examples = ROOT / "examples"
    decision = gate(examples / "gate_workload.py", Targets.read(examples / "targets.json"), steps=12, directory=tmp_path)
    assert decision.passed, str(decision)
    # 5.5 nats at the start (ln 256); bytes of English text come to less than 5 within a dozen steps.
    assert decision.measured.losses[0] > 5 > decision.measured.losses[-1]
