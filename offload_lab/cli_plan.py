"""`offload-lab plan`: what fits where, how long a step takes and what it costs, on a machine that need not exist."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from offload_lab.endings import refuse

_PRODUCT = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "B": 10**9, "T": 10**12}


def count(text: str, option: str) -> int:
    """A count such as 25000000, 25_000_000, 25e6, 25M or 7B."""
    match = re.fullmatch(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][0-9]{1,2})?)\s*([kKmMgGbBtT]?)\s*", text)
    if match is None:
        refuse(f"{option}: cannot read {text!r} as a number; write 25000000, 25e6, 25M or 7B")
    # As a fraction: a float has no digits beyond the sixteenth, and rounds half a parameter away.
    number = Fraction(match[1].replace("_", "")) * _PRODUCT[match[2].upper()]
    if number.denominator != 1:
        refuse(f"{option}: {text!r} is no whole number; write 25000000, 25e6, 25M or 7B")
    return int(number)


def _bytes(text: str | None, option: str) -> int | None:
    from offload_lab.policy import parse_bytes

    if text is None:
        return None
    try:
        nbytes = parse_bytes(text)
    except ValueError as error:
        # A comma and "Go" are French for a point and "GB": a guess, but one that is asked and not made.
        meant = re.sub(r"(?i)(?<=[kmgti])o\s*$", "B", text.replace(",", "."))
        try:
            parse_bytes(meant)
        except ValueError:
            refuse(f"{option}: {error}")
        refuse(f"{option}: {error}. Is {meant!r} meant?" if meant != text else f"{option}: {error}")
    if nbytes < 1 << 20:
        refuse(f"{option}: {text!r} is {nbytes:,} bytes; write the unit as well, for example 24GiB")
    return nbytes


def plan(
    params: Annotated[str | None, typer.Option(help="Parameters, where the model is not a known one: 13e9, 25M or 7B.")] = None,
    model: Annotated[str | None, typer.Option(help="A known model: gpt2-xl, llama-2-13b, mistral-7b, qwen2.5-7b …")] = None,
    machine: Annotated[
        str | None, typer.Option(help="A machine of the catalogue: laptop, rtx4090-nvme, h100-80-server …")
    ] = None,
    hardware: Annotated[Path | None, typer.Option(help="A machine as `offload-lab measure --json` writes it.")] = None,
    gpu: Annotated[str | None, typer.Option(help="An accelerator of the catalogue: rtx4090, a100-80 …")] = None,
    gpu_memory: Annotated[str | None, typer.Option(help='Of one accelerator: "24GiB".')] = None,
    gpus: Annotated[
        int | None, typer.Option(min=1, help="Accelerators, 1 if not given; what is trained is shared out among them.")
    ] = None,
    ram: Annotated[str | None, typer.Option(help='Host memory: "128GiB".')] = None,
    disk: Annotated[str | None, typer.Option(help='Free on the disk: "2TB".')] = None,
    disk_kind: Annotated[str | None, typer.Option(help="A disk of the catalogue, for its speed; nvme4-consumer.")] = None,
    memory: Annotated[str | None, typer.Option(help="Host memory of the catalogue, for its speed; ddr5-dual.")] = None,
    link: Annotated[str | None, typer.Option(help="To the accelerator: pcie3x16 to pcie6x16, nvlink-c2c …")] = None,
    price: Annotated[float | None, typer.Option(min=0, help="US dollars an hour of the machine.")] = None,
    dtype: Annotated[str, typer.Option(help="bfloat16, float16 or float32.")] = "bfloat16",
    batch: Annotated[int, typer.Option(min=1, help="Sequences of one forward on one accelerator.")] = 1,
    sequence: Annotated[int | None, typer.Option(min=1, help="Tokens of a sequence; the model's own, at most 2048.")] = None,
    accumulation: Annotated[int, typer.Option(min=1, help="Forwards and backwards a step.")] = 1,
    checkpointing: Annotated[str, typer.Option(help="Activations computed again: none, full or auto.")] = "auto",
    state: Annotated[str, typer.Option(help="Where optimizer state is: gpu, ram, disk or auto.")] = "auto",
    weights: Annotated[str, typer.Option(help="Where weights are between their uses: gpu, ram, disk or auto.")] = "auto",
    gradients: Annotated[str, typer.Option(help="Where gradients wait for the update: gpu, ram, disk or auto.")] = "auto",
    directory: Annotated[str | None, typer.Option(help="Folder of the disk tier, for the plan's exports.")] = None,
    ram_budget: Annotated[str | None, typer.Option(help='RAM of the disk tier, for example "300MiB".')] = None,
    state_dtype: Annotated[str, typer.Option(help="What moments are kept in: float32, bfloat16 or int8.")] = "float32",
    durability: Annotated[str, typer.Option(help="How often a step is published: step, checkpoint, or a number.")] = "step",
    run_tokens: Annotated[str | None, typer.Option(help="Tokens of the whole run, for its hours and its cost: 1e9.")] = None,
    loss: Annotated[float | None, typer.Option(help="A target for the gate: the loss must be at most this.")] = None,
    compare: Annotated[
        str | None, typer.Option(help="Machines of the catalogue, with commas: cost a run, side by side.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, which exports and the gate read.")] = False,
) -> None:
    """Predict whether a training fits, where everything goes, how long a step takes and what a run costs."""
    if (params is None) == (model is None):
        refuse("give either --params (13e9) or --model (llama-2-13b)")
    asked: Any = model if model is not None else count(params or "", "--params")
    described = {
        "--gpu": gpu, "--gpu-memory": gpu_memory, "--ram": ram, "--disk": disk, "--disk-kind": disk_kind, "--memory": memory,
        "--link": link, "--price": price,
    }  # fmt: skip
    options: dict[str, Any] = {
        "dtype": dtype, "batch": batch, "sequence": sequence, "accumulation": accumulation, "checkpointing": checkpointing,
        "state": state, "weights": weights, "gradients": gradients, "directory": directory,
        "ram_budget": _bytes(ram_budget, "--ram-budget"), "state_dtype": state_dtype,
        "durability": int(durability) if re.fullmatch("[0-9]{1,9}", durability) else durability,
        "run_tokens": None if run_tokens is None else count(run_tokens, "--run-tokens"), "loss": loss,
    }  # fmt: skip
    given = [name for name, value in described.items() if value is not None]
    try:
        if compare is not None:
            whole = [*given, *(["--machine"] if machine else []), *(["--hardware"] if hardware else [])]
            _compare(asked, compare, options, as_json, whole, gpus)
        elif machine is None and hardware is None and not given:
            unused: dict[str, object] = {
                "--gpus": gpus,
                "--batch": batch != 1,
                "--sequence": sequence,
                "--accumulation": accumulation != 1,
            }
            unused |= {"--checkpointing": checkpointing != "auto", "--state": state != "auto", "--weights": weights != "auto"}
            unused |= {"--gradients": gradients != "auto", "--directory": directory, "--state-dtype": state_dtype != "float32"}
            unused |= {"--durability": durability != "step", "--run-tokens": run_tokens, "--loss": loss, "--json": as_json}
            _bytes_only(asked, dtype, options["ram_budget"], [option for option, typed in unused.items() if typed])
        else:
            from offload_lab.planner import plan as predict

            target = _machine(machine, hardware, described, gpus)
            made = predict(asked, target, **options)
            typer.echo(made.to_json() if as_json else str(made))
    except ValueError as error:
        refuse(_as_options(str(error)))


_WRITE_IT = "write it with: offload-lab measure --json"


def _machine(name: str | None, path: Path | None, described: dict[str, Any], gpus: int | None) -> Any:
    from offload_lab import catalogue, given_machine
    from offload_lab.hardware import Hardware
    from offload_lab.json_text import parsed

    sizes = {key: _bytes(described[f"--{key.replace('_', '-')}"], f"--{key}") for key in ("ram", "gpu_memory", "disk")}
    if name is not None and path is not None:
        refuse("give either --machine (of the catalogue) or --hardware (a file), not both")
    if name is not None or path is not None:
        parts = [option for option in ("--gpu", "--disk-kind", "--memory", "--link") if described[option] is not None]
        if parts:
            refuse(f"{', '.join(parts)}: --machine and --hardware have their own; describe a machine by parts instead")
        if path is None:
            return given_machine.changed(catalogue.machine(name or ""), **sizes, price=described["--price"], gpus=gpus)
        try:
            read = Hardware.from_dict(parsed(path.read_text(encoding="utf-8")))
        except OSError as error:
            refuse(f"--hardware: {str(path)!r} cannot be read: {error.strerror}")
        except UnicodeDecodeError as error:
            refuse(f"--hardware: {str(path)!r} is no text in UTF-8 ({error.reason}); {_WRITE_IT} > {path.name}")
        except ValueError as error:
            refuse(f"--hardware: {str(path)!r}: {error}; {_WRITE_IT} > {path.name}")
        return given_machine.changed(read, **sizes, price=described["--price"], gpus=gpus)
    if sizes["ram"] is None:
        refuse("--ram is needed, such as 128GiB, where a machine is described by parts; or name one with --machine")
    if described["--disk-kind"] is not None and sizes["disk"] is None:
        refuse("--disk-kind: give --disk as well, the bytes that are free there, such as 2TB")
    more = {"memory": described["--memory"], "disk_kind": described["--disk-kind"]}
    return given_machine.machine(
        ram=sizes["ram"],
        gpu=described["--gpu"],
        gpu_memory=sizes["gpu_memory"],
        gpus=1 if gpus is None else gpus,
        link=described["--link"],
        disk=sizes["disk"],
        price=described["--price"],
        **{key: value for key, value in more.items() if value is not None},
    )


def _compare(asked: Any, names: str, options: dict[str, Any], as_json: bool, too_many: list[str], gpus: int | None) -> None:
    """`gpus`: so many in each machine that has an accelerator of its own; the others are compared as they are."""
    from offload_lab import catalogue
    from offload_lab.comparing import compare, table
    from offload_lab.given_machine import several

    if too_many:
        refuse(f"{', '.join(too_many)}: --compare takes machines of the catalogue as they are")
    if options["run_tokens"] is None:
        refuse("--compare: give --run-tokens as well, such as 1e9; the cost is that of a run")
    machines = [catalogue.machine(name.strip()) for name in names.split(",")]
    if gpus is not None:
        if all(one.unified or not one.gpus for one in machines):
            refuse(f"--gpus: no machine of {names} can have another number of accelerators")
        machines = [one if one.unified or not one.gpus else several(one, gpus) for one in machines]
    plans = compare(asked, machines, **options)
    typer.echo(json.dumps([made.to_dict() for made in plans], indent=2) if as_json else table(plans))


def _bytes_only(asked: Any, dtype: str, ram_budget: int | None, unused: list[str]) -> None:
    from offload_lab.known_models import spec
    from offload_lab.state_bytes import OPTIMIZERS, training_bytes

    if unused:  # rather than leave out what was asked for
        verb = "needs" if len(unused) == 1 else "need"
        refuse(f"{', '.join(unused)} {verb} a machine: --machine NAME, --hardware FILE, or its parts, at least --ram")
    parameters = spec(asked).parameters if isinstance(asked, str) else asked
    typer.echo("\n\n".join(str(training_bytes(parameters, dtype, kind, ram_budget=ram_budget)) for kind in OPTIMIZERS))


def _as_options(message: str) -> str:
    """`state='here': …` as a person typed it: `--state: 'here' …`."""
    match = re.match(r"(\w+)=('[^']*'|\"[^\"]*\"|[^\s:]+)", message)
    if match is None:
        return message
    option = {"parameters": "params"}.get(match[1], match[1].replace("_", "-"))
    return f"--{option}: {match[2]}{message[match.end() :]}"
