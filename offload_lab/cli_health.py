"""`offload-lab gate`: targets held against the user's own training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from offload_lab.endings import ended_cleanly


def gate(
    script: Annotated[Path, typer.Option(help="A Python file with a function workload(): see above.")],
    targets: Annotated[Path, typer.Option(help="A JSON file of targets, or a plan (offload-lab plan --json).")],
    steps: Annotated[int, typer.Option(min=3, help="Steps to make; the time of the first two does not count.")] = 30,
    out: Annotated[Path, typer.Option(help="The folder of the decision log, to which this decision is added.")] = Path("gates"),
    function: Annotated[str, typer.Option(help="Another name of the function.")] = "workload",
    time_limit: Annotated[float, typer.Option(min=1, help="Seconds after which the run is stopped, and fails.")] = 600.0,
    directory: Annotated[
        Path | None, typer.Option(help="Where the scratch folder is made: on the disk to test. Default: the current folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the decision as one JSON object.")] = False,
) -> None:
    """Run your own training for some steps, and say whether it meets its targets. Exit code 0: it does; 1: it does not.

    The file's function workload() returns (model, optimizer, losses). losses does one forward on a batch of yours for each
    loss; the gate calls backward() and optimizer.step(). A loop of your own makes the step itself and yields numbers. With an
    argument, workload(folder), it gets an empty folder for the state's files, deleted afterwards.

    decisions.md and decisions.jsonl in --out get one entry more; nothing in them is overwritten.
    """
    from offload_lab.health import decisions
    from offload_lab.health.gate import gate as run
    from offload_lab.health.targets import Targets

    try:
        wanted = Targets.read(targets)
        decisions.prepare(out)
        with ended_cleanly("Stopped. No process is left running, no scratch file is left, and nothing was decided."):
            decision = run(script, wanted, steps=steps, function=function, time_limit=time_limit, directory=directory)
    except (OSError, ValueError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    decisions.append(decision, out)
    typer.echo(json.dumps(decision.to_dict(), allow_nan=False) if as_json else str(decision))
    if not as_json:
        typer.echo(f"Added to {out / decisions.MARKDOWN} and {out / decisions.JSON}.")
    if not decision.passed:
        raise typer.Exit(1)
