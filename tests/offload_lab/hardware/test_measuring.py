"""`measure` and `offload-lab measure` with tiny sizes: what is in the figures, the warnings, the cache, and what is left."""

import errno
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from offload_lab import cli_measure, kernels, measuring
from offload_lab.catalogue import machine
from offload_lab.cli import app
from offload_lab.hardware import Figure, Hardware
from offload_lab.measuring import Sizes, measure
from offload_lab.probes import disk
from offload_lab.probes.disk import Found, Seen
from offload_lab.storage.direct_io import StorageError

ROOT = Path(__file__).resolve().parents[3]
TINY = Sizes(elements=5000, smallest=64 << 10, largest=512 << 10, copy=1 << 20, matrix=16, gpu_matrix=16)


@pytest.fixture
def quick(tmp_path):
    """`measure` of a folder of its own in half a second; returns the figures and what was said."""
    folder = tmp_path / "state"
    folder.mkdir()

    def run(directory=folder, **changes):
        said = []
        settings = {"seconds": 0.5, "sizes": TINY, "cache": tmp_path / "cache", "say": said.append} | changes
        return measure(directory, **settings), "\n".join(said)

    run.folder = folder
    return run


def test_every_figure_is_measured_and_says_how(quick):
    found, said = quick()
    for name in ("ram", "dram_bandwidth", "cpu_flops", "disk", "disk_read", "disk_write", "disk_mixed"):
        figure = getattr(found, name)
        assert figure.value > 0 and figure.source == "measured" and figure.note, name
    assert found.directory == str(quick.folder) and found.taken[:2] == "20"
    assert "4 threads a direction" in found.disk_read.note and "64 KiB: " in found.disk_read.note
    for part in ("memory: updating 5,000 parameters", "processor:", "disk: reading and writing", "were written in all"):
        assert part in said
    assert Hardware.from_dict(json.loads(found.to_json())) == found
    assert list(quick.folder.iterdir()) == []


def test_the_second_time_it_is_read_and_what_is_free_is_new(quick, monkeypatch):
    first, _ = quick()
    monkeypatch.setattr(measuring, "available_memory", lambda: 12345)
    monkeypatch.setattr(measuring, "_measured", None)
    second, said = quick()
    assert second.dram_bandwidth == first.dram_bandwidth and second.ram.value == 12345
    assert "taken from" in said and str(quick.folder.parent / "cache") in said
    with pytest.raises(TypeError):  # `_measured` is called
        quick(fresh=True)
    with pytest.raises(TypeError):
        quick(seconds=0.6)


def test_a_cache_that_cannot_be_written_is_told(quick, tmp_path):
    (tmp_path / "file").write_text("")
    found, said = quick(cache=tmp_path / "file")
    assert found.disk_read.value > 0 and "could not be kept" in said


def test_a_directory_in_ram_is_told_and_takes_little_of_it(quick, mounted, monkeypatch):
    monkeypatch.setattr(measuring, "available_memory", lambda: 1 << 20)
    found, _ = quick(mounted("tmpfs", "size=20m"))
    assert any("is RAM (tmpfs)" in warning for warning in found.warnings)
    assert found.disk_read.value > 0 and "512 KiB" not in found.disk_read.note


def test_a_bandwidth_that_falls_is_told(quick, monkeypatch):
    seen = (Seen(1 << 20, 2e9, 2e9, 2e9), Seen(1 << 30, 1e9, 1.7e9, 3e9))
    monkeypatch.setattr(disk, "probe", lambda *given, **more: Found(seen, True, 1 << 30))
    found, _ = quick()
    fell = [warning for warning in found.warnings if "falls from" in warning]
    assert len(fell) == 1 and "read bandwidth falls from 2.00 GB/s on 1 MiB to 1.00 GB/s on 1 GiB" in fell[0]
    assert (found.disk_read.value, found.disk_write.value) == (1e9, 1.7e9), "the largest size counts"
    assert found.disk_duplex == "full"  # 3 GB/s together, 1.7 at most alone


