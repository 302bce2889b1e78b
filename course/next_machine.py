"""One training step on a machine that need not exist: its tasks, its lanes, which bandwidth matters. Pure; all predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from offload_lab import schedule
from offload_lab.caching import Cache
from offload_lab.hardware import Figure, Hardware
from offload_lab.schedule import Item, Task
from offload_lab.simulate import Simulation, simulate
from quizzes.say import N_, _

DOWN, UP, UPDATE, STATE = 4, 2, 26, 10
"""Bytes a parameter of a bfloat16 model: over the link each way, through memory by the one-pass update, of state at rest."""
COMPUTED = 6
"""Bytes a parameter that forward and backward move through the accelerator's memory at least: the weights twice, and the
gradient once. Activations come on top."""
SHARE = 0.4
"""Of a data sheet's matrix throughput, what training reaches (as in `offload_lab.step_time`, assumed)."""
_SLABS = _BUFFERS = 4

KNOBS: dict[str, tuple[str, ...]] = {
    N_("compute"): ("gpu_flops",),
    N_("GPU's memory"): ("gpu_bandwidth",),
    N_("link"): ("host_to_device", "device_to_host"),
    N_("CPU's memory"): ("dram_bandwidth",),
    N_("disk"): ("disk_read", "disk_write", "disk_mixed"),
}
"""What can be bought faster, and the figures of Hardware that it changes."""

_LANES = {
    "compute": N_("compute"),
    "accelerator": N_("GPU's memory"),
    "device-to-host": N_("link, down"),
    "host-to-device": N_("link, up"),
    "link": N_("link"),
    "memory": N_("CPU's memory"),
    "disk-read": N_("disk, read"),
    "disk-write": N_("disk, write"),
    "disk": N_("disk"),
    "one memory": N_("the one memory"),
}


