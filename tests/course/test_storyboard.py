"""A program is written down, watched half by half, and run on real files: what each of them says of it is so."""

import re
import threading

import numpy as np
import pytest

from course.real_bench import RealBench
from course.recorded import MS, recorded, text
from course.storyboard import HALVES, Storyboard, story, storyboard, told, told_gradient
from offload_lab.races import RACES, reveal
from offload_lab.revealer import ELEMENTS, KINDS, Bench

by_race = pytest.mark.parametrize("race", RACES, ids=lambda race: race.name)


# --- written down ---------------------------------------------------------------------------------------------------


def test_a_step_names_what_it_touches_and_what_has_ended_for_certain():
    steps = recorded(RACES[0].fixed, partitions=2).steps
    assert [step.after for step in steps] == [(), (0,), (1,), (2,), (3,), (4,)]
    assert steps[0].reads == {"disk-0"} and steps[0].writes == {"buffer-0"}
    assert steps[1].reads == {"buffer-0", "gradient-0"} and steps[1].writes == {"buffer-0"}
    assert steps[5].reads == {"buffer-0"} and steps[5].writes == {"disk-1"}
    assert text(steps).splitlines()[1].split("  after ") == [" 1  update of partition 0 in buffer 0 ", "(0,)"]


def test_two_waits_are_both_remembered_and_one_behind_another_only_once():
    def program(bench):
        first, second = bench.read(0, 0), bench.read(1, 1)
        first.wait(), second.wait(), second.wait()
        bench.update(0, 0)
        bench.update(1, 1)

    assert [step.after for step in recorded(program).steps] == [(), (), (0, 1), (2,)]


@by_race
def test_milliseconds_are_those_of_lanes_that_run_beside_each_other(race):
    told_ms = recorded(race.fixed).ms
    busy = {"read": 5 * MS["read"], "update": 5 * MS["update"], "write": 5 * MS["write"]}
    assert max(busy.values()) <= told_ms <= sum(busy.values())


def test_a_lane_does_one_thing_at_a_time():
    def program(bench):
        for partition in bench.partitions:
            bench.read(partition, partition % 2)

    run = recorded(program, {"read": 10}, partitions=3)
    assert run.ms == pytest.approx(30)
    assert [(round(1000 * event.start), round(1000 * event.end)) for event in run.events] == [(0, 10), (10, 20), (20, 30)]
    assert recorded(lambda bench: None).ms == 0


# --- moment by moment -----------------------------------------------------------------------------------------------


def test_what_lies_in_half_a_state_is_read_off_its_numbers():
    at, half = np.arange(ELEMENTS, dtype=float), HALVES[1]
    assert told(at + 3000, half) == "3" and told(at + 3004, half) == "3+" and told(at + 3002, half) == "3?"
    assert told(np.full(ELEMENTS, np.nan), half) == "NaN"
    mixed = at.copy()
    mixed[-1] += 1000
    assert told(mixed, half) == "mix" and told(mixed, HALVES[0]) == "0"
    mixed[-1] = np.nan
    assert told(mixed, half) == "mix"
    assert told_gradient(np.array([np.nan, 0.0, 0.0, 2.0]), slice(0, 1)) == "NaN"
    assert told_gradient(np.array([0.0, 0.0, 2.0]), slice(0, 2)) == "0"
    assert told_gradient(np.array([0.0, 2.0, 5.0]), slice(1, 3)) == "g"
    assert told_gradient(np.array([0.0, 2.0]), slice(0, 2)) == "mix"


def test_a_late_read_is_half_poison_until_it_is_waited_for():
    watched = story(RACES[0].fixed, ("read",), partitions=1)
    assert [str(moment) for moment in watched.moments] == [
        "1st half of read 0",
        "2nd half of read 0",
        "update 0",
        "1st half of write 0",
        "2nd half of write 0",
    ]
    assert [moment.holds["buffer 0"] for moment in watched.moments[:3]] == [("0", "NaN"), ("0", "0"), ("0+", "0+")]
    assert watched.until == 5 and watched.wrong() == []


def test_what_is_let_go_when_the_program_is_over_is_told_apart():
    watched = story(RACES[0].broken, ("read",), partitions=1)
    assert [str(moment) for moment in watched.moments[watched.until :]] == ["2nd half of read 0"]
    assert watched.wrong() == ["disk 0"] and watched.moments[-1].holds["disk 0"] == ("0+", "NaN")


@by_race
def test_a_watched_program_does_what_the_revealer_saw(race):
    late = reveal(race.broken, race).held_back
    for program, right in ((race.broken, False), (race.fixed, True)):
        bench = Bench(late, gradients_here=race.gradients_here)
        program(bench)
        bench.end(False)
        watched = story(program, late, partitions=5, gradients_here=race.gradients_here)
        assert (bench.fault() is None) == (watched.wrong() == []) == right


