"""Lesson 7: its checks accept what is right and name what is not; what it says of its listings holds."""

import re
import threading

import pytest

from course import abandoned
from course.checks.lesson_07 import check_mended, check_missing_waits
from offload_lab.races import RACES, reveal
from offload_lab.revealer import Bench

SECOND = RACES[1]


# --- missing_waits --------------------------------------------------------------------------------------------------


def meets(one, other):
    return bool(one.writes & other.writes or one.writes & other.reads or one.reads & other.writes)


def right(steps, meets=meets):
    """All that is before a step, gathered from the front."""
    before = []
    for step in steps:
        before.append(set(step.after).union(*(before[other] for other in step.after)))
    return [(i, j) for j in range(len(steps)) for i in range(j) if i not in before[j] and meets(steps[i], steps[j])]


def also_right(steps):
    """A walk back from each later step, and pairs as they come: a generator of lists, some of them twice."""
    for later in range(len(steps)):
        reached, waiting = set(), list(steps[later].after)
        while waiting:
            if (number := waiting.pop()) not in reached:
                reached.add(number)
                waiting.extend(steps[number].after)
        for earlier in sorted(set(range(later)) - reached, reverse=True):
            for _place in (steps[earlier].writes & steps[later].reads) | (
                (steps[earlier].reads | steps[earlier].writes) & steps[later].writes
            ):
                yield [earlier, later]


@pytest.mark.parametrize("function", [right, also_right, lambda steps: set(right(steps))])
def test_a_right_checker_passes(function, capsys):
    assert check_missing_waits(function)
    assert re.search(r"Right, for \d\d lists of steps", capsys.readouterr().out)


def direct(steps, meets=meets):
    return [(i, j) for j in range(len(steps)) for i in range(j) if i not in steps[j].after and meets(steps[i], steps[j])]


def only(meets):
    return lambda steps: [(i, j) for i, j in right(steps) if meets(steps[i], steps[j])]


def readers_too(steps):
    every = direct(steps, lambda one, other: bool((one.reads | one.writes) & (other.reads | other.writes)))
    return sorted({*right(steps), *(pair for pair in every if pair not in direct(steps))})


def strangers_too(steps):
    """Nothing is missing, whatever list is drawn: what is too many is all there is to say."""
    strangers = right(steps, lambda one, other: not (one.reads | one.writes) & (other.reads | other.writes))
    return sorted({*right(steps), *strangers})


def wrong_order(steps):
    return [(later, earlier) for earlier, later in right(steps)]


def changed(steps):
    """Spoils what it is given, for whoever comes after it."""
    found = right(steps)
    steps.clear()
    return found


@pytest.mark.parametrize(
    "wrong, said",
    [
        (direct, "waits carry on"),
        (only(lambda one, other: one.writes & other.reads), "The earlier step only reads, and still it races"),
        (only(lambda one, other: not one.reads & other.writes), "The earlier step only reads, and still it races"),
        (only(lambda one, other: one.writes & other.reads or one.reads & other.writes), "Both write one place"),
        (readers_too, "Both only read the place"),
        (wrong_order, "the other way round"),
        (lambda steps: direct(steps, lambda *_: True), "Both only read the place"),
        (strangers_too, "share no place"),
        (lambda steps: [], "is missing. "),
        (lambda steps: right(steps)[:1], "is missing. "),
        (lambda steps: [(i, j) for i, j in right(steps) if j == i + 1], "is missing. "),
        (lambda steps: bool(right(steps)), "A list of pairs of numbers is wanted"),
        (lambda steps: [(steps[i].name, steps[j].name) for i, j in right(steps)], "A list of pairs of numbers is wanted"),
        (lambda steps: right(steps) or None, "A list of pairs of numbers is wanted"),
        (lambda steps: 1 / 0, "it stops with ZeroDivisionError"),
        (lambda steps: (pair for pair in [steps[0]]), "it stops with IndexError"),
        (lambda: [], "it stops with TypeError"),
        (lambda steps: None, "Not begun. Return a list of pairs"),
    ],
)
def test_a_wrong_checker_is_told_what_is_behind_it(wrong, said, capsys):
    assert not check_missing_waits(wrong)
    out = capsys.readouterr().out
    assert said in out
    assert ("expected: [" in out and "\nyours:    " in out) or "stops with" in said or "Not begun" in said


def test_what_a_checker_does_to_its_list_harms_nobody():
    assert check_missing_waits(changed)


def test_the_shortest_list_is_shown(capsys):
    assert not check_missing_waits(lambda steps: [])
    assert len(re.findall(r"^\d  ", capsys.readouterr().out, re.M)) == 2


# --- a mended listing -----------------------------------------------------------------------------------------------


def waits_at_once(bench):
    for turn, partition in enumerate(bench.partitions):
        bench.read(partition, turn % 2).wait()
        bench.update(partition, turn % 2)
        bench.write(partition, turn % 2).wait()


def two_behind(bench):
    """Another right one: the write of two turns ago, out of a list."""
    writing = []
    for partition in bench.partitions:
        if len(writing) > 1:
            writing.pop(0).wait()
        bench.read(partition=partition, buffer=partition % 2).wait()
        bench.update(partition=partition, buffer=partition % 2)
        writing.append(bench.write(partition=partition, buffer=partition % 2))
    for pending in writing:
        pending.wait()


def looks_at_data(bench):
    waits_at_once(bench)
    bench.disk[0].sum()


