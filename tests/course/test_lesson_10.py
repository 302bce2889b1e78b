"""Lesson 10: what it says of links, tiers and one memory holds; its check accepts what is right and names what is not."""

import re

import pytest

from course.checks.lesson_10 import shared_seconds, simulated


def positive(*rates):
    if min(rates) <= 0:
        raise ValueError("a bandwidth is above 0")


def right(computed, updated, accelerator, cpu, memory):
    positive(accelerator, cpu, memory)
    mine, theirs = min(accelerator, memory / 2), min(cpu, memory / 2)
    first = min(computed / mine, updated / theirs)
    return first + max((computed - mine * first) / accelerator, (updated - theirs * first) / cpu)


def also_right(computed, updated, accelerator, cpu, memory):
    """Who ends first is asked, and then each of the two cases has a formula of its own."""
    positive(accelerator, cpu, memory)
    if accelerator + cpu <= memory:
        return max(computed / accelerator, updated / cpu)
    sides = sorted([(computed, accelerator), (updated, cpu)], key=lambda side: side[0] / min(side[1], memory / 2))
    (ended, fast), (left, slow) = sides
    until = ended / min(fast, memory / 2)
    return until + (left - until * min(slow, memory / 2)) / slow


def what_is_left_over(computed, updated, accelerator, cpu, memory):
    """A fairer memory: what the CPU cannot draw of its half, the accelerator gets. No case of the exercise tells it apart."""
    positive(accelerator, cpu, memory)
    theirs = min(cpu, memory / 2)
    mine = min(accelerator, memory - theirs)
    first = min(computed / mine, updated / theirs)
    return first + max((computed - mine * first) / accelerator, (updated - theirs * first) / cpu)


@pytest.mark.parametrize("function", [right, also_right, what_is_left_over])
def test_a_right_function_passes(function):
    assert shared_seconds.check(function)


def guarded(function):
    return lambda *numbers: positive(*numbers[2:]) or function(*numbers)


@pytest.mark.parametrize(
    "wrong, said",
    [
        (guarded(lambda a, b, x, y, m: (a + b) / (x + y)), "You add the two bandwidths"),
        (guarded(lambda a, b, x, y, m: max(a / x, b / y)), "a lane of its own, as on a link that is full duplex"),
        (guarded(lambda a, b, x, y, m: a / x + b / y), "let one side wait for the other"),
        (guarded(lambda a, b, x, y, m: max(a / min(x, m / 2), b / min(y, m / 2))), "to the very end"),
        (guarded(lambda a, b, x, y, m: (a + b) / m), "divide all bytes by the memory"),
        (guarded(lambda a, b, x, y, m: max(a / x, b / y, (a + b) / m)), "the longest of three bounds"),
        (guarded(lambda *numbers: 8 * right(*numbers)), "not bits"),
        (guarded(lambda *numbers: right(*numbers) / 8), "not bits"),
        (guarded(lambda *numbers: right(*numbers) + 1), "each gets half of it"),
        (lambda *numbers: right(*numbers) if numbers[3] else 0.0, "a ValueError"),
        (lambda a, b, x, y, m: "1 s", "each gets half of it"),
        (lambda a, b, x, y: 1.0, "each gets half of it"),
        (lambda *numbers: None, "Not begun"),
    ],
)
def test_a_wrong_one_is_told_what_is_behind_it(wrong, said, capsys):
    assert not shared_seconds.check(wrong)
    assert said in capsys.readouterr().out


def test_a_memory_that_the_simulator_does_not_have_is_refused():
    with pytest.raises(ValueError, match="the faster side"):
        simulated(1e9, 1e9, 300e9, 200e9, 250e9)


def seconds(text):
    return [float(value) for value in re.findall(r"([\d.]+) s(?: a step)?(?: each)?, simulated", text)]


