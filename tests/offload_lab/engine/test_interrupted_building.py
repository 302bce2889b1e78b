"""Ctrl-C while an optimizer is built is never lost, and leaves nothing half imported or half compiled.

Import and compilation run code whose exceptions nobody gets: clean-up (`__del__`), callbacks from C, a bare `except`. Here the
signal arrives in just such code, at a place of each kind.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

SCRIPT = """
import importlib, json, os, signal, sys
import torch
from offload_lab import OffloadAdamW

signal.signal(signal.SIGINT, signal.default_int_handler)
asked = []


def lost():
    asked.append(True)
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        pass


class Finder:
    def __init__(self, name):
        self.name = name

    def find_spec(self, name, path=None, target=None):
        if name == self.name and not asked:
            lost()


def at_import(name):
    assert name not in sys.modules
    sys.meta_path.insert(0, Finder(name))


def at_clean_up(name):
    from llvmlite.binding.ffi import ObjectRef

    real = ObjectRef.__del__

    def clean_up(self):
        if not asked:
            asked.append(True)
            signal.raise_signal(signal.SIGINT)  # Python prints what is raised here, and goes on
        real(self)

    ObjectRef.__del__ = clean_up


def attempt(name, prepare):
    parameters = [torch.nn.Parameter(torch.zeros(16)) for _ in range(40)]
    prepare(name)
    try:
        OffloadAdamW(parameters)
        heard = False
    except KeyboardInterrupt:
        heard = True
    optimizer = OffloadAdamW(parameters)
    for _ in range(3):
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
    print(json.dumps({name: {"asked": bool(asked), "heard": heard, "steps": optimizer.stats()["steps"]}}), flush=True)


# Each place in a process of its own, which has imported what comes before it.
for name, prepare in [
    ("torch._dynamo", at_import),
    ("numba", at_import),
    ("offload_lab.compiled", at_import),
    ("offload_lab.compiled_crowd", at_import),
    ("clean-up in LLVM", at_clean_up),
]:
    child = os.fork()
    if not child:
        attempt(name, prepare)
        os._exit(0)
    os.waitpid(child, 0)
    if name in ("torch._dynamo", "numba"):
        importlib.import_module(name)
"""
PLACES = ["torch._dynamo", "numba", "offload_lab.compiled", "offload_lab.compiled_crowd", "clean-up in LLVM"]


@pytest.fixture(scope="module")
def seen():
    pytest.importorskip("numba")
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, timeout=300)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {name: what for line in lines for name, what in line.items()}, done.stderr


@pytest.mark.parametrize("place", PLACES)
def test_ctrl_c_while_an_optimizer_is_built_is_heard_and_the_next_one_works(seen, place):
    found, errors = seen
    assert place in found, errors
    if not found[place]["asked"] and place == "offload_lab.compiled_crowd":
        pytest.skip("the compiled reader is not used here")
    assert found[place] == {"asked": True, "heard": True, "steps": 3}, errors


def test_an_interrupted_program_ends_and_says_why():
    """As the finder above, in a program that does not catch it: what a person at a terminal sees."""
    script = (
        SCRIPT[: SCRIPT.index("# Each place")] + "at_import('torch._dynamo'); OffloadAdamW([torch.zeros(4)]); print('built')"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == -signal.SIGINT and "KeyboardInterrupt" in done.stderr and "built" not in done.stdout
