"""Lesson 4: timelines, modes and limits are as it says; its puzzles accept what is right and name what is not."""

import re
from functools import partial
from itertools import cycle

import pytest
import torch

from course.checks.lesson_04 import check_schedule
from course.sleeping import SleepingModel
from course.two_runs import two_runs
from offload_lab import schedulers
from offload_lab.trace import Event
from offload_lab.work import TaskList


def ahead(work):
    tasks, free, last = TaskList(), {}, None
    for item in work.items:
        buffer = item.partition % 2
        read = tasks.read(item, buffer, after=free.get(buffer))
        update = tasks.update(item, buffer, after=(read, last))
        free[buffer] = last = tasks.write(item, buffer, after=update)
    return tasks


def behind(work):
    tasks, turns, written = TaskList(), cycle(range(work.buffers)), {}
    for item in work.items:
        if item.resident:
            tasks.write(item, None, after=tasks.update(item, None))
            continue
        buffer = next(turns)
        update = tasks.update(item, buffer, after=tasks.read(item, buffer, after=written.get(buffer)))
        written[buffer] = tasks.write(item, buffer, after=update)
    return tasks


def behind_otherwise(work):
    """The same waits, put in the list by hand: all that stays in RAM is updated first."""
    tasks = TaskList()
    for item in [item for item in work.items if item.resident]:
        tasks.write(item, None, after=tasks.update(item, None))
    writes = []
    for turn, item in enumerate(work.streamed):
        buffer = turn % work.buffers
        free = writes[turn - work.buffers] if turn >= work.buffers else None
        update = tasks.update(item, buffer, after=(tasks.read(item, buffer, free),))
        writes.append(tasks.write(item, buffer, after=(update,)))
    return tasks


def backward(work):
    tasks, written = TaskList(), {}
    for turn, item in enumerate(work.items):
        buffer = turn % work.buffers
        here = tasks.gradient(item)
        read = tasks.read(item, buffer, after=written.get(buffer))
        written[buffer] = tasks.write(item, buffer, after=tasks.update(item, buffer, after=(here, read)))
    return tasks


@pytest.mark.parametrize(
    "schedule, name",
    [
        (ahead, "read ahead"),
        (behind, "read ahead"),
        (behind, "write behind"),
        (behind_otherwise, "write behind"),
        (backward, "update in backward"),
        (schedulers.in_backward, "update in backward"),
    ],
)
def test_a_right_schedule_passes(schedule, name, capsys):
    assert check_schedule(schedule, name)
    assert "as fast as the reference in every case" in capsys.readouterr().out


def too_early(work):
    tasks, updated = TaskList(), {}
    for item in work.items:
        buffer = item.partition % 2
        read = tasks.read(item, buffer, after=updated.get(buffer))
        updated[buffer] = tasks.update(item, buffer, after=read)
        tasks.write(item, buffer, after=updated[buffer])
    return tasks


def one_by_one(work):
    """As the lesson shows it."""
    tasks, written = TaskList(), None
    for item in work.items:
        read = tasks.read(item, buffer=0, after=written)
        update = tasks.update(item, buffer=0, after=read)
        written = tasks.write(item, buffer=0, after=update)
    return tasks


class Mine(Exception):
    pass


def raises_its_own(work):
    raise Mine("not today")


def forgets_to_write(work):
    tasks, last = TaskList(), None
    for item in work.items:
        last = tasks.update(item, 0, after=tasks.read(item, 0, after=last))
    return tasks


def update_before_read(work):
    tasks, last = TaskList(), None
    for item in work.items:
        read = tasks.read(item, 0, after=last)
        update = tasks.update(item, 0, after=last)
        last = tasks.write(item, 0, after=(update, read))
    return tasks


def all_gradients_first(work):
    tasks, written = TaskList(), {}
    here = [tasks.gradient(item) for item in work.items]
    for turn, item in enumerate(work.items):
        buffer = turn % work.buffers
        read = tasks.read(item, buffer, after=written.get(buffer))
        written[buffer] = tasks.write(item, buffer, after=tasks.update(item, buffer, after=(*here, read)))
    return tasks


