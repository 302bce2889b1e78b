"""The crash benchmark with a few runs and a fixed seed: each kill leaves an exact step."""

import json
import signal
import subprocess
import sys
from pathlib import Path

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