@pytest.mark.parametrize(
    "program, said",
    [
        (SECOND.fixed, "No wait too many."),
        (two_behind, "No wait too many."),
        (waits_at_once, "40% slower than it has to be"),
        (looks_at_data, "What it costs cannot be told"),
    ],
)
def test_a_mended_listing_passes_and_is_told_what_it_costs(program, said, capsys):
    assert check_mended(program, SECOND)
    out = capsys.readouterr().out
    assert "Right: " in out and said in out


def last_one(bench):
    """Waits for the write of the turn before instead of that of two turns ago: right, with the wrong buffer in mind."""
    writing = None
    for turn, partition in enumerate(bench.partitions):
        bench.read(partition, turn % 2).wait()
        bench.update(partition, turn % 2)
        if writing is not None:
            writing.wait()
        writing = bench.write(partition, turn % 2)
    writing.wait()


def never_waits(bench):
    for partition in bench.partitions:
        bench.read(partition, 0)
        bench.update(partition, 0)
        bench.write(partition, 0)


def forgets(bench):
    for partition in bench.partitions[1:]:
        bench.read(partition, 0).wait()
        bench.update(partition, 0)
        bench.write(partition, 0).wait()


def test_a_wait_for_the_other_buffer_is_right_where_it_carries_on():
    assert check_mended(last_one, SECOND), "the write of the turn before is waited for before this one's is started"


@pytest.mark.parametrize(
    "wrong, said",
    [
        (SECOND.broken, "Nothing makes the read of partition 2 into buffer 0 wait for the write of partition 0"),
        (never_waits, "Nothing makes the update of partition 0"),
        (forgets, "With nothing as late as the program allows"),
        (abandoned.reads_ahead, "What is late shows no fault, and still there is a race"),
        (lambda bench: bench.raed(0, 0), "it stops with AttributeError"),
        (lambda bench: bench.read(0, 7), "it stops with IndexError"),
        (lambda: None, "it stops with TypeError"),
        ("no function", "it stops with TypeError"),
        (lambda bench: None, "Not begun."),
    ],
)
def test_a_listing_that_is_not_mended_is_told_why(wrong, said, capsys):
    before = threading.active_count()
    assert not check_mended(wrong, SECOND)
    assert said in capsys.readouterr().out and threading.active_count() <= before


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.name)
def test_each_listing_is_judged(race, capsys):
    assert check_mended(race.fixed, race) and not check_mended(race.broken, race)


# --- the lesson as run ----------------------------------------------------------------------------------------------


def test_the_real_runs_are_counted_and_nothing_is_claimed_of_a_single_day(ran):
    said = ran("07").text("runs")
    counts = [int(number) for number in re.findall(r"(\d+) wrong", said)]
    assert len(counts) == 3 and all(0 <= number <= 400 for number in counts)
    assert f"Measured: {400 - counts[0]}.00." in said and "of 400 runs, measured" in said


def test_order_is_read_off_the_list(ran):
    rows = ran("07").text("written-down").splitlines()
    assert [row.split("  after ")[1] for row in rows if row.strip()] == ["nothing", "nothing", "(0,)", "(1, 2)"]


def test_waiting_everywhere_costs_what_the_lesson_says(ran):
    said = ran("07").text("careful")
    assert "Simulated: 1.40 ×." in said and "350 ms" in said and "250 ms" in said


def test_poison_stands_for_what_is_not_there_yet(ran):
    started, waited = [row for row in ran("07").text("half").splitlines() if ":" in row]
    assert started.count("nan") == 2 and "nan" not in waited


def test_a_pause_does_not_fool_the_revealer(ran):
    assert "With each read as late as the program allows" in ran("07").text("pause")


def test_one_race_needs_two_that_are_late(ran):
    verdicts = re.findall(r"late: (.*?)  +(.*)", ran("07").text("choices"))
    assert [late for late, _verdict in verdicts] == ["nothing", "read", "write", "read and write"]
    assert [verdict == "all right" for _late, verdict in verdicts] == [True, True, True, False]
    assert "wrong at the end: disk 1" in ran("07").text("choices-figure")


def test_another_race_shows_with_one_late_and_not_with_two():
    """As the lesson says below its table."""

    def written_before_it_is_updated(bench):
        for partition in bench.partitions:
            bench.read(partition, 0).wait()
            updating = bench.update_later(partition, 0)
            writing = bench.write(partition, 0)
            updating.wait()
            writing.wait()

    found = {}
    for late in (("update",), ("update", "write")):
        bench = Bench(late)
        written_before_it_is_updated(bench)
        bench.end(False)
        found[late] = bench.fault()
    assert found["update",] is not None and found["update", "write"] is None
    assert reveal(written_before_it_is_updated).held_back == ("update",)


def test_each_listing_comes_with_its_picture(ran):
    for number in range(1, 7):
        assert "Which line goes ahead" in ran("07").text(f"ask-{number}")
        said, html = ran("07").text(f"show-{number}"), ran("07").html(f"show-{number}")
        assert "You picked no line." in said and "The fix:" in said and "<img" in html
        assert "mended: all right at the end" in said
    assert "You picked no line in any of the 6" in ran("07").text("score")


def test_the_exercises_are_not_begun_and_the_careful_one_is_right(ran):
    assert "40% slower" in ran("07").text("change-check") and "Not begun." in ran("07").text("make-check")


def test_the_seventh_is_missed_by_the_one_and_found_by_the_other(ran):
    assert "The revealer: No race found" in ran("07").text("seventh-runs")
    said = ran("07").text("seventh-pairs")
    assert re.search(r"^\d+ pairs that nothing orders", said) and "with one line more: 0 pairs" in said
    assert "0 of 100 runs wrong" in said
