"""The live view: few messages, one plot, no thread and no error lost, something left to look at."""

import gc
import threading
import traceback
import weakref
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import torch
from torch import nn

from offload_lab.meter import Meter
from offload_lab.plots import live
from tests.offload_lab.plots.doubles import MB, PATIENCE, FixedMeter, Screen, steps, view


def until_stopped(stop, on_step):
    on_step(1, 5.5)
    assert stop.wait(PATIENCE)
    return "asked to"


def ours():
    return [thread.name for thread in threading.enumerate() if thread.name in {"live training", "live plot", "memory sampler"}]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    assert ours() == []


def test_a_run_returns_what_it_measured_and_leaves_a_still_picture():
    screen = Screen()
    run = view(screen=screen, prediction_bytes=120 * MB, limit_bytes=170 * MB).run(steps(3), FixedMeter())
    assert (run.name, run.outcome, run.losses, run.value) == ("AdamW", "finished", [5.0, 4.0, 3.0], "model")
    assert run.readings[0].weights == 50 * MB
    assert repr(run) == "AdamW finished: 3 steps, loss 5.00 to 3.00; at most 150 MB in RAM"
    (place,) = screen.places
    left = place[-1]
    assert set(left) == {"text/html", "image/svg+xml", "text/plain"}
    for words in ("finished: 3 steps, loss 5.00 to 3.00", "at most 150 MB in RAM", "Your prediction: 120 MB", "limit"):
        assert words in left["text/plain"].replace("Limit", "limit")
    assert 'alt="Memory while AdamW trains' in left["text/html"]
    assert ElementTree.fromstring(left["image/svg+xml"]).find("{http://www.w3.org/2000/svg}desc").text in left["text/plain"]


def test_the_numbers_are_those_of_a_real_training():
    model = nn.Linear(100, 100, bias=False)
    optimizer = torch.optim.AdamW(model.parameters())
    meter = Meter(model, optimizer)

    def work(stop, on_step):
        for step in (1, 2):
            with meter.watching():
                loss = model(torch.ones(5, 100)).sum()
                loss.backward()
            optimizer.step()
            on_step(step, loss.item())

    run = view("text").run(work, meter)
    assert (run.readings[-1].weights, run.readings[-1].optimizer_ram) == (40_000, 80_000)


@pytest.mark.parametrize("how", ["stop()", "timeout"])
def test_it_stops_when_it_is_told_to(how):
    seen = view("svg")
    seen.start(until_stopped, FixedMeter())
    assert seen.running
    if how == "stop()":
        seen.stop()
    run = seen.wait(timeout=0 if how == "timeout" else PATIENCE)
    assert run.outcome == ("stopped after 0 s" if how == "timeout" else "stopped")
    assert (run.value, run.losses, seen.running) == ("asked to", [5.5], False)
    assert seen.wait() == run


def test_an_interrupt_stops_leaves_the_plot_and_goes_on(monkeypatch):
    screen = Screen()
    seen = view(screen=screen)
    seen.start(until_stopped, FixedMeter())

    class Interrupted:
        def __init__(self, event):
            self.event, self.is_set = event, event.is_set

        def wait(self, timeout):
            raise KeyboardInterrupt

    monkeypatch.setattr(seen, "_ended", Interrupted(seen._ended))
    with pytest.raises(KeyboardInterrupt):
        seen.wait()
    assert ours() == []
    assert "interrupted: 1 step" in screen.places[0][-1]["text/plain"]


def raises(stop, on_step):
    on_step(1, 5.5)
    raise ZeroDivisionError("in the middle\nof a step")


@pytest.mark.parametrize("renderer", ["svg", "text"])
def test_what_the_training_raises_is_raised_with_its_traceback(renderer, capsys):
    screen = Screen()
    seen = view(renderer, screen)
    seen.start(raises, FixedMeter())
    with pytest.raises(ZeroDivisionError) as caught:
        seen.wait()
    assert "raises" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    said = screen.places[0][-1]["text/plain"] if renderer == "svg" else capsys.readouterr().out
    assert "ZeroDivisionError: in the middle: 1 step, loss 5.50 to 5.50" in said


@pytest.mark.parametrize("error", [RuntimeError("no meter"), KeyError("no meter")])
def test_what_the_meter_raises_is_raised(error):
    meter = FixedMeter(error)

    def until_read_twice(stop, on_step):
        while meter.count < 2:
            stop.wait(0.001)

    with pytest.raises(type(error), match="no meter"):
        view(sample_seconds=0.001).run(until_read_twice, meter, PATIENCE)