def test_a_faster_link_moves_the_bottleneck_and_then_changes_little(ran):
    rows = re.findall(r"(\S+) +\d+ GB/s   step ([\d.]+) s, simulated   longest: (.*)", ran("10").text("exchange"))
    taken = {name: float(value) for name, value, _lane in rows}
    longest = {name: lane for name, _value, lane in rows}
    assert len(rows) == 5
    assert longest["pcie3x16"] == longest["pcie4x16"] == "link, down"
    assert longest["pcie5x16"] == longest["nvlink-c2c"] == "CPU's memory"
    assert 1.2 < taken["pcie4x16"] / taken["nvlink-c2c"] < 1.5, "about a third more speed"
    assert taken["pcie5x16"] / taken["nvlink-c2c"] < 1.05, "nearly nothing"


def test_grace_hopper_waits_for_the_memory_of_its_cpu(ran):
    assert "longest: CPU's memory" in ran("10").text("hopper")


def test_cxl_stands_between_ram_and_nvme_and_a_pool_shares_its_bandwidth(ran):
    tiers = seconds(ran("10").text("cxl"))
    assert len(tiers) == 5 and 15 < tiers[0] < 30 and tiers == sorted(tiers, reverse=True)
    assert tiers[-1] < 1.1 and ran("10").text("cxl").splitlines()[-1].endswith("CPU's memory")
    pool = seconds(ran("10").text("pool"))
    assert len(pool) == 4 and pool == sorted(pool) and pool[3] / pool[2] == pytest.approx(2, rel=0.1)


def test_within_one_memory_nothing_is_freed(ran):
    said = ran("10").text("one-memory")
    assert re.findall(r'(\w+) +state="(\w+)": (fits|does not fit)', said) == [
        ("gh200", "ram", "fits"),
        ("gb10", "ram", "does not fit"),
        ("gb10", "disk", "fits"),
    ]
    assert len(re.findall(r"one memory: .* of 137", said)) == 2


def test_two_sides_of_one_memory_take_what_all_bytes_need(ran):
    said = ran("10").text("sharing")
    assert "Simulated: 1.00 s" in said and "for each, of the same bandwidths: 0.75 s" in said
    assert right(150e9, 150e9, 300e9, 200e9, 300e9) == pytest.approx(1.0)


def test_only_all_of_them_together_carry_their_factor_over(ran):
    times = [float(value) for value in re.findall(r" ([\d.]+) s", ran("10").text("true"))]
    as_it_is, *alone, together = times
    assert len(alone) == 5 and all(as_it_is >= value > as_it_is / 4 * 1.2 for value in alone)
    assert together == pytest.approx(as_it_is / 4, abs=0.002)


def test_every_rate_says_where_it_is_from(ran):
    rates = ran("10").text("links")
    notes = re.sub(r"\n    ", " ", ran("10").text("sources"))
    named = re.findall(r"^(.+?) +\d+ GB/s +[\d.]+ s   (data sheet|assumed)$", rates, re.M)
    assert len(named) == 11
    for name, source in named:
        (note,) = (line for line in notes.splitlines() if line.startswith(f"- {name.strip()}: "))
        assert source == "assumed" or re.search(r'"[^"]+", \d{4}, https://', note), note


def test_the_anchor_is_measured_and_all_else_says_that_it_is_not(ran):
    lesson = ran("10")
    rows = re.findall(r"predicted +(\d+) ms, measured +(\d+) ms: ([\d.]+) times", lesson.text("trust"))
    assert len(rows) == 3 and "by a factor of" in lesson.text("trust")
    for name in ("exchange-figure", "hopper", "sharing-figure", "change", "next-run", "next-tornado"):
        assert "simulated" in lesson.text(name).lower() and "<img" in lesson.html(name), name
    assert "measured" not in lesson.text("change") + lesson.text("next-tornado")


def test_a_machine_that_does_not_exist_fits_and_is_predicted(ran):
    assert "does not fit" not in ran("10").text("compose")
    assert "Simulated: " in ran("10").text("next-run") and "Not begun." in ran("10").text("make-check")
