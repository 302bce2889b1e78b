"""Lesson 2: what it says about Adam, about the last bit and about the master copy holds."""

import math
import re

import pytest
import torch

from course.checks.lesson_02 import steps_until_it_moves


def right(weight, update, fraction_bits):
    exponent = math.floor(math.log2(weight))
    half = 2.0 ** (exponent - fraction_bits) / 2
    return 0 if update >= half else math.ceil(half / update)


def also_right(weight, update, fraction_bits):
    """By adding up, in steps: with integers, for a sum of floats would drift."""
    from fractions import Fraction

    half = Fraction(2) ** (math.frexp(weight)[1] - 1 - fraction_bits) / 2
    each, total, step = Fraction(update), Fraction(0), 0
    if each >= half:
        return 0
    while total < half:
        total, step = total + each, step + 1
    return step


@pytest.mark.parametrize("function", [right, also_right])
def test_a_right_function_passes(function):
    assert steps_until_it_moves.check(function)


def test_torch_agrees_on_when_a_bfloat16_moves():
    for weight, update in [(1.0, 0.001), (2.0, 0.001), (3.0, 0.001), (0.5, 0.001)]:
        steps, master = 0, torch.tensor(weight, dtype=torch.float64)
        while master.to(torch.bfloat16).item() == weight:
            master, steps = master + update, steps + 1
        assert right(weight, update, 7) == (0 if steps == 1 else steps)


def rounds_down(weight, update, fraction_bits):
    half = 2.0 ** (math.floor(math.log2(weight)) - fraction_bits) / 2
    return 0 if update >= half else int(half / update)


@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda w, u, f: right(w, u / 2, f) if u < 2.0 ** (math.frexp(w)[1] - 1 - f) else 0, "half of the gap is enough"),
        (lambda w, u, f: right(1.0, u, f), "the gap of 1 for every weight"),
        (rounds_down, "You round the number of steps down"),
        (lambda w, u, f: right(w, u, f + 1), "The gap at 1 is 1/128"),
        (lambda w, u, f: max(right(w, u, f), 1), "it moves by itself"),
    ],
)
def test_a_wrong_one_is_told_what_is_behind_it(wrong, said, capsys):
    assert not steps_until_it_moves.check(wrong)
    assert said in capsys.readouterr().out


def test_the_step_does_not_follow_the_size_of_the_gradient(ran):
    steps = [float(found) for found in re.findall(r": ([+-][\d.]+)$", ran("02").text("hand"), re.M)]
    assert len(steps) == 3 and steps[1] == steps[2] == -0.001 and steps[0] == pytest.approx(-0.001, rel=0.02)


def test_float64_agrees_and_float32_has_a_last_bit(ran):
    said = ran("02").text("parity")
    in64, in32 = (float(found) for found in re.findall(r"largest difference ([\d.e+-]+)", said))
    assert in64 < 1e-13 and 0 < in32 < 1e-5
    assert "bits that differ between RAM and disk: 0" in ran("02").text("tiers")


def test_what_is_added_to_sixteen_bits_is_lost(ran):
    lesson = ran("02")
    assert "bfloat16: 1.0000" in lesson.text("sum") and "float32:  2.0000" in lesson.text("sum")
    assert "update  3: master 1.0030, as bfloat16 1\n" in lesson.text("crossing")
    assert "update  4: master 1.0040, as bfloat16 1.00781" in lesson.text("crossing")
    assert "0 differ in a bit" in lesson.text("halves")
    assert "bfloat16: 1.0000" in lesson.text("transfer")


def test_alone_it_falls_behind_and_with_masters_it_does_not(ran):
    said = ran("02").text("train")
    full, mixed, alone = (float(found) for found in re.findall(r"steps: ([\d.]+)", said))
    assert abs(mixed - full) < 0.02 and alone > full + 0.1
    share = float(re.search(r"Measured: ([\d.]+) %", ran("02").text("moved"))[1])
    assert 1 < share < 80


def test_the_curves_are_a_picture_with_words(ran):
    assert "<img" in ran("02").html("curves") and "bfloat16 alone: from" in ran("02").text("curves")
