"""The crash benchmark with a few runs and a fixed seed: each kill leaves an exact step."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from bench import crash

ROOT = Path(__file__).resolve().parents[2]


def test_kill_9_at_random_moments_leaves_an_exact_step(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "bench.crash", "--runs", "14", "--seed", "7", "--json", "--directory", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),  # as in a script's background
    )
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout)
    assert seen["runs"] == seen["exact"] == 14 and seen["wrong"] == []
    assert sum(seen["steps_reached"].values()) > 20, "steps were made between the kills"
    assert not list(tmp_path.iterdir())


HEARD_WHILE_TORCH_IMPORTS_NUMPY = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy" and "torch" in sys.modules:
            sys.meta_path.remove(self)
            print("numpy", flush=True)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""


def test_a_child_hears_ctrl_c_that_arrives_where_torch_would_lose_it(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    (tmp_path / "sitecustomize.py").write_text(HEARD_WHILE_TORCH_IMPORTS_NUMPY)
    process = crash.started(str(tmp_path / "state"), "each step", environment={**os.environ, "PYTHONPATH": str(tmp_path)})
    patience = threading.Timer(crash.PATIENCE, process.kill)
    patience.start()
    said = [process.stdout.readline(), process.stdout.readline()]
    process.kill()  # where it goes on; what has ended cannot be killed
    process.communicate()
    patience.cancel()
    assert said == ["numpy\n", ""]
    assert not (tmp_path / "state").exists()
