"""Lesson 1: the check of its exercise, and what it reads of the machine."""

from functools import partial

import pytest

from course import machine
from course.checks.lesson_01 import bytes_in_ram
from offload_lab import catalogue
from offload_lab.state_bytes import training_bytes


def right(parameters, dtype, where):
    weight = 4 if dtype == "float32" else 2
    state = {"adamw": 8 if dtype == "float32" else 12, "ram": 8 if dtype == "float32" else 10, "disk": 0}
    return parameters * (2 * weight + state[where])


def also_right(parameters, dtype, where):
    """The package's own arithmetic, as a float."""
    return float(sum(size for kind, size in training_bytes(parameters, dtype, where).ram.items() if "buffer" not in kind))


@pytest.mark.parametrize("function", [right, also_right])
def test_a_right_function_passes(function, capsys):
    assert bytes_in_ram.check(function)
    assert capsys.readouterr().out == "Right, for all 8 cases.\n"


def not_written(parameters, dtype, where):
    raise NotImplementedError("later")


def without_master(parameters, dtype, where):
    copies = {"adamw": 4, "ram": 2, "disk": 0} if dtype == "bfloat16" else {}
    return right(parameters, dtype, where) - parameters * copies.get(where, 0)


def for_ever(parameters, dtype, where):
    return for_ever(parameters, dtype, where)


@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda parameters, dtype, where: None, "Not begun. Write bytes_in_ram in the cell above, and run both again."),
        (lambda parameters, dtype, where: 16 * parameters, "You give sixteen everywhere"),
        (lambda parameters, dtype, where: parameters * (4 if dtype == "float32" else 2), "You count the weights only"),
        (lambda p, dtype, where: right(p, dtype, where) - p * (4 if dtype == "float32" else 2), "leave the gradients out"),
        (without_master, "forget the master"),
        (lambda p, dtype, where: right(p, dtype, "adamw" if where == "ram" else where), "the whole master in RAM"),
        (lambda parameters, dtype, where: right(1, dtype, where), "bytes_in_ram(1000, 'float32', 'adamw') should"),
        (lambda parameters, dtype, where: 1 / 0, "ZeroDivisionError"),
        (lambda: 16, "TypeError"),
        (not_written, "NotImplementedError: later"),
        (for_ever, "RecursionError"),
        (partial(right, dtype="float32"), "TypeError"),
    ],
)  # fmt: skip
def test_a_wrong_one_is_told_its_idea_or_its_input(wrong, said, capsys):
    assert bytes_in_ram.check(wrong) is False
    assert said in capsys.readouterr().out


def test_the_hardware_file_is_kept_whole_where_the_disk_is_full(tmp_path, monkeypatch):
    path = tmp_path / "dossier à lire" / "hardware.json"
    monkeypatch.setenv("OFFLOAD_LAB_HARDWARE", str(path))
    assert machine.keep(catalogue.machine("rtx4090-nvme")) == path
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("quizzes.certificates.publish.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        machine.keep(catalogue.machine("rtx4090-nvme"))
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]
