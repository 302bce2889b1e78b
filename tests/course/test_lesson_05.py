"""Lesson 5: what it says of files, generations and wear holds; its check accepts what is right and names what is not."""

import os
import re
import subprocess
import sys
import time

import psutil
import pytest
import torch

from course import children
from course.checks.lesson_05 import bytes_written
from course.reading import read_rate
from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.demo import limit_is_enforced
from offload_lab.storage.direct_io import BlockFile, StorageError


def checked(resident, every):
    if not 0 <= resident <= 1 or (every is not None and every < 1):
        raise ValueError("a share is 0 to 1, every at least 1")


def right(parameters, resident, every):
    checked(resident, every)
    between = 10 * parameters * (1 - resident)
    return between if every is None else between + (12 * parameters - between) / every


def also_right(parameters, resident, every):
    """By adding up the steps, partition by partition in thousandths."""
    checked(resident, every)
    kept = round(1000 * resident)
    total = 0
    for step in range(1, (every or 1) + 1):
        publishes = every is not None and step == every
        total += sum(12 if publishes else 10 for number in range(1000) if publishes or number >= kept)
    return total * parameters / 1000 / (every or 1)


@pytest.mark.parametrize("function", [right, also_right])
def test_a_right_function_passes(function):
    assert bytes_written.check(function)


def left_out(parameters, resident, every):
    checked(resident, every)
    return right(parameters, 0, every) * (1 - resident)


def never_raises(parameters, resident, every):
    try:
        return right(parameters, resident, every)
    except ValueError:
        return 0.0


@pytest.mark.parametrize(
    "wrong, said",
    [
        (left_out, "also where a step is"),
        (lambda n, r, e: checked(r, e) or (10 * n * (1 - r) if e is None else 12 * n / e), "write nothing. The steps between"),
        (lambda n, r, e: checked(r, e) or (10 * n * (1 - r) if e is None else 12 * n), "You publish every step"),
        (lambda n, r, e: right(n, r, e) - (0 if e is None else 2 * n / e), "You publish the state alone"),
        (lambda n, r, e: right(n, r, e) + 2 * n, "10 bytes a parameter, and no weights"),
        (lambda n, r, e: right(1, r, e), "10 bytes a parameter, and no weights"),
        (never_raises, "anything else is a ValueError"),
        (lambda n, r, e: None, "Not begun"),
    ],
)
def test_a_wrong_one_is_told_what_is_behind_it(wrong, said, capsys):
    assert not bytes_written.check(wrong)
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("every, durability", [(1, "step"), (3, 3), (None, "checkpoint")])
def test_the_engine_writes_what_the_exercise_expects(every, durability, tmp_path):
    n = 8 * 32_768  # records of whole blocks: no padding
    weight = torch.nn.Parameter(torch.ones(n, dtype=torch.bfloat16))
    policy = OffloadPolicy(
        tier="disk", directory=tmp_path / "state", durability=durability, partition_size=n // 8, ram_budget=6 * 12 * n // 8
    )
    with OffloadAdamW([weight], offload=policy) as optimizer:
        counts = []
        for _ in range(12):
            weight.grad = torch.ones_like(weight)
            optimizer.step()
            counts.append(optimizer.stats()["bytes_written"])
        resident = optimizer.stats()["resident_partitions"] / 8
    assert 0 < resident < 1
    assert (counts[11] - counts[5]) / 6 == pytest.approx(right(n, resident, every), rel=1e-9)


def test_a_file_is_read_in_blocks_of_any_size(tmp_path):
    file = BlockFile(tmp_path / "file", 1 << 20)
    try:
        assert read_rate(file, 4096, 3, seconds=0.01) > 0
        assert read_rate(file, 1 << 20, 1, seconds=0.0) > 0
        for block, depth in ((2 << 20, 1), (4096, 0), (0, 1)):
            with pytest.raises(ValueError, match="at least 1"):
                read_rate(file, block, depth)
    finally:
        file.close()


