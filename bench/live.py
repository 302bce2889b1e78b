"""What the live view costs a training, and whether a long run stays bounded: `python -m bench.live [--json] [--minutes 10]`.

A small GPT trains in blocks, in turn without and with a view that is updated 10 times a second, more often than any view is
in use. With it come the meter, its hooks, the sampler, and drawing and serialising every update, as a kernel does before it
sends one; what the browser does is not in here. Two figures a view: the median over rounds of the ratio of step times within a
round, less one; and the processor time of the view's own threads as a share of the time, which varies less. The limit that
the view sets to its own share is lifted.

With `--minutes` one view then runs for so long while the process is watched: its memory after a tenth of the time and at the
end, and the size of an update.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import statistics
import threading
import time
from types import SimpleNamespace
from typing import Any

import comm
import torch
from comm.base_comm import BaseComm

from bench.machine import describe
from offload_lab import OffloadAdamW
from offload_lab.meter import Meter, rss
from offload_lab.plots import LiveMemory, live
from offload_lab.plots.front_end import FrontEnd
from offload_lab.plots.renderers import PictureRenderer, TextRenderer, WidgetRenderer
from offload_lab.training import Batches, GPTConfig, TinyGPT, corpus, train
from offload_lab.worker import Worker

VIEWS = ("widget", "figure", "svg", "text")
RENDERERS: tuple[Any, ...] = (WidgetRenderer, PictureRenderer, TextRenderer)
OURS = {"live plot", "memory sampler"}
UPDATES = 10
"""Updates a second."""


class Screen:
    """Stands in for the kernel: every update is made JSON, counted, and dropped."""

    def __init__(self) -> None:
        self.updates, self.nbytes = 0, 0

    def __call__(self, shown: Any, raw: bool = False, display_id: bool = False) -> Any:
        self.take(shown)
        return SimpleNamespace(update=lambda shown, raw=False: self.take(shown))

    def take(self, shown: Any) -> None:
        self.updates += 1
        self.nbytes = len(json.dumps(shown, default=repr))


class Wire(BaseComm):
    """A widget's connection to the screen."""

    screen = Screen()

    def publish_msg(self, msg_type: str, data: Any = None, **rest: Any) -> None:
        self.screen.take(data)


class Training:
    """A GPT and its optimizer, trained in blocks of steps."""

    def __init__(self, width: int, layers: int) -> None:
        torch.manual_seed(0)
        shape = GPTConfig(layers=layers, width=width, heads=4, context=64, dtype=torch.bfloat16)
        self.model = TinyGPT(shape)
        self.optimizer = OffloadAdamW(self.model.parameters(), lr=1e-4)
        self.batches = Batches(corpus(), batch=8, context=shape.context)
        self.step = self._step()

    def _step(self) -> float:
        train(self.model, self.optimizer, self.batches, 3)
        return self.block(1.0)

    def block(self, seconds: float, stop: Any = None, on_step: Any = None, meter: Any = None) -> float:
        """Train for about `seconds`; return seconds a step."""
        start, steps = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            (loss,) = train(self.model, self.optimizer, self.batches, 1, stop=stop, meter=meter)
            steps += 1
            if on_step is not None:
                on_step(steps, loss)
        return (time.perf_counter() - start) / steps

    def plain(self, seconds: float) -> float:
        """Seconds a step of a block that nobody watches, in a thread as well."""
        worker = Worker(lambda: self.block(seconds), "plain training")
        worker.start()
        return worker.result()

    def watched(self, seconds: float, view: str, screen: Screen) -> tuple[float, float]:
        """Seconds a step under `view`, and the processor seconds that its threads took for each second."""
        meter = Meter(self.model, self.optimizer)

        def work(stop: Any, on_step: Any) -> tuple[float, float]:
            start = time.perf_counter()
            step = self.block(seconds, stop, on_step, meter)
            return step, _processor_seconds() / (time.perf_counter() - start)

        view_of = LiveMemory(view, front_end=FrontEnd(view), display=screen)
        with contextlib.redirect_stdout(io.StringIO()):  # the text view prints
            return view_of.run(work, meter).value


def _processor_seconds() -> float:
    """Of the view's threads, from their start until now."""
    ours = (thread.ident for thread in threading.enumerate() if thread.name in OURS)
    return sum(time.clock_gettime(time.pthread_getcpuclockid(ident)) for ident in ours if ident is not None)


