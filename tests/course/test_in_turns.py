"""Trainings that take turns: who is timed when, by a clock that the test turns; and the figures that were recorded once."""

import pytest

from course.in_turns import Turns, in_turns
from course.recorded_sides import RECORDED


class Clock:
    """Stands still but for what the trainings take."""

    def __init__(self):
        self.now, self.order = 0.0, []

    def __call__(self):
        return self.now

    def training(self, name, seconds, first=0.0):
        """Takes `seconds` a step, and `first` more when it is asked for the first time; its loss is the steps done."""
        done = 0

        def train(steps):
            nonlocal done
            self.now += seconds * steps + (first if not done else 0.0)
            done += steps
            self.order.append(name)
            return float(done)

        return train


def test_the_first_round_is_not_timed_and_losses_are_of_every_round():
    clock = Clock()
    slow, fast = in_turns(
        {"slow": clock.training("slow", 2.0, first=99.0), "fast": clock.training("fast", 0.5)},
        rounds=3,
        steps=4,
        most=1e6,
        clock=clock,
    )
    assert slow.seconds == (2.0, 2.0, 2.0) and fast.seconds == (0.5, 0.5, 0.5)
    assert slow.losses == fast.losses == (4.0, 8.0, 12.0, 16.0)
    assert slow.median == 2.0 and str(slow).split("   ")[0].startswith("slow")
    assert "2000.0 ms a step (2000.0 to 2000.0)   loss 16.0000" in str(slow)


def test_every_round_begins_with_another_one():
    clock = Clock()
    in_turns({name: clock.training(name, 1.0) for name in "abc"}, rounds=3, steps=1, most=1e6, clock=clock)
    assert "".join(clock.order) == "abcbcacababc"


def test_when_the_time_is_over_no_round_is_begun_but_one_counts():
    clock = Clock()
    (only,) = in_turns({"a": clock.training("a", 10.0)}, rounds=9, steps=1, most=5.0, clock=clock)
    assert len(only.seconds) == 1 and len(only.losses) == 2
    clock = Clock()
    (only,) = in_turns({"a": clock.training("a", 10.0)}, rounds=9, steps=1, most=35.0, clock=clock)
    assert len(only.seconds) == 3, "at 40 s no other is begun"


@pytest.mark.parametrize("given", [{"rounds": 0}, {"steps": 0}, {"trainings": {}}])
def test_nothing_to_do_is_an_error(given):
    with pytest.raises(ValueError, match="at least one training"):
        in_turns(**({"trainings": {"a": lambda steps: 0.0}} | given))


def test_what_a_training_raises_goes_on():
    def ends(steps):
        raise RuntimeError("ended")

    with pytest.raises(RuntimeError, match="ended"):
        in_turns({"a": ends})


def test_recorded_figures_are_told_as_recorded_with_machine_and_date():
    said = str(RECORDED)
    first, versions, *rows = said.splitlines()
    assert first.startswith("Recorded on 2026-") and "not measured here" in first
    assert "AMD EPYC" in first and "DeepSpeed 0.19" in versions
    assert len(rows) == len(RECORDED.turns) == 3 and all(turn.name in said for turn in RECORDED.turns)
    assert set(RECORDED.disk) == {turn.name for turn in RECORDED.turns}
    assert len({f"{turn.losses[-1]:.3f}" for turn in RECORDED.turns}) == 1, "one algorithm"
    assert "Recorded on" in RECORDED.launched and "4.3276" in RECORDED.launched
    assert isinstance(RECORDED.turns[0], Turns)
