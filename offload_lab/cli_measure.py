"""`offload-lab measure`: this machine's bandwidths, as a table or as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from offload_lab.hardware import Figure, Hardware

_ROWS = (  # field of Hardware, what a person calls it, unit, and by how much it is divided
    ("ram", "memory, free", "GB", 1e9),
    ("dram_bandwidth", "memory, by the update", "GB/s", 1e9),
    ("cpu_flops", "processor, float32", "GFLOP/s", 1e9),
    ("disk", "disk, free", "GB", 1e9),
    ("disk_read", "disk, read", "GB/s", 1e9),
    ("disk_write", "disk, write", "GB/s", 1e9),
    ("disk_mixed", "disk, read and write", "GB/s", 1e9),
    ("disk_endurance", "disk, endurance", "TB", 1e12),
    ("gpu_memory", "accelerator, memory", "GB", 1e9),
    ("gpu_bandwidth", "accelerator, its memory", "GB/s", 1e9),
    ("gpu_flops", "accelerator, 16 bits", "TFLOP/s", 1e12),
    ("gpu_flops_float32", "accelerator, float32", "TFLOP/s", 1e12),
    ("gpu_between", "to another one", "GB/s", 1e9),
    ("host_to_device", "to it, pinned", "GB/s", 1e9),
    ("device_to_host", "from it, pinned", "GB/s", 1e9),
    ("host_to_device_pageable", "to it, pageable", "GB/s", 1e9),
    ("device_to_host_pageable", "from it, pageable", "GB/s", 1e9),
    ("price", "an hour of it", "USD", 1.0),
)


def table(hardware: Hardware, width: int = 100) -> str:
    """All figures that `hardware` has, where each is from, and how it was got; then the warnings."""
    lines = [hardware.name, ""]
    for name, told, unit, scale in _ROWS:
        figure = getattr(hardware, name)
        if isinstance(figure, Figure):
            lines += _row(told, f"{figure.value / scale:,.4g} {unit}", figure, width)
    if not hardware.gpus:
        lines.append("no accelerator")
    else:
        shared = ", one memory with the host" if hardware.unified else ""
        formats = f"; 16-bit formats: {', '.join(hardware.gpu_dtypes)}" if hardware.gpu_dtypes else ""
        lines.append(f"accelerators: {hardware.gpus}{formats}; link: {hardware.link_duplex} duplex{shared}")
    if hardware.disk_read is not None:
        lines.append(f"disk: {hardware.disk_duplex} duplex")
    for warning in hardware.warnings:
        lines += textwrap.wrap(f"! {warning}", width, subsequent_indent="  ")
    return "\n".join(lines)


def _row(told: str, value: str, figure: Figure, width: int) -> Iterator[str]:
    yield f"{told:24} {value:>16}  {figure.source}"
    yield from textwrap.wrap(figure.note, width, initial_indent="    ", subsequent_indent="    ")


def measure(
    directory: Annotated[Path, typer.Option(help="The folder that state will be in: its disk is measured.")] = Path("."),
    seconds: Annotated[float, typer.Option(min=0.1, max=3600, help="About how long it may take.")] = 30.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on stdout.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure, whatever was measured before.")] = False,
) -> None:
    """Measure this machine: memory as the update draws it, the disk, the link to an accelerator. Kept for a month."""
    from offload_lab.measuring import measure as run
    from offload_lab.measuring import to_stderr
    from offload_lab.storage.direct_io import StorageError

    try:
        found = run(directory, seconds, fresh=fresh, say=to_stderr)
    except NotADirectoryError as error:
        typer.echo(f"--directory: {error}", err=True)
        raise typer.Exit(2) from None
    except (StorageError, MemoryError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("Stopped. No file is left, and nothing was kept.", err=True)
        raise typer.Exit(130) from None
    typer.echo(found.to_json() if as_json else table(found))
