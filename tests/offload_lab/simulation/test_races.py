"""Each fault shows every time, each fix passes every time, and what is shown to a learner is what runs."""

import itertools
import threading

import pytest

from offload_lab.races import RACES, reveal, source
from offload_lab.revealer import KINDS, Bench

TIMES = 8


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.name)
def test_the_fault_shows_every_time_and_the_fix_passes_every_time(race):
    for _ in range(TIMES):
        found = reveal(race.broken, race)
        assert found.fault is not None and len(found.held_back) == 1
        assert "should be" in str(found) and found.held_back[0] in str(found)
        assert reveal(race.fixed, race).fault is None
    assert "No race" in str(reveal(race.fixed, race))


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.name)
def test_the_fault_is_a_race_and_nothing_else(race):
    """With no transfer late, the broken program is right: a test without the revealer would pass it."""
    bench = Bench(gradients_here=race.gradients_here)
    race.broken(bench)
    bench.end(False)
    assert bench.fault() is None


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.name)
def test_the_fix_is_as_right_with_everything_late_in_every_combination(race):
    for count in range(len(KINDS) + 1):
        for held_back in itertools.combinations(KINDS, count):
            bench = Bench(held_back, gradients_here=race.gradients_here)
            race.fixed(bench)
            assert bench.fault() is None  # nothing is left to `end`: a fix waits for all that it started
            bench.end(False)


def test_the_same_number_of_transfers_is_started_by_a_fault_and_its_fix():
    """A fix that does less at once than it must would be no lesson: it starts the same transfers."""
    for race in RACES:
        started = []
        for program in (race.broken, race.fixed):
            bench = Bench(gradients_here=race.gradients_here)
            program(bench)
            started.append(len(bench._started))
        assert started[0] == started[1] >= 10


def test_no_thread_is_left():
    before = threading.active_count()
    for race in RACES:
        reveal(race.broken, race)
    assert threading.active_count() == before


def test_what_is_shown_is_the_program():
    assert len({race.name for race in RACES}) == len(RACES) == 6
    for race in RACES:
        assert source(race.broken).startswith("def ") and source(race.broken) != source(race.fixed)
        assert race.hint.endswith("?") and race.why.endswith(".")


def test_a_program_of_ones_own_is_judged():
    def forgets_the_last_partition(bench):
        for partition in bench.partitions[:-1]:
            bench.read(partition, 0).wait()
            bench.update(partition, 0)
            bench.write(partition, 0).wait()

    found = reveal(forgets_the_last_partition)
    assert found.held_back == () and "partition 4, on disk, is 4000 and should be 4005" in found.fault
    assert str(found).startswith("With nothing as late as")


def test_what_was_there_before_is_no_excuse():
    """The second read brings what is in the buffer already: only poison shows that it is not waited for."""

    def reads_again(bench):
        for partition in bench.partitions:
            bench.read(partition, 0).wait()
            bench.read(partition, 0)
            bench.update(partition, 0)
            bench.write(partition, 0).wait()

    found = reveal(reads_again)
    assert found.held_back == ("read",) and "nan" in found.fault
