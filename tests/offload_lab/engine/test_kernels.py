"""Which loops run: both give the same bits; neither numba, nor its compiler, nor a folder for its cache has to be there."""

import os
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

import offload_lab
from offload_lab import OffloadAdamW, OffloadPolicy, kernels, update
from offload_lab.partition import Kind, cut

PACKAGE = Path(offload_lab.__file__).parent
KINDS = [
    Kind(dtype, state_dtype, amsgrad)
    for dtype, state_dtype, amsgrad in product(
        ("float32", "bfloat16", "float16"), ("float32", "bfloat16", "int8"), (False, True)
    )
    if not (amsgrad and state_dtype == "int8")
]

# Trains without a display of warnings and prints the kernel's name and a digest of weights and moments.
TRAIN = """
import hashlib, torch
from offload_lab import OffloadAdamW, OffloadPolicy
parameters = [torch.nn.Parameter(torch.linspace(-1, 1, n).to(torch.bfloat16)) for n in (1, 700, 5000)]
optimizer = OffloadAdamW(parameters, lr=0.01, offload=OffloadPolicy(partition_size=999))
for step in range(5):
    generator = torch.Generator().manual_seed(step)
    for parameter in parameters:
        parameter.grad = torch.randn(parameter.shape, generator=generator).to(torch.bfloat16)
    optimizer.step()
digest = hashlib.sha256()
for entry in optimizer.state_dict()["state"].values():
    for name in ("exp_avg", "exp_avg_sq", "master"):
        digest.update(entry[name].numpy().tobytes())
print(optimizer.stats()["kernel"])
print(digest.hexdigest())
"""
WITHOUT = "import sys; sys.modules['numba'] = sys.modules['llvmlite'] = None\n"


def python(code, *, path=PACKAGE.parent, **variables):
    """Run `code` in a new process; returns its output's lines and what it said on stderr. Variables of None are unset."""
    environment = {**os.environ, "PYTHONPATH": str(path), **{n: v for n, v in variables.items() if v is not None}}
    for name in [name for name, value in variables.items() if value is None]:
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, cwd=path, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


def run(kernel, kind, *, wide, decoupled, pieces, steps=4, n=20_011):
    """Record and weights after some steps of one parameter, cut into `pieces` calls a step."""
    part = cut([(0, n, kind)], 2 * n)[0]
    record = np.zeros(part.record_bytes(True), np.uint8)
    arrays = update.fields(part, record, True)
    dtype = getattr(torch, kind.dtype)
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(n, generator=generator).to(dtype)
    if kind.dtype == "float16":
        arrays.master[:] = weight.float().numpy()
    table = update.table(part)
    settings = {"lr": 1e-3, "betas": (0.9, 0.999), "weight_decay": 0.1, "maximize": True, "eps": 1e-8}
    for step in range(1, steps + 1):
        gradient = (torch.randn(n, generator=generator) * 0.01).to(torch.float32 if wide else dtype)
        gradient[:300] = 0
        gradient[300:400] *= 1e-7  # far below the smallest code of its block
        table[0, update.WEIGHT_ADDRESS], table[0, update.GRADIENT_ADDRESS] = weight.data_ptr(), gradient.data_ptr()
        table[0, update.GRADIENT_FLOAT32] = wide
        table[0, update.EDITED] = step == 3
        table[0, update.SEED] = update.seed(0, step)
        values = np.array([update.scalars(settings, step, decoupled=decoupled, scale=1 / 3)], np.float32)
        each = -(-n // pieces)
        for begin in range(0, n, each):
            kernel.update(table, values, *arrays, begin, min(n, begin + each))
    return record, weight


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.dtype}-{kind.state_dtype}-{kind.amsgrad}")
def test_both_kernels_give_the_same_bits_in_any_number_of_pieces(kind):
    for wide, decoupled in product((False, True), (False, True)):
        record, weight = run(kernels.choose("numba"), kind, wide=wide, decoupled=decoupled, pieces=1)
        assert record.any() and not weight.isnan().any()
        for name, pieces in (("numba", 3), ("torch", 1), ("torch", 2)):
            other, weight_there = run(kernels.choose(name), kind, wide=wide, decoupled=decoupled, pieces=pieces)
            assert np.array_equal(record, other) and torch.equal(weight, weight_there), (wide, decoupled, name, pieces)


@pytest.mark.parametrize("name", ["numba", "torch"])
@pytest.mark.parametrize("dtype, infinity", [(torch.float32, 0), (torch.bfloat16, 0x7F80), (torch.float16, 0x7C00)], ids=str)
def test_finite_or_not(name, dtype, infinity):
    check = kernels.choose(name).not_finite
    for size in (0, 1, 40_000):
        for bad in (None, float("inf"), float("-inf"), float("nan"), torch.finfo(dtype).max, torch.finfo(dtype).min):
            values = torch.randn(size).to(dtype)
            if bad is not None and size:
                values[size - 1] = bad
            found = np.array([True, False])
            row = [values.data_ptr(), size, values.element_size(), infinity]
            check(np.array([[0, 0, 4, 0], row]), found, 1, 2)
            assert found.tolist() == [True, not bool(values.isfinite().all())], (size, bad)
            check(np.array([[0, 0, 4, 0], row]), found, 0, 2)
            assert not found[0]


@pytest.fixture(scope="module")
def without_numba():
    """The kernel's name and the digest of TRAIN where numba cannot be imported."""
    return python(WITHOUT + TRAIN)[0]


def test_without_numba_the_same_training_gives_the_same_bits(without_numba):
    (name, digest), _ = python(TRAIN)
    assert name.startswith("numba ") and name.endswith("(compiled, cached)")
    fallback, same = without_numba
    assert fallback == f"torch {torch.__version__} (numba is not installed)"
    assert same == digest


