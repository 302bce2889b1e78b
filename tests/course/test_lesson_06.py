"""Lesson 6: what each residency reads, on the engine and in the lesson; its checks accept what is right and name the rest."""

import ast
import re
from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course import keeping
from course.checks import lesson_06
from course.keeping import kept, made_up, reads, system_reads
from offload_lab import OffloadAdamW, OffloadPolicy, schedulers
from offload_lab.residency import buffer_bytes
from offload_lab.schedulers import keep
from offload_lab.validation import checked_tasks


def right(held, place, order, following):
    if not held:
        raise ValueError("nothing is held")
    future = [*order[place + 1 :], *following]
    return max(held, key=lambda one: future.index(one) if one in future else len(future))


def also_right(held, place, order, following):
    """By crossing out what comes, until one is left; of several that never come, the last."""
    left = list(held)
    for comes in order[place + 1 :] + following:
        if len(left) > 1 and comes in left:
            left.remove(comes)
    if left:
        return left[-1]
    raise ValueError("nothing is held")


def sorting(held, place, order, following):
    """Right, and untidy: it changes the lists it is given."""
    chosen = right(held, place, order, following)
    held.clear(), order.reverse(), following.clear()
    return chosen


@pytest.mark.parametrize("function", [right, also_right, sorting])
def test_a_right_rule_passes(function, capsys):
    for _again in range(2):  # what is given is not used up
        assert lesson_06.check_give_up(function)
    said = capsys.readouterr().out
    assert "always up: yours reads 4 of 8 a step; LRU 8, the best 4" in said
    assert "up and down: yours reads 2 of 8 a step; LRU 2, the best 2" in said


def nth(n):
    return lambda held, *rest: held[n] if held else right(held, *rest)


def by(turns):
    """The one of most turns, as `turns(partition, place, order, following)` counts them."""
    return lambda held, *rest: max(held, key=lambda one: turns(one, *rest))


def as_in(order):
    return lambda held, place, now, following: right(held, place, now, order(now))


def from_zero(one, place, order, following):
    return order.index(one) - place if one in order[place:] else (*following, *[99] * 9, one).index(one)


def one_short(one, place, order, following):
    return (
        order.index(one) - place if one in order[place:] else len(order) - place - 1 + (*following, *[99] * 9, one).index(one)
    )


@pytest.mark.parametrize(
    "wrong, said",
    [
        (nth(0), "not been used for longest (LRU)"),
        (nth(-1), "You give up what was used last"),
        (lambda held, *rest: min(held, key=lambda one: lesson_06.next_use(one, *rest)), "You give up what is needed soonest"),
        (as_in(lambda now: now), "You take the next step to be like this one"),
        (as_in(lambda now: now[::-1]), "You let every step turn around"),
        (as_in(lambda now: []), "You look no further than this step"),
        (by(lambda one, place, order, following: order.index(one) if one in order else 99), "You compare places in `order`"),
        (by(from_zero), "from its own beginning"),
        (by(one_short), "You are one short at the turn"),
        (lambda held, place, order, following: max(held), "1 has just been used"),
        (lambda held, place, order, following: 2, "should give 6; yours gives 2"),
        (lambda *all_of_it: 1 / 0, "stops with ZeroDivisionError"),
        (lambda held, *rest: right(held, *rest) if held else None, "that is a ValueError"),
        (lambda *all_of_it: None, "Not begun"),
    ],
)
def test_a_wrong_rule_is_told_what_is_behind_it(wrong, said, capsys):
    assert not lesson_06.check_give_up(wrong)
    assert said in capsys.readouterr().out


def test_what_the_cases_do_not_show_the_drawn_orders_do(capsys):
    known = {tuple(case.arguments[0]): case.expected for case in lesson_06.give_up.cases[:-1]}

    def by_heart(held, *rest):
        return known.get(tuple(held), right(held, *rest) if len(held) < 2 else held[0])

    assert not lesson_06.check_give_up(by_heart)
    said = capsys.readouterr().out
    assert "Right, for all 9 cases." in said and "Not yet: give_up([" in said


# --- the schedule that a rule makes -----------------------------------------------------------------------------------


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), st.booleans(), st.booleans(), st.integers(0, 3))
def test_any_rule_makes_a_schedule_that_is_right(partitions, buffers, window, alternating, may_owe, resident):
    case = made_up(partitions, buffers, steps=4)
    items = tuple(replace(one, resident=True, read_bytes=0) if one.partition < resident else one for one in case.work.items)
    case = replace(case, work=replace(case.work, items=items, may_owe=may_owe))
    for rule in (right, nth(0), nth(-1)):
        lists = case.play(kept(rule, alternating, window))  # raises where one is wrong
        assert all(sum(task.kind == "update" for task in tasks) == partitions for tasks in lists)


