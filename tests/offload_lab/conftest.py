"""For tests of several parts: a file system of a kind of its own."""

import subprocess

import pytest


@pytest.fixture
def mounted(tmp_path):
    """Mount a file system on a folder of its own; unmounted afterwards."""
    made = []

    def mount(kind, options):
        target = tmp_path / kind
        target.mkdir()
        done = subprocess.run(["mount", "-t", kind, "-o", options, kind, str(target)], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"cannot mount {kind} here: {done.stderr.strip()}")
        made.append(target)
        return target

    yield mount
    for target in made:
        subprocess.run(["umount", "-l", str(target)], check=True)
