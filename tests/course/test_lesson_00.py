"""Lesson 0: the machine is measured, the prediction is checked, the hardware file is written and read."""

import json
import re
from pathlib import Path

import pytest

from course import machine
from course.checks.lesson_00 import step_seconds
from offload_lab import catalogue
from offload_lab.hardware import Hardware


def right(parameters, disk, dram, overlapped):
    if disk <= 0 or dram <= 0:
        raise ValueError("a bandwidth must be above 0")
    parts = parameters * 20 / disk, parameters * 26 / dram
    return max(parts) if overlapped else sum(parts)


def also_right(parameters, disk, dram, overlapped):
    if not (disk > 0 and dram > 0):
        raise ValueError
    streaming = 2 * (10 * parameters) / disk
    updating = parameters / (dram / 26)
    if overlapped:
        return streaming if streaming > updating else updating
    return streaming + updating


def added(parameters, disk, dram, overlapped):
    return right(parameters, disk, dram, False)


def once(parameters, disk, dram, overlapped):
    return right(parameters, 2 * disk, dram, overlapped)


def fastest(parameters, disk, dram, overlapped):
    if disk <= 0 or dram <= 0:
        raise ValueError("no")
    parts = parameters * 20 / disk, parameters * 26 / dram
    return min(parts) if overlapped else sum(parts)


def unchecked(parameters, disk, dram, overlapped):
    parts = parameters * 20 / (disk or 1), parameters * 26 / dram
    return max(parts) if overlapped else sum(parts)


@pytest.mark.parametrize("function", [right, also_right])
def test_a_right_function_passes(function):
    assert step_seconds.check(function)


@pytest.mark.parametrize(
    "wrong, said",
    [(added, "also when they run"), (once, "20 bytes"), (fastest, "the shorter"), (unchecked, "raises ValueError")],
)
def test_a_wrong_one_is_told_its_idea(wrong, said, capsys):
    assert not step_seconds.check(wrong)
    assert said in capsys.readouterr().out


def test_it_measures_predicts_and_keeps(ran, alone):
    lesson = ran("00")
    assert "cores" in lesson.text("here") and "measured" in lesson.text("measure")
    assert "You made no prediction. Measured: " in lesson.text("compare")
    predicted, measured = map(float, re.search(r"predicted (\d+) ms, measured (\d+) ms", lesson.text("check")).groups())
    assert predicted > 0 and measured > 0
    assert "Not begun" in lesson.text("make-check")
    kept = Hardware.from_dict(json.loads(Path(alone[0]["OFFLOAD_LAB_HARDWARE"]).read_text()))
    assert kept.dram_bandwidth.source == "measured" and kept.disk_read is not None


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "hardware.json"
    monkeypatch.setenv("OFFLOAD_LAB_HARDWARE", str(path))
    return path


def test_the_file_is_read_back_exactly(file, capsys):
    theirs = catalogue.machine("rtx4090-nvme")
    assert machine.keep(theirs) == file
    assert machine.yours() == theirs
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"name": "x"}', "\udcff"])
def test_without_a_good_file_this_machine_is_measured_and_that_is_said(content, file, monkeypatch, capsys):
    theirs = catalogue.machine("rtx4090-nvme")
    monkeypatch.setattr(machine, "measure", lambda *_, **__: theirs)
    if content is not None:
        file.parent.mkdir()
        file.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert machine.yours() is theirs
    said = capsys.readouterr().out
    assert str(file) in said and "Measuring" in said
    assert content is None or file.exists(), "what cannot be read is not thrown away"


def test_the_ladder_is_bytes_by_bandwidth():
    theirs = catalogue.machine("rtx4090-nvme")
    lines = machine.ladder(theirs, 1e9).splitlines()[1:]
    assert len(lines) >= 3
    for line in lines:
        rate, seconds = re.search(r"([\d.]+) GB/s", line), re.search(r"([\d.]+) s ", line)
        assert float(seconds[1]) == pytest.approx(1 / float(rate[1]), abs=0.01)
