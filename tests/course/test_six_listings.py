"""Each listing of lesson 7 is asked about, answered and revealed; the read that was left alone is what the revealer misses."""

import pytest

from course import abandoned, picking, six_listings
from course.checks.ordering import unordered
from course.real_bench import RealBench
from course.recorded import recorded
from offload_lab.races import RACES, reveal, source
from offload_lab.revealer import Bench


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    """No pick is held, and none is in the notebook."""
    monkeypatch.setattr(picking, "_made", {})
    monkeypatch.setattr(picking, "notebook_path", lambda: tmp_path / "n.ipynb")


@pytest.mark.parametrize("number", range(1, 7))
def test_a_listing_is_asked_about_and_revealed(number, capsys):
    pick = six_listings.ask(number, called="it")
    answers = {}
    for line in pick.options:
        pick.choice = line
        answers[line] = capsys.readouterr().out
    rights = [line for line, answer in answers.items() if answer.startswith("Yes. ")]
    assert 1 <= len(rights) <= 3 and "def " not in "".join(pick.options[line].text for line in rights)
    assert all(len(answer) > 20 for answer in answers.values())
    touching = [
        line for line, option in pick.options.items() if "bench." in option.text and "in bench.partitions" not in option.text
    ]
    told = {answers[line] for line in touching}
    assert len(told) == len(touching), "each line that does something has an answer of its own"
    pick.choice = rights[-1]
    figure = six_listings.revealed(number, pick)
    said = capsys.readouterr().out
    assert f"You picked line {rights[-1]}, and that is it." in said and "should be" in said and "\n+ " in said
    assert "mended: all right at the end." in figure.text() and "wrong at the end" in figure.text()


def test_the_score_counts_what_was_picked(capsys):
    picks = [six_listings.ask(number, "it") for number in (1, 2, 3)]
    assert six_listings.score(picks).startswith("You picked no line")
    picks[0].choice, picks[1].choice = "4", "1"
    assert six_listings.score(picks) == "The right line in 1 of 3 listings. Not picked: 1."
    six_listings.revealed(2, picks[1]), six_listings.revealed(3, picks[2])
    said = capsys.readouterr().out
    assert "You picked line 1. That one is all right." in said and "You picked no line." in said


@pytest.mark.parametrize("number", [0, 7, -1, "1", None])
def test_there_are_six(number):
    with pytest.raises(ValueError, match="listings 1 to 6"):
        six_listings.ask(number, "it")


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.name)
def test_the_fix_is_told_line_by_line(race):
    before, after = source(race.broken), source(race.fixed)
    lines = six_listings.difference(before, after)
    assert [line[2:] for line in lines if line[:1] in "- "] == before.rstrip().splitlines()[1:]
    assert [line[2:] for line in lines if line[:1] in "+ "] == after.rstrip().splitlines()[1:]


# --- the read that was left alone -----------------------------------------------------------------------------------


def test_the_revealer_misses_the_abandoned_read_and_the_list_has_it():
    assert reveal(abandoned.reads_ahead).fault is None
    assert unordered(recorded(abandoned.reads_ahead).steps)
    assert not unordered(recorded(abandoned.waits_for_the_wrong_guess).steps)
    assert reveal(abandoned.waits_for_the_wrong_guess).fault is None


def test_the_abandoned_read_does_harm_where_it_ends_in_between():
    """By hand what the revealer never does: it ends after the read that was wanted, and before the write."""

    class Between(Bench):
        def update(self, partition, buffer):
            for pending in self._started[:-1]:
                pending.wait()
            super().update(partition, buffer)

    for program, right in ((abandoned.reads_ahead, False), (abandoned.waits_for_the_wrong_guess, True)):
        bench = Between(("read",))
        program(bench)
        bench.end(False)
        assert (bench.fault() is None) == right


def test_its_line_is_known_and_its_mend_is_right_on_real_files(capsys, tmp_path):
    pick = abandoned.ask("it")
    rights = [line for line, option in pick.options.items() if option.right]
    assert "6" in rights and "7" not in rights
    with RealBench(slow=("read",), seconds=0.0005, folder=tmp_path) as bench:
        assert all(bench.run(abandoned.waits_for_the_wrong_guess) for _ in range(20))