@given(st.integers(2, 10), st.integers(1, 9), st.booleans())
def test_the_best_rule_reads_as_little_as_any_could(partitions, buffers, alternating):
    """Beside all choices, by dynamic programming over what is held."""
    partitions, buffers = min(partitions, 6), min(buffers, 4)
    case = made_up(partitions, buffers, steps=3)
    up = list(range(partitions))
    uses = [*up, *(up[::-1] if alternating else up), *up]
    least = {frozenset(): 0}
    for use in uses:
        after: dict[frozenset, int] = {}
        for held, count in least.items():
            if use in held:
                after[held] = min(after.get(held, 99), count)
                continue
            smaller = [held] if len(held) < buffers else [held - {one} for one in held]
            for rest in smaller:
                after[rest | {use}] = min(after.get(rest | {use}, 99), count + 1)
        least = after
    mine = sum(reads(case, kept(lesson_06.furthest, alternating, window=1)))
    # The rule looks one step ahead and not to the end: it may keep what no step needs again, but reads no more than the best.
    assert mine == min(least.values())


def test_a_rule_that_names_what_is_not_held_is_refused():
    with pytest.raises(ValueError, match=r"99 was to be given up, and is not one of \[0, 1, 2\]"):
        checked_tasks(kept(lambda *all_of_it: 99), made_up().work)


def test_the_systems_count_grows_or_is_not_told(tmp_path, monkeypatch):
    assert system_reads() is None or system_reads() >= 0
    told = tmp_path / "io"
    monkeypatch.setattr(keeping, "Path", lambda path: told)
    assert system_reads() is None  # no such file, as on other systems
    told.write_text("rchar: 1\nread_bytes: 4096\n")
    assert system_reads() == 4096
    told.write_text("rchar: 1\n")
    assert system_reads() is None


@pytest.mark.parametrize("alternating", [False, True])
def test_on_the_engine_a_right_rule_reads_what_the_engine_itself_does(alternating, tmp_path):
    size, counts = 4096, []
    order = "alternating" if alternating else "forward"
    for number, schedule in enumerate((None, kept(right, alternating))):
        weight = torch.nn.Parameter(torch.ones(8 * size, dtype=torch.bfloat16))
        policy = OffloadPolicy(
            tier="disk", directory=tmp_path / str(number), partition_size=size, ram_budget=6 * buffer_bytes(size),
            residency="furthest", order=order, schedule=schedule,
        )  # fmt: skip
        with OffloadAdamW([weight], offload=policy) as optimizer:
            for step in range(6):
                weight.grad = torch.full_like(weight, 0.01)
                optimizer.step()
                if step == 1:
                    before = optimizer.stats()["bytes_read"]
            counts.append((optimizer.stats()["bytes_read"] - before) / 4 / (10 * size))
    assert counts[0] == counts[1] == reads(made_up(), kept(right, alternating))[-1] == (2 if alternating else 4)


# --- the puzzle -------------------------------------------------------------------------------------------------------


def large_ones(work):
    """Keep the largest; the others turn around in three buffers, between those that stay."""
    size = {item.partition: item.read_bytes for item in work.items}
    staying = set(sorted(size, key=lambda one: (-size[one], one))[: max(work.buffers - 3, 0)])
    order = [one for one in reversed(list(work.held)) if one not in staying]
    others = sorted((one for one in size if one not in staying and one not in order), key=size.get)
    stay = list(staying)
    while others or stay:
        order += [*stay[-1:], *others[:1]]
        stay, others = stay[:-1], others[1:]

    def choose(candidates, turns_until):
        return max([one for one in candidates if one not in staying] or candidates, key=turns_until)

    return keep(work, choose, order=order, following=order[::-1])


def reads_again(work):
    """Up and down, and it reads what is there already."""
    upward = sorted(item.partition for item in work.items)
    tasks = schedulers.write_behind(replace(work, items=tuple(reversed(work.items)) if work.number % 2 else work.items))
    assert len(upward) == sum(task.kind == "update" for task in tasks)
    return tasks


def one_at_a_time(work):
    """Reads as little as the reference, and overlaps nothing."""
    tasks = schedulers.alternating(work)
    return [replace(task, after=tuple({*task.after, task.number - 1}) if task.number else ()) for task in tasks]