@pytest.mark.parametrize(
    "schedule, name, said",
    [
        (lambda work: None, "write behind", "Not begun. Use all buffers"),
        (lambda work: TaskList(), "read ahead", "Not begun. While one partition"),
        (too_early, "read ahead", "A buffer is free when its write has ended"),
        (forgets_to_write, "read ahead", "not right yet"),
        (update_before_read, "read ahead", "not right yet"),
        (lambda work: 1 / 0, "read ahead", "it raised ZeroDivisionError"),
        (lambda work: [1, 2], "read ahead", "not right yet"),
        (lambda: None, "read ahead", "it raised TypeError"),
        (raises_its_own, "read ahead", "it raised Mine: not today (line"),
        (schedulers.no_overlap, "write behind", "Nothing overlaps yet"),
        (partial(schedulers.read_ahead, depth=2), "write behind", "no update runs beside a write"),
        (partial(schedulers.write_behind, depth=2), "write behind", "There are buffers that you do not use"),
        (one_by_one, "write behind", "Nothing overlaps yet"),
        (schedulers.write_behind, "update in backward", "does not wait for its gradient"),
        (all_gradients_first, "update in backward", "Do you wait for all gradients"),
    ],
)
def test_a_wrong_or_slow_one_is_told_what_is_behind_it(schedule, name, said, capsys):
    assert not check_schedule(schedule, name)
    assert said in capsys.readouterr().out


def test_two_runs_share_one_axis_and_say_their_ends():
    short = [Event("read", "disk-read", 0, 5.0, 6.0, 10)]
    long = [Event("read", "disk-read", 0, 0.0, 4.0, 10), Event("update", "cpu", 0, 4.0, 5.0, 1)]
    figure = two_runs("Two", {"yours": long, "reference": short})
    assert "yours: 5 s; reference: 1 s" in figure.text() and "<svg" in figure.svg() and "end, yours" in figure.svg()
    with pytest.raises(ValueError, match="two runs"):
        two_runs("One", {"yours": long})
    with pytest.raises(ValueError, match="source"):
        two_runs("Two", {"a": long, "b": short}, source="guessed")


def test_a_sleeping_model_brings_its_gradients_from_the_end():
    model = SleepingModel(layers=3, numel=7)
    model.forward().backward()
    for weight, gradient in zip(model.parameters(), model.gradients, strict=True):
        assert torch.equal(weight.grad, gradient)
    assert [event.partition for event in model.events] == [0, 1, 2, 2, 1, 0]
    assert torch.equal(model.weights[2], SleepingModel(3, 7).weights[2])


def test_the_timelines_take_what_the_text_works_out(ran):
    lesson = ran("04")
    assert "Predicted: 30 tasks on 10 partitions in 700 ms" in lesson.text("one-by-one")
    assert "Simulated: 340.00 ms" in lesson.text("pipelined")
    assert "does not wait for task 2, which works in buffer 0" in lesson.text("race")
    assert "one after the other  full duplex  700 ms   half duplex  700 ms" in lesson.text("duplex")
    overlapped = int(re.search(r"all overlapped .* half duplex +(\d+) ms", lesson.text("duplex"))[1])
    assert 550 <= overlapped < 600
    assert "167.0 ms" in lesson.text("transfer") and "158.5 ms" in lesson.text("transfer")


def test_more_buffers_help_until_the_slowest_lane_never_pauses(ran):
    taken = [int(found) for found in re.findall(r"buffers: +(\d+) ms", ran("04").text("change"))]
    assert taken == sorted(taken, reverse=True) and taken[0] == 700 and taken[1] > taken[-1] == 340


def test_no_mode_changes_a_bit_and_backward_forbids_two_things(ran):
    lesson = ran("04")
    assert "weights that differ between the three: 0" in lesson.text("modes")
    assert 'Use overlap="forward", which clips exactly' in lesson.text("forbidden")
    assert 'needs tier="disk" and durability="step"' in lesson.text("forbidden")


def test_pageable_is_at_most_half_as_fast(ran):
    said = ran("04").text("pinned")
    for pinned, pageable in re.findall(r"pinned +([\d.]+) GB/s.*?pageable +([\d.]+) GB/s", said):
        assert float(pageable) <= float(pinned) / 2 + 0.1


def test_each_figure_is_a_picture_that_says_where_it_is_from(ran):
    lesson = ran("04")
    for name in ("one-by-one", "pipelined", "engine", "none-figure", "backward-figure", "cannot"):
        assert "<img" in lesson.html(name), name
    assert "Measured: " in lesson.text("none-figure") and "pretended link" in lesson.text("none-figure")


def test_puzzles_not_begun_end_well(ran):
    for name in ("make-ahead-check", "make-behind-check", "make-backward-check"):
        assert "Not begun." in ran("04").text(name)