def costs(training: Training, seconds: float, rounds: int) -> dict[str, dict[str, float]]:
    """{view: its figures}, blocks of about `seconds` in turn: plain, view, plain, view …"""
    ratios: dict[str, list[float]] = {view: [] for view in VIEWS}
    used: dict[str, list[float]] = {view: [] for view in VIEWS}
    screens = {view: Screen() for view in VIEWS}
    watched = dict.fromkeys(VIEWS, 0.0)
    for turn in range(rounds + 1):
        for view in VIEWS:
            Wire.screen = screens[view]
            # The plain block goes first in one round and second in the next: what drifts, cancels.
            before = training.plain(seconds) if turn % 2 else None
            step, share = training.watched(seconds, view, screens[view])
            plain = before if before is not None else training.plain(seconds)
            watched[view] += seconds
            if turn:  # the first round warms up
                ratios[view].append(step / plain - 1)
                used[view].append(share)
    return {
        view: {
            "step_time_share": round(statistics.median(ratios[view]), 4),
            "step_time_share_low": round(min(ratios[view]), 4),
            "step_time_share_high": round(max(ratios[view]), 4),
            "processor_share": round(statistics.median(used[view]), 4),
            "updates_a_second": round(screens[view].updates / watched[view], 1),
            "bytes_an_update": screens[view].nbytes,
        }
        for view in VIEWS
    }


def long_run(training: Training, view: str, minutes: float) -> dict[str, Any]:
    """Memory of the process, in bytes, and the size of an update, while one view runs for `minutes`."""
    screen = Wire.screen = Screen()
    meter = Meter(training.model, training.optimizer)
    ends = time.monotonic() + minutes * 60
    warm = time.monotonic() + minutes * 6
    seen: list[tuple[int, int]] = []

    def work(stop: Any, on_step: Any) -> int:
        step = 0
        while time.monotonic() < ends and not stop.is_set():
            (loss,) = train(training.model, training.optimizer, training.batches, 1, stop=stop, meter=meter)
            step += 1
            on_step(step, loss)
            if time.monotonic() > warm and (not seen or step % 20 == 0):
                seen.append((rss(), screen.nbytes))
        return step

    shown = LiveMemory(view, front_end=FrontEnd(view), display=screen)
    with contextlib.redirect_stdout(io.StringIO()):
        run = shown.run(work, meter)
    return {
        "view": view,
        "minutes": minutes,
        "steps": run.value,
        "updates": screen.updates,
        "readings_kept": len(run.readings),
        "rss_warm": seen[0][0],
        "rss_end": seen[-1][0],
        "rss_most": max(nbytes for nbytes, _ in seen),
        "rss_by_eighth": [seen[len(seen) * part // 8 - 1][0] for part in range(1, 9)] if len(seen) >= 8 else [],
        "largest_update": max(nbytes for _, nbytes in seen),
    }


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4.0, help="of a block (default 4)")
    parser.add_argument("--minutes", type=float, default=0.0, help="of the long run (default: none)")
    parser.add_argument("--view", choices=VIEWS, default="widget", help="of the long run")
    parser.add_argument("--threads", type=int, default=0, help="of torch (default: its own choice)")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    chosen = parser.parse_args(arguments)
    comm.create_comm = lambda *given, **options: Wire(*given, **options)
    in_use = {kind.__name__: kind.interval for kind in RENDERERS}
    for kind in RENDERERS:
        kind.interval = 1 / UPDATES
    live.SHARE = 1.0
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    machine = describe()
    training = Training(chosen.width, chosen.layers)
    result: dict[str, Any] = {"step_seconds": round(training.step, 4), "machine": machine, "interval_in_use": in_use}
    if chosen.rounds:
        result["views"] = costs(training, chosen.seconds, chosen.rounds)
    if chosen.minutes:
        result["long_run"] = long_run(training, chosen.view, chosen.minutes)
    if chosen.json:
        print(json.dumps(result))
        return result
    print(f"a step without a view: {training.step * 1e3:.1f} ms")
    for view, figures in result.get("views", {}).items():
        low, high = figures["step_time_share_low"], figures["step_time_share_high"]
        print(
            f"{view:8} step time {figures['step_time_share']:+.1%} ({low:+.1%} to {high:+.1%}), its threads "
            f"{figures['processor_share']:.1%} of one core, {figures['updates_a_second']:.1f} messages a second of "
            f"{figures['bytes_an_update'] / 1e3:.0f} kB"
        )
    if chosen.minutes:
        long = result["long_run"]
        eighths = ", ".join(f"{nbytes / 1e6:.0f}" for nbytes in long["rss_by_eighth"])
        warm, end, most = (f"{long[name] / 1e6:.0f} MB" for name in ("rss_warm", "rss_end", "rss_most"))
        print(f"{long['view']}, {long['minutes']:g} minutes: {long['steps']:,} steps, {long['updates']:,} messages")
        print(f"process {warm} when warm, {end} at the end, {most} at most; after each eighth of the time between: {eighths}")
    return result


if __name__ == "__main__":
    main()
