"""Ways to show a plot that changes. Whichever is used, a still picture and its text are what is left behind.

`open` and `leave` are called in the cell that starts a run and in the one that waits for it, `draw` and `close` in a thread;
so only `open` and `leave` may print.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from typing import Any, Protocol

from offload_lab.plots import figure as figures
from offload_lab.plots.front_end import FrontEnd
from offload_lab.plots.plot import MemoryPlot

Display = Callable[..., Any]


class Renderer(Protocol):
    interval: float
    """Seconds between two drawings, at least: no more than ten messages a second go to the front end."""

    def open(self, plot: MemoryPlot) -> None:
        """Show it for the first time."""

    def draw(self, plot: MemoryPlot) -> None:
        """Show what has changed, in the same place."""

    def close(self, plot: MemoryPlot) -> None:
        """The run is over: leave a still picture in the place, and no widget."""

    def leave(self, plot: MemoryPlot) -> None:
        """The same from the cell that waits. Not every front end takes what a thread sends between two cells."""


def renderer_for(front_end: FrontEnd, stop: threading.Event, display: Display | None = None) -> Renderer:
    """The renderer that `front_end` asks for; its Stop button, if there is one, sets `stop`."""
    if front_end.renderer == "text":
        return TextRenderer()
    if display is None:
        display = importlib.import_module("IPython.display").display
    if front_end.renderer == "widget":
        return WidgetRenderer(display, stop)
    return PictureRenderer(display, stop, front_end)


class TextRenderer:
    """For terminals and scripts: says in words how it was, when it is over."""

    interval = 0.5

    def open(self, plot: MemoryPlot) -> None:
        pass

    def draw(self, plot: MemoryPlot) -> None:
        pass

    def close(self, plot: MemoryPlot) -> None:
        pass

    def leave(self, plot: MemoryPlot) -> None:
        print(plot.text())


class PictureRenderer:
    """Sends the picture again, to the same place; as a plotly figure too, where there is plotly and somebody to look."""

    interval = 0.25

    def __init__(self, display: Display, stop: threading.Event, front_end: FrontEnd) -> None:
        self._display, self._front_end = display, front_end
        self._button = _button(stop) if front_end.button else None
        self._fixed: dict[str, Any] | None = None
        if front_end.renderer == "figure":
            self._fixed = figures.fixed_json(importlib.import_module("plotly.graph_objects").Figure)
        self._place: Any = None
        self._place_of_button: Any = None

    def open(self, plot: MemoryPlot) -> None:
        self._place = self._display(self._live(plot), raw=True, display_id=True)
        if self._button is not None:
            self._place_of_button = self._display(self._button, display_id=True)

    def draw(self, plot: MemoryPlot) -> None:
        self._place.update(self._live(plot), raw=True)

    def close(self, plot: MemoryPlot) -> None:
        self.leave(plot)
        if self._button is not None:
            for widget in (self._button, self._button.layout, self._button.style):
                widget.close()

    def leave(self, plot: MemoryPlot) -> None:
        self._place.update(plot.bundle(self._front_end.why), raw=True)
        if self._place_of_button is not None:
            self._place_of_button.update({"text/plain": "This run has ended."}, raw=True)

    def _live(self, plot: MemoryPlot) -> dict[str, Any]:
        bundle: dict[str, Any] = plot.bundle(self._front_end.why)
        if self._fixed is not None:
            bundle["application/vnd.plotly.v1+json"] = figures.as_json(self._fixed, plot)
        return bundle


class WidgetRenderer:
    """One FigureWidget with a Stop button, updated in place; closed and replaced by the still picture at the end."""

    interval = 0.5
    """One update is four messages: plotly numbers its edits, and clears each message that it has sent."""

    def __init__(self, display: Display, stop: threading.Event) -> None:
        self._display, self._stop = display, stop
        self._figure: Any = None
        self._layout: dict[str, Any] = {}
        self._all: list[Any] = []
        self._place: Any = None

    def open(self, plot: MemoryPlot) -> None:
        self._figure = figures.build(importlib.import_module("plotly.graph_objects").FigureWidget, plot)
        self._layout = figures.changing(plot)
        button = _button(self._stop)
        box = importlib.import_module("ipywidgets").VBox([self._figure, button])
        self._all = [box, button, self._figure, box.layout, button.layout, button.style]
        view = {"version_major": 2, "version_minor": 0, "model_id": box.model_id}
        # Beside the widget, for a front end that has none: the picture as it is now, and as it will be at the end.
        bundle = plot.bundle() | {"application/vnd.jupyter.widget-view+json": view}
        self._place = self._display(bundle, raw=True, display_id=True)

    def draw(self, plot: MemoryPlot) -> None:
        self._layout = figures.update(self._figure, plot, self._layout)

    def close(self, plot: MemoryPlot) -> None:
        self.leave(plot)
        for widget in self._all:
            widget.close()

    def leave(self, plot: MemoryPlot) -> None:
        self._place.update(plot.bundle(), raw=True)


def _button(stop: threading.Event) -> Any:
    # A kernel takes clicks between cells; while one waits for the run, interrupting it is what ends the training.
    tooltip = "End the training after the step it is in. While a cell waits for it, interrupt that cell instead"
    button = importlib.import_module("ipywidgets").Button(description="Stop", icon="stop", tooltip=tooltip)
    button.on_click(lambda _: stop.set())
    return button