def test_a_read_that_fails_is_raised_and_no_thread_goes_on(tmp_path):
    file = BlockFile(tmp_path / "file", 1 << 20)
    os.truncate(tmp_path / "file", 4096)
    try:
        with pytest.raises(StorageError, match="reading"):
            read_rate(file, 8192, 2, seconds=60)
    finally:
        file.close()


def test_a_child_that_fails_is_said_in_its_own_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(children.ChildError, match=r"ended with 1: ValueError: OffloadPolicy\(durability='never'\)"):
        children.killed(["never"])
    with pytest.raises(children.ChildError, match="ended with 1: ValueError"):
        children.under_limit(["tape"], 8000, limit=1 << 40)
    assert list(tmp_path.iterdir()) == []


def test_a_child_that_never_ends_is_given_up_with_what_it_forked(tmp_path, monkeypatch):
    inner = "import os, time; pid = os.fork(); print(os.getpid(), flush=True); time.sleep(600)"
    command = [sys.executable, "-c", f"import sys; sys.stdout = open({str(tmp_path / 'pids')!r}, 'w'); {inner}"]
    child = subprocess.Popen(command, stdout=-1, stderr=-1, text=True, start_new_session=True)
    until = time.monotonic() + 60
    while len(pids := _pids(tmp_path / "pids")) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    monkeypatch.setattr(children, "_WAIT", 0.1)
    with pytest.raises(children.ChildError, match="did not end"):
        children._ended(child, "the child")
    assert child.poll() is not None and len(pids) == 2
    while any(_alive(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(_alive(pid) for pid in pids)


def _pids(path):
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def _alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_two_slots_of_twelve_bytes_and_no_gradient_is_read(ran):
    lesson = ran("05")
    assert re.search(r"offload.state +[\d,]+ bytes on the disk +24\.\d", lesson.text("files"))
    rows = re.findall(r"(\d) of 8 .*? ([\d.]+) read, +([\d.]+) written", lesson.text("traffic"))
    assert len(rows) == 3 and len({resident for resident, _, _ in rows}) == 3
    for resident, read, written in rows:
        assert float(read) == pytest.approx(10 * (8 - int(resident)) / 8, abs=0.02)
        assert float(written) == pytest.approx(12, abs=0.02)


def test_each_durability_costs_what_the_text_says(ran):
    rows = re.findall(r"durability=(\S+) +(\d) of 8.*? ([\d.]+) read, +([\d.]+) written", ran("05").text("costs"))
    every = {"'step'": 1, "3": 3, "'checkpoint'": None}
    assert len(rows) == 6
    for durability, resident, _, written in rows:
        assert float(written) == pytest.approx(right(1, int(resident) / 8, every[durability]), abs=0.02)


def test_a_killed_training_leaves_the_step_that_was_published(ran):
    said = ran("05").text("killed")
    assert re.search(r"'step' +its directory can restore: step 6", said)
    assert re.search(r"=5 +its directory can restore: step 5", said)
    assert re.search(r"'checkpoint' +its directory can restore: nothing", said)


@pytest.mark.skipif(bool(limit_is_enforced()), reason="no limit is enforced here")
def test_under_the_limit_only_the_disk_tier_trains(ran):
    said = ran("05").text("limited")
    assert 'tier="ram": out of memory' in said and 'tier="disk": 3 steps' in said


@pytest.mark.skipif(not hasattr(os, "O_DIRECT"), reason="no direct I/O on this system")
def test_whole_blocks_can_be_read(ran):
    said = ran("05").text("aligned")
    assert "whole blocks  4096 bytes read" in said or "no direct I/O here" in said


def test_figures_and_an_exercise_not_begun(ran):
    assert "<img" in ran("05").html("depth")
    assert "Calculated: 7142" in ran("05").text("wear")
    assert "Not begun." in ran("05").text("make-check")