@pytest.fixture
def same_machines(monkeypatch):
    """The hidden machines are those of one seed: which are drawn does not decide a test."""
    monkeypatch.setattr(lesson_06, "check", partial(lesson_06.check, seed=3))


@pytest.mark.parametrize(
    "schedule, won, said",
    [
        (schedulers.alternating, True, "Level with the reference"),
        (large_ones, True, "You beat the reference"),
        (schedulers.lru, False, "Yours finds nothing in RAM"),
        (reads_again, False, "Yours finds nothing in RAM"),
        (schedulers.pinned, False, "Which could have been kept?"),
        (one_at_a_time, False, "reads no more than the reference, and takes longer"),
        (lambda work: None, False, "Not begun"),
        (lambda work: 1 / 0, False, "it raised ZeroDivisionError"),
        (lambda work: schedulers.alternating(work)[1:], False, "not right yet"),
    ],
)
def test_a_schedule_is_scored_and_told_why(schedule, won, said, same_machines, capsys):
    assert lesson_06.check_puzzle(schedule) is won
    assert said in capsys.readouterr().out


# --- what the lesson shows --------------------------------------------------------------------------------------------


def test_lru_gives_up_what_comes_next(ran):
    rows = re.findall(r"step (\d) wants (\d), held .*? (hit|read)(?:, gives up (\d))?", ran("06").text("by-hand"))
    assert len(rows) == 8 and all(what == "read" for _, _, what, _ in rows)
    second = [(int(wanted), int(gone)) for step, wanted, _, gone in rows if step == "2"]
    assert all(gone == (wanted + 1) % 4 for wanted, gone in second)


def test_the_same_memory_reads_eight_six_four_and_two(ran):
    lesson = ran("06")
    rows = re.findall(r"^(\w+) +([\d.]+) of 8 +(\d+)% +([\d.]+) +([\d.]+|not told)", lesson.text("policies"), re.M)
    assert [(name, float(count), int(hits)) for name, count, hits, *_ in rows] == [
        ("LRU", 8, 0), ("pinned", 6, 25), ("furthest", 4, 50), ("alternating", 2, 75),
    ]  # fmt: skip
    assert [float(read) for *_, read, _ in rows] == [16, 12, 8, 4]
    assert "weights that differ between the four: 0" in lesson.text("policies")
    assert "Counted: 8.00" in lesson.text("lru") and "Counted: 2.00" in lesson.text("policies")


def test_more_memory_does_what_the_formulas_say(ran):
    rows = [list(map(float, row)) for row in re.findall(r"^(\d) +(\d) +(\d) +(\d) +(\d)$", ran("06").text("more"), re.M)]
    assert [row[0] for row in rows] == [4, 5, 6, 7, 8]
    for buffers, *counts in rows[:-1]:
        assert counts == [8, 8 - (buffers - 4), 8 * (8 - buffers) / (8 - 4), 8 - buffers]
    assert rows[-1][1:] == [0, 0, 0, 0]


def test_a_hit_saves_a_write_of_scratch_files_only(ran):
    rows = re.findall(r"([\d.]+) read, +([\d.]+) written +([\d.]+) read, +([\d.]+) written", ran("06").text("writes"))
    assert len(rows) == 4
    for row, read in zip(rows, (10, 7.5, 5, 2.5), strict=True):
        assert list(map(float, row)) == pytest.approx([read, 12, read, read], abs=0.15)


def test_an_order_that_repeats_is_learned(ran):
    lesson = ran("06")
    assert "gradients came as       [5, 2, 4, 7, 1, 6, 0, 3]" in lesson.text("path")
    orders = [ast.literal_eval(found) for found in re.findall(r"in the order (\[.*?\])", lesson.text("engine-order"))]
    assert len(orders) == 4 and all(sorted(order) == list(range(8)) for order in orders)
    guessed, learned = map(float, re.search(r"guessed (\d+) ms, learned (\d+) ms", lesson.text("guess")).groups())
    assert learned < guessed
    assert "the same path again: 7 of 7" in lesson.text("foretold")
    assert float(re.search(r"Counted: ([\d.]+) %", lesson.text("foretold"))[1]) == pytest.approx(12.5, abs=2.5)


def test_each_figure_is_a_picture_and_nothing_is_begun(ran):
    lesson = ran("06")
    for name in ("lru", "more", "furthest-map", "alternating-map", "guess"):
        assert "<img" in lesson.html(name), name
    assert "Not begun." in lesson.text("make-check") and "Not begun." in lesson.text("puzzle-check")
    assert "as soon as it is right" in lesson.text("make-engine")
    assert "42.0 GB read" in lesson.text("transfer")