def test_what_drawing_raises_is_raised_and_training_and_measuring_go_on_till_the_end():
    failed, meter = threading.Event(), FixedMeter()

    class Broken(Screen):
        def __call__(self, shown, raw=False, display_id=False):
            def update(shown, raw=False):
                if threading.current_thread().name == "live plot":
                    failed.set()
                    raise OSError("the front end is gone")

            return SimpleNamespace(update=update)

    def work(stop, on_step):
        assert failed.wait(PATIENCE)
        before = meter.count
        while meter.count < before + 5 and not stop.wait(0.001):
            pass
        on_step(1, 5.5)

    seen = view(screen=Broken(), sample_seconds=0.001)
    seen.start(work, meter)
    with pytest.raises(OSError, match="front end is gone"):
        seen.wait(PATIENCE)
    assert seen._losses.kept == [5.5] and not seen._stop.is_set()


def test_a_run_that_is_started_ends_the_one_before_and_a_cell_may_run_fifty_times():
    screen = Screen()
    before = view(screen=screen)
    before.start(until_stopped, FixedMeter())
    after = view()
    after.start(steps(1), FixedMeter())
    assert not before.running and after.wait().outcome == "finished"
    assert "stopped for the next run" in screen.places[0][-1]["text/plain"]
    again = view(screen=screen)
    for _ in range(50):
        again.start(until_stopped, FixedMeter())
        assert len(ours()) <= 3
    again.stop()
    assert again.wait().outcome == "stopped"


def test_waiting_for_nothing_says_what_to_do():
    with pytest.raises(RuntimeError, match=r"call start\(work, meter\) first"):
        view().wait()


def test_a_training_that_does_not_listen_is_named(monkeypatch):
    monkeypatch.setattr(live, "GRACE", 0.01)
    release = threading.Event()
    seen = view("text")
    seen.start(lambda stop, on_step: release.wait(PATIENCE), FixedMeter())
    with pytest.raises(RuntimeError, match="AdamW: the training goes on"):
        seen.wait(timeout=0)
    release.set()
    monkeypatch.setattr(live, "GRACE", PATIENCE)
    assert seen.wait().outcome == "stopped after 0 s"


def test_the_model_may_go_when_the_run_is_over():
    model = nn.Linear(3, 3)
    seen = view()
    seen.start(lambda stop, on_step, model=model: None, Meter(model, torch.optim.AdamW(model.parameters())))
    seen.wait()
    alive = weakref.ref(model)
    del model
    gc.collect()
    assert alive() is None and seen.readings


def test_nothing_is_printed_from_a_thread(monkeypatch):
    printed = []
    monkeypatch.setattr("builtins.print", lambda *words: printed.append(threading.current_thread()))
    view("text").run(steps(3), FixedMeter())
    assert printed == [threading.main_thread()]


def test_the_view_keeps_to_the_pace_of_its_renderer():
    """The follower waits the interval between two drawings, whatever the clock says."""
    waits, seen = [], view()
    seen.start(until_stopped, FixedMeter())
    seen.stop()
    seen.wait()

    class Ended:
        def wait(self, seconds):
            waits.append(seconds)
            return len(waits) == 4

    drawn = []
    seen._ended, seen._sampler = Ended(), SimpleNamespace(stop=lambda: None, readings=[])
    seen._renderer = SimpleNamespace(interval=0.25, draw=lambda plot: drawn.append(len(waits)), close=lambda plot: None)
    seen._outcome = lambda: "running"
    seen._follow()
    assert waits == [0.25] * 4 and drawn == [1, 2, 3]


def test_a_view_that_costs_much_is_drawn_less_often(monkeypatch):
    """Of a second of the processor for one drawing it takes a hundred before the next."""
    clock, waits, seen = [0.0], [], view()
    seen.start(steps(1), FixedMeter())
    seen.wait()
    monkeypatch.setattr(live.time, "thread_time", lambda: clock[0])

    class Ended:
        def wait(self, seconds):
            waits.append(seconds)
            return len(waits) == 3

    def draw(plot):
        clock[0] += len(waits)

    seen._ended, seen._sampler = Ended(), SimpleNamespace(stop=lambda: None, readings=[])
    seen._renderer = SimpleNamespace(interval=0.25, draw=draw, close=lambda plot: None)
    seen._outcome = lambda: "running"
    seen._follow()
    assert waits == [0.25, 1 / live.SHARE, 2 / live.SHARE]