def test_watching_is_never_two_at_a_time_and_sees_both_halves():
    seen, transfers, inside = [], {}, threading.Lock()

    def watch(kind, partition, buffer, half, transfer):
        assert inside.acquire(blocking=False), "somebody else is watching"
        seen.append((kind, half))
        transfers.setdefault(transfer, []).append((kind, partition, half))
        inside.release()

    bench = Bench(KINDS, watch=watch)
    RACES[1].broken(bench)
    bench.end(True)
    for kind, halves in (("read", (1, 2)), ("write", (1, 2)), ("update", (0,))):
        assert all(seen.count((kind, half)) == 5 for half in halves)
    assert len(seen) == 25
    assert len(transfers.pop(-1)) == 5 and list(transfers) == list(range(10))
    assert all(one == (*other[:2], 1) and other[2] == 2 for one, other in transfers.values())


def test_two_reads_of_one_partition_into_one_buffer_are_told_apart():
    def again(bench):
        bench.read(0, 0)
        bench.read(0, 0).wait()

    watched = story(again, ("read",), partitions=1)
    assert [(moment.transfer, moment.half) for moment in watched.moments] == [(0, 1), (1, 1), (1, 2), (0, 2)]
    lines = re.findall(r'd="M([\d.]+) [\d.]+H([\d.]+)"', Storyboard("t", {"again": watched}, ("read",)).svg())
    assert sorted(float(end) - float(start) for start, end in lines) == [0, 2 * 76], "two columns under way, and none"


def test_a_program_that_raises_is_told_and_leaves_no_thread():
    def stops(bench):
        bench.read(0, 0)
        raise RuntimeError("of the learner")

    before = threading.active_count()
    with pytest.raises(RuntimeError, match="of the learner"):
        story(stops, KINDS)
    assert threading.active_count() <= before


@by_race
def test_a_picture_has_both_stories_and_no_hole(race):
    late = reveal(race.broken, race).held_back
    programs = {"as listed": race.broken, "mended": race.fixed}
    figure = storyboard("title", programs, late, gradients_here=race.gradients_here, partitions=3)
    drawn, said = figure.svg(), figure.text()
    assert drawn.startswith("<svg") and not re.search(r'="(nan|-?inf)"', drawn)
    assert "mended: all right at the end." in said and "as listed: wrong at the end: " in said
    assert drawn.count(">wrong<") >= 1 and ">right<" in drawn
    xs = [float(x) for x in re.findall(r'<rect x="([\d.]+)"', drawn)]
    assert max(xs) < 760


def test_a_program_that_does_nothing_is_drawn():
    assert Storyboard("t", {"none": story(lambda bench: None, ())}, ()).svg().startswith("<svg")


# --- on real files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("race", [RACES[0], RACES[1], RACES[3]], ids=lambda race: race.name)
@pytest.mark.parametrize("slow", [(), ("read", "write")], ids=str)
def test_a_fix_is_right_on_real_files_whatever_is_slow(race, slow, tmp_path):
    folder = tmp_path / "où ça"
    folder.mkdir()
    before = threading.active_count()
    with RealBench(slow=slow, seconds=0.0005, folder=folder) as bench:
        assert all(bench.run(race.fixed) for _ in range(20))
    assert list(folder.iterdir()) == [] and threading.active_count() <= before


def test_real_files_show_what_is_wrong():
    def forgets_one(bench):
        for partition in bench.partitions[1:]:
            bench.read(partition, 0).wait()
            bench.update(partition, 0)
            bench.write(partition, 0).wait()

    with RealBench() as bench:
        assert not bench.run(forgets_one)
        assert bench.run(RACES[0].fixed), "the next run starts anew"


def test_what_a_program_leaves_under_way_is_waited_for():
    def leaves_it(bench):
        for partition in bench.partitions:
            bench.read(partition, 0).wait()
            bench.update(partition, 0)
            writing = bench.write(partition, 0)
            if partition + 1 in bench.partitions:
                writing.wait()

    with RealBench(partitions=2, slow=("write",), seconds=0.05) as bench:
        assert bench.run(leaves_it)


def test_a_program_that_raises_leaves_neither_file_nor_thread(tmp_path):
    def stops(bench):
        bench.read(0, 0)
        raise RuntimeError("of the learner")

    before = threading.active_count()
    with pytest.raises(RuntimeError, match="of the learner"), RealBench(folder=tmp_path) as bench:
        bench.run(stops)
    assert list(tmp_path.iterdir()) == [] and threading.active_count() <= before


def test_a_folder_that_is_not_there_is_said(tmp_path):
    before = threading.active_count()
    with pytest.raises(OSError, match="missing"):
        RealBench(folder=tmp_path / "missing")
    assert threading.active_count() <= before
