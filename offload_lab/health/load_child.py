"""One workload under load, in a process of its own.

Started by `gate.py` as `python -m offload_lab.health.load_child '<spec as JSON>'`; appends one JSON object a line to the file
`spec["events"]`. What the workload prints, and the traceback where it raises, go to stdout and stderr as they would anyhow.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from offload_lab.meter import peak_rss, rss


class ContractError(TypeError):
    """The workload's function is not there, or gave something else than what a gate can run."""


def load(script: Path, function: str) -> Callable[..., Any]:
    """The function of that name in the file, which is run as an import would: `__name__` is not "__main__"."""
    sys.path.insert(0, str(script.parent))  # as if it had been started by `python script`
    spec = importlib.util.spec_from_file_location("offload_workload", script)
    if spec is None or spec.loader is None:
        raise ContractError(f"{str(script)!r} is no Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["offload_workload"] = module  # or what it defines could not be pickled for a DataLoader's workers
    spec.loader.exec_module(module)
    found = getattr(module, function, None)
    if not callable(found):
        raise ContractError(f"{str(script)!r} has no function {function!r}; see `offload-lab gate --help`")
    return found


def build(workload: Callable[..., Any], scratch: Path) -> tuple[torch.nn.Module, Any, Any]:
    """Call the workload, with the scratch folder where it takes an argument. Raises ContractError for another result."""
    wanted = [
        parameter
        for parameter in inspect.signature(workload).parameters.values()
        if parameter.default is parameter.empty and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if len(wanted) > 1:
        raise ContractError("the workload's function takes nothing, or one argument: a scratch folder")
    made = workload(scratch) if wanted else workload()
    if not isinstance(made, tuple) or len(made) != 3:
        raise ContractError(f"the workload must return (model, optimizer, losses), not {type(made).__name__}")
    model, optimizer, losses = made
    if not isinstance(model, torch.nn.Module):
        raise ContractError(f"the first that the workload returns must be a torch.nn.Module, not {type(model).__name__}")
    for name in ("step", "zero_grad"):
        if not hasattr(optimizer, name):
            raise ContractError(f"the second that the workload returns must be an optimizer; it has no {name}()")
    if not hasattr(losses, "__iter__"):
        raise ContractError(f"the third that the workload returns must be an iterable of losses, not {type(losses).__name__}")
    return model, optimizer, losses


def one_step(loss: Any, optimizer: Any) -> float:
    """The loss as a number, after the step that it asks for: a tensor with a graph gets backward and `step()`; a number is
    that of a step which the workload made itself."""
    if isinstance(loss, torch.Tensor):
        if loss.numel() != 1 or not loss.requires_grad:
            raise ContractError(
                f"a loss must be a tensor of one element with a graph, for the gate to call backward() on it, or a number, "
                f"where the workload has made the step itself; this one has shape {tuple(loss.shape)} and "
                f"requires_grad={loss.requires_grad}"
            )
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.item())
    if isinstance(loss, bool) or not isinstance(loss, int | float):
        raise ContractError(f"a loss must be a tensor or a number, not {type(loss).__name__}")
    return float(loss)


def accelerator_peak() -> int | None:
    """Most bytes that torch ever held on one accelerator; None where there is none, or where it does not count."""
    if not torch.cuda.is_available():
        return None
    return max(torch.cuda.max_memory_allocated(device) for device in range(torch.cuda.device_count()))


def run(spec: dict[str, Any]) -> None:
    """Make `spec["steps"]` steps, or as many as there are losses, and tell of each."""
    with open(spec["events"], "a", encoding="utf-8") as file:

        def tell(event: str, **content: Any) -> None:
            file.write(json.dumps({"event": event, **content}) + "\n")
            file.flush()

        tell("started", resident=rss(), torch=torch.__version__)
        model, optimizer, losses = build(load(Path(spec["script"]), spec["function"]), Path(spec["scratch"]))
        tell(
            "built",
            parameters=sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad),
            optimizer=type(optimizer).__name__,
            devices=sorted({str(parameter.device) for parameter in model.parameters()}),
            threads=torch.get_num_threads(),
        )
        before, disk = time.perf_counter(), 0
        for made, loss in enumerate(islice(losses, spec["steps"]), start=1):
            value = one_step(loss, optimizer)
            del loss
            if made == spec["steps"] and hasattr(optimizer, "wait"):
                optimizer.wait()  # the last update is part of the last step
            now = time.perf_counter()
            if hasattr(optimizer, "memory"):
                disk = max(disk, optimizer.memory()["disk"])
            tell("step", step=made, loss=value, seconds=now - before, peak_ram=peak_rss() or rss(), disk=disk)
            before = time.perf_counter()
        stats = optimizer.stats() if hasattr(optimizer, "stats") else None
        tell("ended", peak_gpu=accelerator_peak(), stats=stats)
        if hasattr(optimizer, "close"):
            optimizer.close()


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
