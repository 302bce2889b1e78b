"""Figures in Prometheus's text exposition format 0.0.4, and a server for them on this machine only.

The format: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from offload_lab.health.figures import Figures

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_METRICS = (
    ("step", "offload_step", "gauge", "Steps that the optimizer state has had; falls after a rollback."),
    ("loss", "offload_loss", "gauge", "Loss of the last step."),
    ("step_time", "offload_step_seconds", "gauge", "Seconds between the last two observations."),
    ("update_time", "offload_update_seconds", "gauge", "Seconds of the last update that is over."),
    ("read_bandwidth", "offload_disk_read_bytes_per_second", "gauge", "Bandwidth of the last update's disk reads."),
    ("write_bandwidth", "offload_disk_write_bytes_per_second", "gauge", "Bandwidth of the last update's disk writes."),
    ("stall_share", "offload_stall_ratio", "gauge", "Share of the last update that waited for the disk."),
    ("hit_share", "offload_hit_ratio", "gauge", "Share of the state's bytes that needed no read."),
    ("skipped_steps", "offload_skipped_steps_total", "counter", "Steps skipped because gradients were not finite."),
    ("bytes_read", "offload_disk_read_bytes_total", "counter", "Bytes read from the state's files."),
    ("bytes_written", "offload_disk_written_bytes_total", "counter", "Bytes written to the state's files."),
    ("ram_bytes", "offload_state_ram_bytes", "gauge", "Optimizer state and buffers in RAM."),
    ("disk_bytes", "offload_state_disk_bytes", "gauge", "Blocks of the state's files."),
    ("disk_free", "offload_disk_free_bytes", "gauge", "Bytes free on the fullest of the state's disks."),
    ("wear", "offload_disk_wear_ratio", "gauge", "Share of the disk's endurance that has been written."),
)


def escaped_label(value: str) -> str:
    """A label's value between its quotation marks."""
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def escaped_help(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n")


def number(value: float) -> str:
    """As Go's ParseFloat reads it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)


def text(figures: Figures, run: str, observations: int, raised: Mapping[Any, int], active: Collection[Any]) -> str:
    """All figures that are known. `raised`: how often each alarm that is on was raised; `active`: those that are up."""
    label = f'run="{escaped_label(run)}"'
    lines: list[str] = []

    def metric(name: str, kind: str, told: str, samples: Mapping[str, float]) -> None:
        lines.extend((f"# HELP {name} {escaped_help(told)}", f"# TYPE {name} {kind}"))
        lines.extend(f"{name}{{{labels}}} {number(value)}" for labels, value in samples.items())

    for field, name, kind, told in _METRICS:
        value = getattr(figures, field)
        if value is not None:
            metric(name, kind, told, {label: value})
    metric("offload_observations_total", "counter", "Steps that the monitor has seen.", {label: observations})
    alarms = {each: f'{label},alarm="{escaped_label(each)}"' for each in raised}
    if alarms:
        up = {labels: int(each in active) for each, labels in alarms.items()}
        metric("offload_alarm_active", "gauge", "1 while the alarm is up.", up)
        counts = {labels: raised[each] for each, labels in alarms.items()}
        metric("offload_alarms_total", "counter", "How often the alarm was raised.", counts)
    return "\n".join(lines) + "\n"


class Server:
    """`GET /metrics` on 127.0.0.1, from a daemon thread. `.port`, `.url`; `close()`, or a `with` block, ends it."""

    def __init__(self, render: Callable[[], str], port: int = 0) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = self.path.split("?")[0] == "/metrics"
                body = (render() if found else "there is only /metrics\n").encode()
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", CONTENT_TYPE if found else "text/plain; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                """A scrape each few seconds is no news."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/metrics"
        self._thread = threading.Thread(target=self._server.serve_forever, name="offload metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Twice is once."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
