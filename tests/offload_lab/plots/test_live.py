"""The live view: few messages, one plot, no thread and no error lost, something left to look at."""

import gc
import subprocess
import sys
import threading
import traceback
import weakref
from types import SimpleNamespace
from xml.etree import ElementTree

import comm
import IPython
import ipywidgets
import nbformat
import pytest
import torch
from comm.base_comm import BaseComm
from ipywidgets.widgets.widget import _instances
from nbclient import NotebookClient
from torch import nn

from offload_lab.meter import Meter, Reading
from offload_lab.plots import LiveMemory, MemoryPlot, front_end, live
from offload_lab.plots.front_end import FrontEnd, probe
from offload_lab.plots.renderers import PictureRenderer, WidgetRenderer

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


def view(renderer="svg", screen=None, **options):
    return LiveMemory("AdamW", front_end=FrontEnd(renderer), display=screen or Screen(), **options)


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


@pytest.mark.parametrize("how", ["stop()", "timeout", "button"])
def test_it_stops_when_it_is_told_to(how):
    seen = view("svg")
    seen.start(until_stopped, FixedMeter())
    assert seen.running
    if how == "stop()":
        seen.stop()
    elif how == "button":
        seen._stop.set()
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
    assert seen._losses == [5.5] and not seen._stop.is_set()


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


# What is sent


@pytest.fixture
def wire(monkeypatch):
    """The messages that widgets send."""
    sent = []

    class Wire(BaseComm):
        def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **keys):
            sent.append(msg_type)

    monkeypatch.setattr(comm, "create_comm", lambda *arguments, **options: Wire(*arguments, **options))
    return sent


def plot(count=1, limit=None):
    readings = [Reading(n / 10, 50 * MB, 0, 100 * MB, 490 * MB, 0, 300 * MB) for n in range(count)]
    return MemoryPlot({"AdamW": readings}, "T", limit, notes={"AdamW": f"running: {count} steps"})


def test_at_most_ten_messages_a_second_go_to_the_front_end(wire):
    widget = WidgetRenderer(Screen(), threading.Event())
    widget.open(plot())
    wire.clear()
    for count in range(2, 12):
        widget.draw(plot(count))
    assert wire and len(wire) / 10 / widget.interval <= 10
    widget.close(plot(12))
    screen = Screen()
    picture = PictureRenderer(screen, threading.Event(), FrontEnd("figure"))
    picture.open(plot())
    picture.draw(plot(2))
    assert len(screen.places[0]) == 2 and 1 / picture.interval <= 10


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


def test_a_widget_becomes_a_still_picture_and_none_is_left(wire):
    gc.collect()
    before = set(_instances)
    screen, stop = Screen(), threading.Event()
    for _ in range(5):
        widget = WidgetRenderer(screen, stop)
        widget.open(plot())
        (button,) = [w for w in widget._all if isinstance(w, ipywidgets.Button)]
        widget.draw(plot(9))
        assert not stop.is_set()
        button.click()
        assert stop.is_set()
        stop.clear()
        widget.close(plot(10))
        assert set(_instances) == before
    for first, *_, last in screen.places:
        assert "application/vnd.jupyter.widget-view+json" in first and "image/svg+xml" in first
        assert set(last) == {"text/html", "image/svg+xml", "text/plain"}


def test_a_figure_is_bounded_and_keeps_no_line_of_the_frame_before(wire):
    widget = WidgetRenderer(Screen(), threading.Event())
    widget.open(plot(1, limit=200 * MB))
    for count in (10, 5000):
        widget.draw(plot(count, limit=200 * MB))
        assert len(widget._figure.layout.shapes) == len(widget._figure.layout.annotations) == 1
    assert max(len(trace.x) for trace in widget._figure.data) <= 302
    assert [trace.y[-1] for trace in widget._figure.data] == [50 * MB, 0, 100 * MB, 0, -490 * MB]
    assert widget._figure.data[-1].customdata[-1] == "490 MB"
    assert [trace.showlegend for trace in widget._figure.data] == [True, False, True, False, True]
    assert "running: 5000 steps" in widget._figure.layout.title.text
    widget.close(plot())


# Which renderer


class Shell(SimpleNamespace):
    def get_parent(self):
        return {"metadata": self.metadata}


LAB = {"cellId": "a-b-c", "trusted": True}


@pytest.fixture
def in_kernel(monkeypatch):
    def choose(metadata, blocked=()):
        for module in blocked:
            monkeypatch.setitem(sys.modules, module, None)
        shell = Shell(kernel=object(), metadata=metadata)
        monkeypatch.setattr(front_end, "_shell", lambda: shell)
        return probe()

    return choose


def test_the_best_that_works_is_chosen(in_kernel):
    assert in_kernel(LAB) == FrontEnd("widget", button=True)


