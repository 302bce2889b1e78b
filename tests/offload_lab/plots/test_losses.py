"""Losses and readings of a long run stay bounded, and what is said of it stays exact."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload_lab.meter import Sampler
from offload_lab.plots.losses import Losses
from tests.offload_lab.plots.doubles import FixedMeter, Screen, view


@given(st.integers(0, 500), st.integers(2, 40))
def test_what_is_kept_is_evenly_spaced_from_the_first(count, limit):
    losses = Losses(limit)
    for step in range(1, count + 1):
        losses.add(float(step))
    assert len(losses) == count and len(losses.kept) <= limit
    assert losses.kept == [float(step) for step in range(1, count + 1, losses.apart)]
    assert losses.apart == 1 or len(losses.kept) > limit // 2, "no more goes than has to"
    assert str(losses) == (f"{count} step{'s'[: count > 1]}, loss 1.00 to {count}.00" if count else "")


@pytest.mark.parametrize("limit", [1, 0, -3])
def test_a_limit_that_keeps_nothing_is_refused(limit):
    with pytest.raises(ValueError, match="limit="):
        Losses(limit)


@pytest.mark.parametrize("renderer", ["widget", "figure", "svg"])
def test_ten_minutes_of_updates_take_no_more_than_two(renderer):
    """Ten minutes at 20 readings and 500 steps a second, without waiting for them; drawn once a minute."""
    screen, seen, sizes, held = Screen(), None, [], {}

    def work(stop, on_step):
        sampler = Sampler(FixedMeter())
        seen._sampler.stop()
        seen._sampler = sampler
        for second in range(600):
            for step in range(500):
                on_step(step, 6.0 - second / 600)
            for _ in range(20):
                sampler.sample()
            if second % 60 == 59:
                plot = seen.plot()
                sizes.append((second, len(plot.text()), sum(map(len, plot.series.values()))))
                seen._renderer.draw(plot)
                for place in screen.places:  # the screen's own copies are no part of what is kept here
                    del place[:-1]
            if second in (120, 599):
                held[second] = tracemalloc.get_traced_memory()[0]

    seen = view(renderer, screen)
    tracemalloc.start()
    try:
        run = seen.run(work, FixedMeter(), 600)
    finally:
        tracemalloc.stop()
    assert run.steps == 300_000 and len(run.losses) <= 2000 and len(run.readings) <= 2000
    assert "300000 steps, loss 6.00 to 5.00" in repr(run)
    assert max(points for _, _, points in sizes) <= 2000
    # 180,000 more losses alone would be 5.8 MB of floats and of places in a list.
    assert held[599] - held[120] < 1_000_000, held
