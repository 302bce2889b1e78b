"""File systems and limits as they come: memory, overlay, read-only, gone, few descriptors, one directory for two."""

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from offload_lab import DirectoryInUse, OffloadAdamW, OffloadPolicy, StorageError

ROOT = Path(__file__).resolve().parents[3]


def trained(directory, **policy):
    """Weights after four steps with state in `directory`, resumed after two; and what `stats()` says of it."""
    parameter = torch.nn.Parameter(torch.linspace(-1, 1, 5000).bfloat16())
    for first in (0, 2):
        existing = "resume" if first else "replace"
        settings = OffloadPolicy(tier="disk", directory=directory, partition_size=700, existing=existing, **policy)
        with OffloadAdamW([parameter], lr=0.01, offload=settings) as optimizer:
            for step in (first, first + 1):
                generator = torch.Generator().manual_seed(step)
                parameter.grad = torch.randn(5000, generator=generator).bfloat16()
                optimizer.step()
            stats = optimizer.stats()
    return parameter.detach().clone(), stats


def test_memory_and_overlay_give_the_same_bits(mounted, tmp_path):
    expected, _ = trained(tmp_path / "plain")
    lower, upper, work = (tmp_path / name for name in ("lower", "upper", "work"))
    for folder in (lower, upper, work):
        folder.mkdir()
    for kind, options in (("tmpfs", "size=20m"), ("overlay", f"lowerdir={lower},upperdir={upper},workdir={work}")):
        folder = mounted(kind, options)
        weights, stats = trained(folder / "state")
        assert torch.equal(weights, expected)
        assert stats["direct_io"] in (True, False) and "page cache" in stats["io_path"]
        assert trained(folder / "cached", direct_io="off")[1]["direct_io"] is False


def test_a_directory_that_cannot_be_written_is_named_at_construction(mounted, tmp_path):
    folder = mounted("tmpfs", "size=1m")
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    with pytest.raises(OSError, match=str(folder / "state")):
        trained(folder / "state")


def test_a_directory_that_vanishes_is_told_at_the_next_publish(tmp_path):
    parameter = torch.nn.Parameter(torch.zeros(3000))
    policy = OffloadPolicy(tier="disk", directory=tmp_path / "state", partition_size=700)
    with OffloadAdamW([parameter], offload=policy) as optimizer:
        parameter.grad = torch.ones(3000)
        optimizer.step()
        shutil.rmtree(tmp_path / "state")
        with pytest.raises(StorageError, match=r"publishing step 2 as .*offload\.json.*No such file"):
            optimizer.step()


def test_forty_descriptors_are_enough(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    expected, _ = trained(tmp_path / "plain")
    used = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 30
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 10, hard))
    try:
        assert torch.equal(trained(tmp_path / "few")[0], expected)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_three_thousand_parameters_are_three_files_with_short_names(tmp_path):
    """Case 94."""
    parameters = [torch.nn.Parameter(torch.zeros(2)) for _ in range(3000)]
    for parameter in parameters:
        parameter.grad = torch.ones(2)
    policy = OffloadPolicy(tier="disk", directory=tmp_path / "state")
    with OffloadAdamW(parameters, offload=policy) as optimizer:
        optimizer.step()
        names = [path.name for path in (tmp_path / "state").iterdir()]
    assert len(names) == 3 and all(len(name) < 64 for name in names)


def test_many_threads_of_one_process_and_one_directory(tmp_path):
    """Only one of them gets it, and the others are told who has it."""
    policy = OffloadPolicy(tier="disk", directory=tmp_path / "state")
    with OffloadAdamW([torch.nn.Parameter(torch.zeros(3))], offload=policy):
        for _ in range(3):
            with pytest.raises(DirectoryInUse, match=f"pid {os.getpid()}"):
                OffloadAdamW([torch.nn.Parameter(torch.zeros(3))], offload=policy)


@pytest.mark.parametrize("remainder", [1, 511])
def test_bytes_that_are_no_whole_sector_come_back(tmp_path, remainder):
    """Case 88: records whose bytes are 1 and 511 above a multiple of 512, and the last of them are not zero."""
    numel = (512 * 40 + remainder) // 2 if remainder % 2 == 0 else 512 * 40 + remainder
    parameter = torch.nn.Parameter(torch.linspace(1, 2, numel))
    with OffloadAdamW([parameter], lr=0.01, offload=OffloadPolicy(tier="disk", directory=tmp_path / "s")) as optimizer:
        twin = torch.nn.Parameter(parameter.detach().clone())
        reference = torch.optim.AdamW([twin], lr=0.01)
        for step in range(3):
            for p, o in ((parameter, optimizer), (twin, reference)):
                p.grad = torch.linspace(-1, 1, numel) * (step + 1)
                o.step()
        state, expected = optimizer.state_dict()["state"][0], reference.state_dict()["state"][0]
    torch.testing.assert_close(state["exp_avg_sq"], expected["exp_avg_sq"], rtol=1e-5, atol=0)
    assert float(state["exp_avg"][-1]) != 0
    torch.testing.assert_close(parameter, twin, rtol=1e-5, atol=1e-7)


def test_a_run_killed_with_scratch_files_is_started_over(tmp_path):
    code = (
        "import os, sys, torch; from offload_lab import OffloadAdamW, OffloadPolicy\n"
        "p = torch.nn.Parameter(torch.zeros(5000)); p.grad = torch.ones(5000)\n"
        "policy = OffloadPolicy(tier='disk', directory=sys.argv[1], durability='checkpoint')\n"
        "optimizer = OffloadAdamW([p], offload=policy); optimizer.step(); os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "state")], cwd=ROOT, check=False)
    left = (tmp_path / "state" / "offload.state").stat().st_size
    parameter = torch.nn.Parameter(torch.zeros(5000))
    policy = OffloadPolicy(tier="disk", directory=tmp_path / "state", durability="checkpoint")
    with OffloadAdamW([parameter], offload=policy) as optimizer:
        parameter.grad = torch.ones(5000)
        optimizer.step()
        assert (tmp_path / "state" / "offload.state").stat().st_size == left, "no growth"
        assert torch.allclose(parameter.detach(), torch.full((5000,), -1e-3)), "and nothing of the dead run's state"