@dataclass(frozen=True)
class Step:
    """A step of a bfloat16 model with `parameters`, on `tokens` tokens (6 operations a parameter and token: Kaplan et al. 2020,
    "Scaling Laws for Neural Language Models"), its optimizer state in "ram" or on "disk", in `pieces` partitions.

    Forward, then backward; a partition is updated as soon as backward has brought its gradient. On a machine with one memory
    nothing crosses a link. Raises ValueError for a state that is neither, and numbers below 1.
    """

    parameters: int = 7_000_000_000
    tokens: int = 4096
    state: str = "ram"
    pieces: int = 28

    def __post_init__(self) -> None:
        if self.state not in ("ram", "disk"):
            raise ValueError(_('state={state!r}: "ram" or "disk" is needed').format(state=self.state))
        for name in ("parameters", "tokens", "pieces"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(_("{name}={value!r}: a whole number of at least 1 is needed").format(name=name, value=value))

    def compute_seconds(self, hardware: Hardware) -> float:
        """Of forward and backward. Raises ValueError for a machine without an accelerator."""
        if hardware.gpu_flops is None or not hardware.gpu_flops.value:
            raise ValueError(_("{machine} has no accelerator; this step computes on one").format(machine=hardware.name))
        return 6.0 * self.parameters * self.tokens / (SHARE * hardware.gpu_flops.value)

    def tasks(self, hardware: Hardware) -> list[Task]:
        """The engine's own list (`offload_lab.schedule.step`), the forward before it, and beside it what computing moves."""
        each, linked, on_disk = self.parameters // self.pieces, not hardware.unified, self.state == "disk"
        items = [
            Item(
                piece,
                STATE * each if on_disk else 0,
                STATE * each if on_disk else 0,
                not on_disk,
                UPDATE * each,
                DOWN * each if linked else 0,
                UP * each if linked else 0,
            )
            for piece in range(self.pieces)
        ]
        tasks = [Task(0, "forward", "forward", 0, 0, (), None)]
        for task in schedule.step(items, Cache(_BUFFERS, 3), gradients=True, slabs=_SLABS):
            after = tuple(number + 1 for number in task.after)
            tasks.append(replace(task, number=task.number + 1, after=after or ((0,) if task.kind == "gradient" else ())))
        earlier = 0  # the forward
        for task in [task for task in tasks if task.kind == "gradient"]:
            # Its bytes move while its operations run; they begin when those of the partition before have ended.
            tasks.append(Task(len(tasks), "compute", "accelerator", task.partition, COMPUTED * each, (earlier,), None))
            earlier = task.number
        return tasks

    def run(self, hardware: Hardware) -> Simulation:
        """The step in the simulator. Raises ValueError naming the figure that the machine lacks."""
        seconds = self.compute_seconds(hardware)
        parts = {"forward": seconds / 3, "gradient": 2 * seconds / 3 / self.pieces}
        return simulate(self.tasks(hardware), hardware, seconds=parts)

    def needs(self, hardware: Hardware) -> list[tuple[str, float, float]]:
        """(tier, bytes needed, bytes there) of each tier that the step takes too much of; activations are not counted."""
        state = STATE * self.parameters
        model = DOWN * self.parameters  # 16-bit weights and gradients
        tiers = [(N_("disk"), state if self.state == "disk" else 0, hardware.disk)]
        if hardware.unified:
            tiers.append((N_("the one memory"), model + (state if self.state == "ram" else 0), hardware.ram))
        else:
            tiers.append((N_("CPU's memory"), state if self.state == "ram" else 0, hardware.ram))
            tiers.append((N_("GPU's memory"), model, hardware.gpu_memory))
        sizes = [(name, float(needed), figure.value if figure is not None else 0.0) for name, needed, figure in tiers]
        return [(_(name), needed, there) for name, needed, there in sizes if needed > there]


def lanes(run: Simulation, hardware: Hardware) -> dict[str, float]:
    """Seconds that each lane of the machine needs at least for its part of `run`, the longest first; forward and backward are
    one lane, and so are CPU and accelerator where they have one memory."""
    found = dict(run.bounds.devices)
    if hardware.unified and "memory" in found:
        found["one memory"] = found.pop("memory")
    found["compute"] = run.bounds.lanes.get("forward", 0.0) + run.bounds.lanes.get("backward", 0.0)
    return {_(_LANES[name]): took for name, took in sorted(found.items(), key=lambda lane: -lane[1])}


def bottleneck(run: Simulation, hardware: Hardware) -> str:
    """The lane that needs the most seconds, as `lanes` names it."""
    return next(iter(lanes(run, hardware)))


def faster(hardware: Hardware, knob: str, times: float = 2.0) -> Hardware:
    """The machine with one of KNOBS `times` as fast. Raises ValueError for another name, and for `times` not above 0."""
    if knob not in KNOBS:
        raise ValueError(_("{knob!r} is not one of {names}").format(knob=knob, names=", ".join(KNOBS)))
    if not times > 0:
        raise ValueError(_("{times} times as fast: a number above 0 is needed").format(times=times))
    return _changed(hardware, KNOBS[knob], times)


def all_faster(hardware: Hardware, times: float) -> Hardware:
    """The machine with every one of KNOBS `times` as fast."""
    return _changed(hardware, [name for names in KNOBS.values() for name in names], times)


def _changed(hardware: Hardware, names: Sequence[str], times: float) -> Hardware:
    held = {name: figure for name in names if (figure := getattr(hardware, name)) is not None}
    told = _("{times:g} times as fast, assumed")
    return replace(hardware, **{n: Figure(times * f.value, "assumed", told.format(times=times)) for n, f in held.items()})


def knobs(hardware: Hardware) -> dict[str, str]:
    """The KNOBS that this machine has, and what each is called there."""
    named = {knob: _(knob) for knob, names in KNOBS.items() if any(getattr(hardware, name) is not None for name in names)}
    if hardware.unified:
        named.pop("link", None)  # nothing crosses it
    return named


def sensitivity(step: Step, hardware: Hardware) -> list[tuple[str, float, float]]:
    """(name, seconds of the step with that half as fast, with it twice as fast), what matters most first."""
    rows = [
        (told, step.run(faster(hardware, knob, 0.5)).makespan, step.run(faster(hardware, knob, 2.0)).makespan)
        for knob, told in knobs(hardware).items()
    ]
    return sorted(rows, key=lambda row: row[2] - row[1])


def pooled(hardware: Hardware, wires: float, memory: float, hosts: int) -> Hardware:
    """The machine with its disk replaced by a pool of memory that `hosts` machines use at once: each has `wires` bytes a second
    each way, and all together share the `memory` behind them, which moves reads and writes alike. Raises ValueError for fewer
    hosts than 1, and rates not above 0."""
    if hosts < 1 or not wires > 0 or not memory > 0:
        raise ValueError(_("a pool needs at least one host, and rates above 0"))
    each = Figure(min(wires, memory / hosts / 2), "assumed", _("its wires, or its share of the pool"))
    return replace(hardware, disk_read=each, disk_write=each, disk_mixed=None, disk_duplex="full")