def test_a_busy_machine_and_a_slow_kernel_are_told(quick, monkeypatch):
    monkeypatch.setattr(measuring.os, "getloadavg", lambda: (64.0, 0, 0))
    monkeypatch.setattr(measuring.kernels, "choose", lambda choice: real("torch"), raising=True)
    found, _ = quick()
    assert any("load 64.0" in warning for warning in found.warnings)
    assert any("its arithmetic, not the memory" in warning for warning in found.warnings)


real = kernels.choose


def test_a_full_disk_is_a_warning_and_a_broken_one_an_error(quick, monkeypatch):
    def refused(fd, offset, length):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", refused)
        found, _ = quick()
    assert found.disk_read is None and found.disk is None and found.dram_bandwidth.value > 0
    assert any("the disk was not measured" in warning and "No space left" in warning for warning in found.warnings)

    def broken(fd, buffers, offset):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pwritev", broken)
    with pytest.raises(StorageError, match="Input/output error"):
        quick(fresh=True)
    assert list(quick.folder.iterdir()) == []


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan"), True, "30"])
def test_seconds_that_are_none(quick, seconds):
    with pytest.raises(ValueError, match="seconds="):
        quick(seconds=seconds)


def test_a_folder_that_is_not_there(quick):
    with pytest.raises(NotADirectoryError, match=r"no folder .*nowhere"):
        quick(quick.folder / "nowhere")


# --- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def command(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(measuring, "Sizes", lambda: TINY)

    def run(*arguments):
        return CliRunner().invoke(app, ["measure", "--directory", str(tmp_path), "--seconds", "0.5", *arguments])

    return run


def test_json_is_hardware_and_nothing_else(command):
    done = command("--json")
    assert done.exit_code == 0, done.output
    found = Hardware.from_dict(json.loads(done.stdout))
    assert found.disk_read.source == "measured" and "disk: reading" in done.stderr
    again = command()
    assert "taken from" in again.stderr and "disk, read and write" in again.stdout and "GB/s  measured" in again.stdout
    assert "taken from" not in command("--fresh").stderr


def test_what_is_asked_wrongly_is_exit_code_2(command, tmp_path):
    done = command("--directory", str(tmp_path / "nowhere"))
    assert done.exit_code == 2 and "--directory: there is no folder" in done.stderr


def test_a_disk_that_fails_is_exit_code_1(command, monkeypatch):
    def broken(*given, **more):
        raise StorageError(errno.EIO, "reading of '/x' failed")

    monkeypatch.setattr(disk, "probe", broken)
    done = command()
    assert done.exit_code == 1 and "reading of '/x' failed" in done.stderr


def test_the_table_has_every_figure_and_every_warning():
    """Of a machine from the catalogue, which has an accelerator and a price."""
    built = replace(machine("laptop"), gpus=1, unified=True, host_to_device=Figure(26.15e9, "assumed", "of the line rate"))
    text = cli_measure.table(built)
    assert "to it, pinned                  26.15 GB/s  assumed" in text and "of the line rate" in text
    assert "disk, write                     1.75 GB/s  data sheet" in text
    assert "an hour of it" in text and "one memory with the host" in text and "! Consumer NVMe" in text
    assert max(map(len, text.splitlines())) <= 128
    rows = {name for name, *_ in cli_measure._ROWS}
    figures = {name for name, value in vars(machine("rtx4090-nvme")).items() if isinstance(value, Figure)}
    assert figures <= rows


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_stopped_in_the_middle_of_the_disk_it_leaves_no_file(tmp_path, number):
    state = tmp_path / "state"
    state.mkdir()
    code = (
        "from offload_lab import measuring; from offload_lab.cli import app; "
        "tiny = measuring.Sizes(elements=5000, smallest=1 << 20, largest=64 << 20, matrix=16); "
        "measuring.Sizes = lambda: tiny; app()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, "measure", "--directory", str(state), "--seconds", "20"],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    try:
        for line in child.stderr:
            if line.startswith("disk: reading and writing"):
                break
        child.send_signal(number)
        rest = child.stderr.read()
        code = child.wait(timeout=60)
    finally:
        child.kill()
    assert code == (130 if number is signal.SIGINT else -9), rest
    assert list(state.iterdir()) == [] and not (tmp_path / "cache" / "offload-lab").exists()
