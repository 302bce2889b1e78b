"""`offload-lab trace`: steps of the disk tier, recorded, as a file for Perfetto and as a picture."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from offload_lab.endings import refuse
from offload_lab.trace import Recorder

LEAST, MOST = 1000, 2_000_000_000


def trace(
    out: Annotated[Path, typer.Option(help="The trace to write; open it at https://ui.perfetto.dev.")] = Path("trace.json"),
    svg: Annotated[Path | None, typer.Option(help="Where to write the timeline of the last step as a picture.")] = None,
    params: Annotated[float, typer.Option(help="Parameters, for example 25e6.")] = 25e6,
    steps: Annotated[int, typer.Option(min=1, help="Steps to record.")] = 3,
    ram_budget: Annotated[str | None, typer.Option(help='RAM of the disk tier, for example "300MiB".')] = None,
    directory: Annotated[Path | None, typer.Option(help="Where the disk tier works; a temporary folder if not given.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")] = False,
) -> None:
    """Record steps of the disk tier on this machine: what ran when, and what the step waited for."""
    if not LEAST <= params <= MOST:
        refuse(f"--params {params:g}: {LEAST:,} to {MOST:,} are possible")
    for option, path in (("--out", out), ("--svg", svg)):
        if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
            refuse(f"{option}: {str(path)!r} cannot be written; name a file in a folder that exists")
    if directory is not None and not directory.is_dir():
        refuse(f"--directory: there is no folder {str(directory)!r}; make it first, or name another")

    from offload_lab.plots import timeline

    recorder = Recorder(limit=200_000)
    with tempfile.TemporaryDirectory(prefix="offload-trace-", dir=directory) as folder:
        try:
            last = _recorded(recorder, int(params), steps, ram_budget, folder)
        except ValueError as error:
            refuse(str(error))
    events = [event for event in recorder.events() if event.start >= last]
    figure = timeline(events, source="measured", title=f"Step {steps} of {params:g} parameters")
    try:
        recorder.save(out)
        if svg is not None:
            svg.write_text(figure.svg(), encoding="utf-8")
    except OSError as error:
        typer.echo(f"could not be written: {error}", err=True)
        raise typer.Exit(1) from None
    if as_json:
        waited = {label: round(seconds, 6) for label, seconds in figure.run.waited.items()}
        files = {"trace": str(out), "svg": None if svg is None else str(svg)}
        figures = {"tasks": len(recorder.events()), "step_seconds": round(figure.run.seconds, 6), "waited_seconds": waited}
        typer.echo(json.dumps(files | figures | {"source": "measured"}))
    else:
        typer.echo(f"{figure.text()}\n\nThe trace of {steps} step{'s' * (steps > 1)}: {out.absolute()}")


def _recorded(recorder: Recorder, params: int, steps: int, ram_budget: str | None, folder: str) -> float:
    """Run `steps` steps, each update recorded; return when the last one began, in seconds of the events' clock."""
    import torch

    from offload_lab import OffloadAdamW, OffloadPolicy

    width = 1 << 20
    sizes = [width] * (params // width) + ([params % width] if params % width else [])
    parameters = [torch.nn.Parameter(torch.zeros(size, dtype=torch.bfloat16)) for size in sizes]
    policy = OffloadPolicy(tier="disk", directory=f"{folder}/state", ram_budget=ram_budget)
    began = 0.0
    with OffloadAdamW(parameters, offload=policy) as optimizer:
        for _ in range(steps):
            for parameter in parameters:
                parameter.grad = torch.full_like(parameter, 0.01)
            optimizer.trace.clear()
            began = time.perf_counter()
            optimizer.step()
            for event in optimizer.trace.events():
                recorder.add(event)
    return began
