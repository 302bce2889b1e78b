"""What goes to the front end, and which of them gets what."""

import gc
import subprocess
import sys
import threading
from types import SimpleNamespace

import comm
import IPython
import ipywidgets
import nbformat
import pytest
from comm.base_comm import BaseComm
from ipywidgets.widgets.widget import _instances
from nbclient import NotebookClient

from offload_lab.meter import Reading
from offload_lab.plots import LiveMemory, MemoryPlot, front_end
from offload_lab.plots.front_end import FrontEnd, probe
from offload_lab.plots.renderers import PictureRenderer, WidgetRenderer
from tests.offload_lab.plots.doubles import MB, PATIENCE, FixedMeter, Screen, steps

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


@pytest.mark.parametrize("kind", ["widget", "svg"])
def test_the_stop_button_ends_the_training(kind, wire, monkeypatch):
    buttons = []
    made = ipywidgets.Button
    monkeypatch.setattr(ipywidgets, "Button", lambda **options: buttons.append(made(**options)) or buttons[-1])
    seen = LiveMemory("AdamW", front_end=FrontEnd(kind, button=True), display=Screen())
    seen.start(lambda stop, on_step: stop.wait(PATIENCE), FixedMeter())
    buttons[0].click()
    run = seen.wait()
    assert (run.value, run.outcome, len(buttons)) == (True, "stopped", 1)


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


def test_a_cell_that_runs_fifty_times_leaves_no_widget_and_as_many_places(wire):
    gc.collect()
    before, screen = set(_instances), Screen()
    view = LiveMemory("AdamW", front_end=FrontEnd("widget", button=True), display=screen)
    for _ in range(50):
        view.start(lambda stop, on_step: stop.wait(PATIENCE), FixedMeter())
        assert len(set(_instances) - before) <= 12
    view.stop()
    assert view.wait().outcome == "stopped"
    assert set(_instances) == before and len(screen.places) == 50


def test_a_figure_is_bounded_and_keeps_no_line_of_the_frame_before(wire):
    widget = WidgetRenderer(Screen(), threading.Event())
    widget.open(plot(1, limit=200 * MB))
    for count in (10, 5000):
        widget.draw(plot(count, limit=200 * MB))
        assert len(widget._figure.layout.shapes) == len(widget._figure.layout.annotations) == 1
    assert 150 < max(len(trace.x) for trace in widget._figure.data) <= 302
    assert widget._figure.data[0].x[-1] == pytest.approx(499.9)
    assert [trace.y[-1] for trace in widget._figure.data] == [50 * MB, 0, 100 * MB, 0, -490 * MB]
    assert widget._figure.data[-1].customdata[-1] == 490 * MB
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