def test_commands_work_without_numba():
    lines, _ = python(
        WITHOUT
        + """
from typer.testing import CliRunner
from offload_lab.cli import app
for arguments in (["--help"], ["demo", "--help"], ["plan", "--params", "7e9"]):
    print(CliRunner().invoke(app, arguments).exit_code)
print([name for name in sys.modules if name.startswith(("numba.", "llvmlite."))])
"""
    )
    assert lines == ["0", "0", "0", "[]"]


def test_numba_is_imported_only_when_an_optimizer_is_built():
    lines, _ = python("import sys, offload_lab, offload_lab.cli; print('numba' in sys.modules)")
    assert lines == ["False"]


def test_asking_for_numba_where_it_is_missing_is_an_error_at_construction():
    lines, _ = python(
        WITHOUT
        + """
import torch
from offload_lab import OffloadAdamW, OffloadPolicy
try:
    OffloadAdamW([torch.nn.Parameter(torch.zeros(3))], offload=OffloadPolicy(kernel="numba"))
except RuntimeError as error:
    print(error)
"""
    )
    assert len(lines) == 1 and 'kernel="numba"' in lines[0] and "numba is not installed" in lines[0] and "pip" in lines[0]


def test_a_disabled_compiler_is_not_numba(without_numba):
    (name, digest), _ = python(TRAIN, NUMBA_DISABLE_JIT="1")
    assert name == f"torch {torch.__version__} (NUMBA_DISABLE_JIT is set)"
    assert digest == without_numba[1]


@pytest.mark.parametrize("state_dtype", ["float32", "bfloat16", "int8"])
def test_nothing_is_compiled_after_construction(dtype, state_dtype, disk):
    """Not in a step, with one thread or with several, with or without a gradient, clipped or not."""
    from numba.core import event

    compiled = []

    class Listener(event.Listener):
        def on_start(self, event):
            compiled.append(event.data["dispatcher"].__name__)

        def on_end(self, event):
            pass

    parameters = [torch.nn.Parameter(torch.zeros(n, dtype=dtype)) for n in (5_000_000, 3, 70_000)]
    policy = disk(state_dtype=state_dtype, partition_size=1 << 20, ram_budget="60MB")
    optimizer = OffloadAdamW(parameters, amsgrad=state_dtype == "bfloat16", offload=policy)
    with event.install_listener("numba:compile", Listener()):
        for threads in (1, 2):
            optimizer._engine.threads = threads
            for parameter in parameters[:2]:
                parameter.grad = torch.ones_like(parameter)
            optimizer.step()
            parameters[1].grad.fill_(float("nan"))
            with pytest.warns(UserWarning, match="not finite"):
                optimizer.step()
    optimizer.close()
    assert compiled == []


def test_a_policy_can_ask_for_torch_and_not_for_nonsense():
    parameter = torch.nn.Parameter(torch.zeros(3))
    with OffloadAdamW([parameter], offload=OffloadPolicy(kernel="torch")) as optimizer:
        assert optimizer.stats()["kernel"] == f'torch {torch.__version__} (kernel="torch")'
    with pytest.raises(ValueError, match=r"OffloadPolicy\(kernel='cuda'\).*'numba'"):
        OffloadPolicy(kernel="cuda")


@pytest.fixture
def sealed(tmp_path):
    """A copy of the package beside which nothing can be cached, for root neither: a file lies where the folder would."""
    shutil.copytree(PACKAGE, tmp_path / "site" / "offload_lab", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "site" / "offload_lab" / "__pycache__").write_text("in the way")
    return tmp_path / "site"


def test_a_read_only_installation_is_cached_in_the_users_folder_and_compiled_once(sealed, tmp_path):
    home = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": None, "NUMBA_CACHE_DIR": None}
    (name, digest), said = python(TRAIN, path=sealed, **home)
    assert name.endswith("(compiled, cached)")
    assert said.count("compiling the update loop") == 1 and "once on this machine" in said
    (_, again), silence = python(TRAIN, path=sealed, **home)
    assert again == digest and "compiling" not in silence


def test_without_any_folder_for_a_cache_it_compiles_in_memory_and_says_so(sealed):
    (name, _), said = python(TRAIN, path=sealed, HOME="/dev/null", XDG_CACHE_HOME=None, NUMBA_CACHE_DIR=None)
    assert name.endswith("(compiled, in memory: no folder for a cache can be written)")
    assert said.count("compiling the update loop") == 1 and "in each process" in said


def test_a_disk_that_is_full_when_the_cache_is_written_stops_nothing(sealed, tmp_path):
    full = """
import errno, numba.core.caching
def save(self, key, data):
    raise OSError(errno.ENOSPC, "No space left on device")
numba.core.caching.IndexDataCacheFile.save = save
"""
    home = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": None, "NUMBA_CACHE_DIR": None}
    (name, _), said = python(full + TRAIN, path=sealed, **home)
    assert name.startswith("numba ") and "could not be kept" in said and "No space left" in said


def test_a_change_in_any_file_of_the_loops_gives_the_cache_another_key(sealed):
    """numba looks at one file only; the loops are in several. What the function closes over is a part of the key."""
    key = "from offload_lab import compiled\n"
    key += "print([cell.cell_contents for cell in compiled.update.py_func.__closure__ if type(cell.cell_contents) is int])"
    (before,), _ = python(key, path=sealed)
    with open(sealed / "offload_lab" / "compiled_moments.py", "a", encoding="utf-8") as file:
        file.write("\n# changed\n")
    (after,), _ = python(key, path=sealed)
    assert len(before) > 10 and before != after
