"""Stand-ins for a screen and a meter, for the tests of the live view."""

from types import SimpleNamespace

from offload_lab.meter import Reading
from offload_lab.plots import LiveMemory
from offload_lab.plots.front_end import FrontEnd

MB = 10**6
PATIENCE = 30
"""Seconds after which a test that hangs fails; none waits so long."""


class Screen:
    """Stands in for IPython's display: places, and what was shown in each."""

    def __init__(self):
        self.places = []

    def __call__(self, shown, raw=False, display_id=False):
        place = [shown]
        self.places.append(place)
        return SimpleNamespace(update=lambda shown, raw=False: place.append(shown))


class FixedMeter:
    def __init__(self, error=None):
        self.count, self.error = 0, error

    def read(self):
        self.count += 1
        if self.error is not None and self.count > 1:
            raise self.error
        return Reading(self.count / 10, 50 * MB, 0, 100 * MB, 490 * MB, 0, 300 * MB)


def steps(count):
    def work(stop, on_step):
        for step in range(1, count + 1):
            on_step(step, 6.0 - step)
        return "model"

    return work


def view(renderer="svg", screen=None, **options):
    return LiveMemory("AdamW", front_end=FrontEnd(renderer), display=screen or Screen(), **options)
