"""The learner's own machine: what is here, and the hardware file that lesson 0 writes and every later lesson reads."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import psutil
import torch
from platformdirs import user_data_path

from offload_lab.auto import available_memory
from offload_lab.hardware import Figure, Hardware
from offload_lab.measuring import measure
from offload_lab.state_bytes import readable
from offload_lab.storage.direct_io import StorageError, require_disk_tier
from quizzes.certificates.publish import publish
from quizzes.say import N_, _

LADDER = (  # field of Hardware, and what a learner calls it
    ("gpu_bandwidth", N_("accelerator's memory")),
    ("dram_bandwidth", N_("main memory, by the update")),
    ("host_to_device", N_("link to the accelerator")),
    ("disk_read", N_("disk, read")),
    ("disk_write", N_("disk, write")),
)


def hardware_file() -> Path:
    """Where the file is: OFFLOAD_LAB_HARDWARE, else `hardware.json` in this user's data folder."""
    told = os.environ.get("OFFLOAD_LAB_HARDWARE", "").strip()
    return Path(told).expanduser() if told else user_data_path("offload_lab") / "hardware.json"


def inventory() -> str:
    """What this machine has, a line each, and what is missing and what that changes for the course."""
    memory, disk = available_memory(), shutil.disk_usage(".").free
    lines = [
        f"Python       {sys.version.split()[0]}, torch {torch.__version__}",
        _("cores        {count}").format(count=os.cpu_count()),
        _("memory       {total}, of which a program may take {free} now").format(
            total=readable(psutil.virtual_memory().total), free=readable(memory)
        ),
        _("disk         {free} free in this folder").format(free=readable(disk)),
    ]
    missing = []
    if torch.accelerator.is_available():
        lines.append(_("accelerator  {device}").format(device=torch.accelerator.current_accelerator()))
    else:
        lines.append(_("accelerator  none"))
        missing.append(_("No accelerator: lessons simulate its lanes, and say so. The Colab lab lends you one."))
    try:
        require_disk_tier()
    except StorageError as error:
        missing.append(_("No disk tier: {error} Lessons 1 and 3 to 9 then show the RAM tier.").format(error=error))
    if memory < 2_000_000_000:
        missing.append(_("Less than 2 GB of free memory: close other programs before you run a lesson."))
    if disk < 3_000_000_000:
        missing.append(_("Less than 3 GB of free disk: lessons that write files may stop and say so."))
    if (os.cpu_count() or 1) < 2:
        missing.append(_("One core: reading ahead and computing share it, so overlap will show less."))
    return "\n".join([*lines, "", *(missing or [_("Nothing that a lesson needs is missing.")])])


def keep(hardware: Hardware) -> Path:
    """Write the hardware file, whole or not at all; return where it is. Raises OSError, with the path."""
    path = hardware_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    publish({path: (hardware.to_json() + "\n").encode()})
    return path


def yours(seconds: float = 6.0) -> Hardware:
    """The machine of the hardware file; where there is none that can be read, this one is measured now, which is said."""
    path = hardware_file()
    try:
        hardware = Hardware.from_dict(_read(path))
    except FileNotFoundError:
        said = _("There is no hardware file yet ({path}); lesson 0 makes one. Measuring for about {seconds:g} s instead.")
        print(said.format(path=path, seconds=seconds))
    except (OSError, ValueError) as error:
        said = _("{path} cannot be used: {error}. Run lesson 0 again. Measuring for about {seconds:g} s instead.")
        print(said.format(path=path, error=error, seconds=seconds))
    else:
        print(_("Your machine, as measured on {day}.").format(day=hardware.taken[:10]))
        return hardware
    return measure(".", seconds, say=lambda line: None)


def _read(path: Path) -> dict:
    import json

    return json.loads(path.read_text(encoding="utf-8"))


def ladder(hardware: Hardware, nbytes: float, width: int = 40) -> str:
    """How long `nbytes` take on each rung of this machine, a line and a bar each; the bars are drawn on one linear scale."""
    rungs = [(told, figure) for name, told in LADDER if isinstance(figure := getattr(hardware, name), Figure) and figure.value]
    slowest = max(nbytes / figure.value for _told, figure in rungs)
    lines = [_("{size}, once past:").format(size=readable(nbytes))]
    for told, figure in rungs:
        seconds = nbytes / figure.value
        bar = "█" * max(1, round(width * seconds / slowest))
        lines.append(f"{_(told):26} {figure.value / 1e9:7.2f} GB/s ({_(figure.source)})  {seconds:7.2f} s  {bar}")
    return "\n".join(lines)
