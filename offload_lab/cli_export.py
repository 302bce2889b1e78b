"""`offload-lab export deepspeed|accelerate|fsdp`: a plan as another stack's configuration."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(no_args_is_help=True, help="Write a plan as a configuration of DeepSpeed, Accelerate or FSDP2.")

PlanFile = Annotated[Path, typer.Option("--plan", help="A plan: offload-lab plan … --json > plan.json")]
Out = Annotated[Path | None, typer.Option("--out", help="The file to write; stdout if not given.")]
Rate = Annotated[float, typer.Option("--lr", help="Learning rate.")]
Decay = Annotated[float, typer.Option("--weight-decay", help="AdamW's.")]
Clip = Annotated[float, typer.Option("--clip", help="Largest norm of the gradients; 0: not clipped.")]


@app.command()
def deepspeed(plan: PlanFile, out: Out = None, lr: Rate = 1e-3, weight_decay: Decay = 0.01, clip: Clip = 1.0) -> None:
    """The JSON that deepspeed.initialize(config=…) takes: ZeRO-Offload, or ZeRO-Infinity where state or weights are on disk."""
    from offload_lab.export import as_deepspeed

    _write(plan, out, lr, weight_decay, clip, lambda read, recipe: json.dumps(as_deepspeed(read, recipe), indent=2) + "\n")


@app.command()
def accelerate(
    plan: PlanFile,
    out: Out = None,
    kind: Annotated[
        str | None, typer.Option(help="plain, deepspeed or fsdp2; if not given, the first that can do what is planned.")
    ] = None,
    deepspeed_file: Annotated[
        str | None, typer.Option("--deepspeed-file", help="With --kind deepspeed: a file of `offload-lab export deepspeed`.")
    ] = None,
    lr: Rate = 1e-3,
    weight_decay: Decay = 0.01,
    clip: Clip = 1.0,
) -> None:
    """The YAML that `accelerate launch --config_file` takes, as its questionnaire writes it."""
    from offload_lab.export import as_accelerate

    _write(plan, out, lr, weight_decay, clip, lambda read, recipe: as_accelerate(read, recipe, kind, deepspeed_file))


@app.command()
def fsdp(plan: PlanFile, out: Out = None, lr: Rate = 1e-3, weight_decay: Decay = 0.01, clip: Clip = 1.0) -> None:
    """A Python script for torchrun: FSDP2, weights in RAM where they must move, OffloadAdamW with the state."""
    from offload_lab.export import as_fsdp

    _write(plan, out, lr, weight_decay, clip, as_fsdp)


def _write(
    path: Path, out: Path | None, lr: float, weight_decay: float, clip: float, export: Callable[[Any, Any], str]
) -> None:
    """Exit code 2 for a file or setting that is wrong, 1 where the plan cannot be had from that stack."""
    from offload_lab.export import ExportError, Recipe, read_plan

    try:
        text = export(read_plan(path), Recipe(lr=lr, weight_decay=weight_decay, clip=clip if clip != 0 else None))
    except ExportError as error:
        typer.echo(f"cannot be exported: {error}", err=True)
        raise typer.Exit(1) from None
    except FileNotFoundError:
        typer.echo(f"--plan: there is no file {str(path)!r}; make one with: offload-lab plan … --json > plan.json", err=True)
        raise typer.Exit(2) from None
    except OSError as error:
        typer.echo(f"--plan: {str(path)!r} cannot be read: {error.strerror}", err=True)
        raise typer.Exit(2) from None
    except ValueError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        typer.echo(f"--out: {str(out)!r} cannot be written: {error.strerror}", err=True)
        raise typer.Exit(2) from None