@pytest.mark.parametrize("metadata", [{}, None, {"trusted": True}])
def test_without_anybody_in_front_it_is_a_picture(in_kernel, metadata, monkeypatch):
    monkeypatch.setenv("VSCODE_PID", "1")
    assert in_kernel(metadata) == FrontEnd("svg")


@pytest.mark.parametrize(
    "blocked, renderer, button, named",
    [
        (["anywidget"], "figure", True, "anywidget"),
        (["ipywidgets"], "figure", False, "ipywidgets"),
        (["plotly.graph_objects"], "svg", True, "plotly"),
        (["plotly.graph_objects", "ipywidgets", "anywidget"], "svg", False, "ipywidgets"),
    ],
)
def test_what_is_missing_is_named_and_a_picture_is_shown(in_kernel, blocked, renderer, button, named, wire):
    found = in_kernel(LAB, blocked)
    assert (found.renderer, found.button) == (renderer, button)
    assert f"{named} cannot be imported" in found.why
    screen = Screen()
    LiveMemory("AdamW", front_end=found, display=screen).run(steps(2), FixedMeter())
    first, *_, last = screen.places[0]
    assert "image/svg+xml" in first and ("application/vnd.plotly.v1+json" in first) == (renderer == "figure")
    assert set(last) == {"text/html", "image/svg+xml", "text/plain"}
    assert found.why in last["text/plain"] and "cannot be imported" in last["text/html"]
    assert len(screen.places) == 1 + button


@pytest.mark.parametrize("works", [True, False])
def test_colab_is_asked_to_show_widgets_and_may_refuse(in_kernel, monkeypatch, works):
    asked = []
    output = SimpleNamespace(enable_custom_widget_manager=lambda: asked.append(1)) if works else SimpleNamespace()
    monkeypatch.setitem(sys.modules, "google.colab", SimpleNamespace(output=output))
    monkeypatch.setitem(sys.modules, "google.colab.output", output)
    found = in_kernel({})
    if works:
        assert found == FrontEnd("widget", button=True) and asked
    else:
        assert found.renderer == "figure" and "Colab's widget manager did not start" in found.why


def test_a_terminal_gets_text(monkeypatch):
    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace())
    assert probe() == FrontEnd("text")


SCRIPT = """
import threading
from offload_lab.meter import Reading
from offload_lab.plots import LiveMemory

class Meter:
    def read(self):
        return Reading(0.0, 50_000_000, 0, 0, 0, 0, 0)

view = LiveMemory("AdamW")
view.start(lambda stop, on_step: on_step(1, 5.5), Meter())
run = view.wait()
print(repr(run))
# Left running: Python ends at once, and not in the middle of a step.
view.start(lambda stop, on_step: print("told to stop:", stop.wait(300)), Meter())
"""


@pytest.mark.parametrize("terminal", [False, True])
def test_a_script_prints_text_and_no_markup_and_ends(terminal):
    command = [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor"] if terminal else [sys.executable]
    done = subprocess.run([*command, "-c", SCRIPT], capture_output=True, text=True, timeout=240, check=True)
    assert "AdamW (finished: 1 step, loss 5.50 to 5.50): at most 50 MB in RAM" in done.stdout
    assert "<" not in done.stdout and "Traceback" not in done.stderr
    assert done.stdout.endswith("told to stop: True\n")


CELLS = [
    """
import threading
from offload_lab.meter import Reading
from offload_lab.plots import LiveMemory

class Meter:
    def read(self):
        return Reading(0.0, 50_000_000, 0, 0, 490_000_000, 0, 0)

view = LiveMemory("AdamW")
view.start(lambda stop, on_step: [on_step(step, 5.5) for step in range(3)], Meter())
""",
    "view.wait(timeout=60)",
    "view.start(lambda stop, on_step: 1 / 0, Meter())",
    """
try:
    view.wait()
except ZeroDivisionError as error:
    print("caught", error)
print([thread.name for thread in threading.enumerate() if "live" in thread.name or "sampler" in thread.name])
""",
]


def test_a_notebook_keeps_one_still_picture_a_run_and_no_widget():
    """Through a real kernel, from top to bottom, without anybody in front of it."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown, waited, failed, caught = (cell.outputs for cell in notebook.cells)
    assert "widgets" not in notebook.metadata
    (picture,) = shown
    assert set(picture.data) == {"text/html", "image/svg+xml", "text/plain"}
    assert "AdamW (finished: 3 steps, loss 5.50 to 5.50): at most 50 MB in RAM" in picture.data["text/plain"]
    assert [output.data["text/plain"] for output in waited] == [
        "AdamW finished: 3 steps, loss 5.50 to 5.50; at most 50 MB in RAM"
    ]
    assert "ZeroDivisionError: division by zero" in failed[0].data["text/plain"]
    assert [output.text for output in caught] == ["caught division by zero\n[]\n"]
