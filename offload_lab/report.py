"""What an engine can tell of itself: where every byte is, what the last step moved, and what it waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from offload_lab.stalls import attribute, lane_use

if TYPE_CHECKING:
    from offload_lab.engine import Engine


def stats(engine: Engine) -> dict[str, Any]:
    """The engine as numbers. Bytes are counted by the calls that moved them, times taken from the trace.

    "last_step" is None before the first: {"seconds", "bytes": {lane: bytes}, "bandwidth": {lane: bytes a second while it was
    busy}, "waited": {what: share of the step}}. "bytes_needed" is what steps used of the state, "hit_rate" the share of it
    that they did not have to read. "small_parameters" is how many the next step takes up all at once.
    """
    files, records, crowd = engine.files, engine.records, engine.stepping.crowd
    resident = sum(record.nbytes for record in records.resident.values())
    return {
        "tier": engine.policy.tier,
        "kernel": engine.kernel.name,
        "small_parameters": len(crowd) if crowd is not None else 0,
        "small_parameters_read": crowd.how if crowd is not None else None,
        "state_dtype": engine.policy.state_dtype,
        "threads": engine.threads,
        "partitions": len(engine.partitions),
        "resident_partitions": len(records.resident),
        "resident_bytes": resident,
        "buffer_bytes": records.nbytes - resident,
        "residency": engine.policy.residency,
        "order": engine.policy.order,
        "overlap": engine.policy.overlap,
        "deferred_parameters": engine.stepping.deferred,
        "direct_io": files.direct if files is not None else None,
        "io_path": _io_path(engine),
        "staging_bytes": engine.staging.nbytes,
        "staging": _staging(engine),
        "directory": str(files.directory) if files is not None else None,
        "directories": _directories(engine),
        "durability": engine.policy.durability if files is not None else None,
        "steps": engine.steps,
        "skipped_steps": engine.skipped_steps,
        "bytes_read": engine.bytes_read,
        "bytes_written": engine.bytes_written,
        "bytes_needed": engine.bytes_needed,
        "hit_rate": 1 - engine.bytes_read / engine.bytes_needed if engine.bytes_needed else None,
        "last_step": _last_step(engine),
        **{f"{tier}_bytes": nbytes for tier, nbytes in engine.memory().items()},
    }


def _directories(engine: Engine) -> list[dict[str, Any]]:
    """Each directory, its share of the state, and its bytes a second, where that was measured."""
    files = engine.files
    if files is None:
        return []
    speeds = files.speeds or [None] * len(files.shares)
    return [
        {"path": str(path), "share": share / sum(files.shares), "bandwidth": speed}
        for path, share, speed in zip(files.directories, files.shares, speeds, strict=True)
    ]


def _staging(engine: Engine) -> str:
    if not engine.staging.nbytes:
        return "none: no parameter is on an accelerator"
    return "pinned" if engine.staging.why is None else f"pageable, and slower: {engine.staging.why}"


def _io_path(engine: Engine) -> str:
    if engine.files is None:
        return "none: all state is in RAM"
    if engine.files.direct:
        return "direct I/O, past the page cache"
    if engine.policy.direct_io == "off":
        return "through the page cache, as the policy asks"
    return "through the page cache: the file system of the directory takes no direct I/O"


def _last_step(engine: Engine) -> dict[str, Any] | None:
    last = engine.stepping.execution.last
    if last is None:
        return None
    start, end = last
    events = [event for event in engine.trace.since(start) if event.start < end]
    lanes = lane_use(events, start, end)
    return {
        "seconds": end - start,
        "bytes": {label: use.nbytes for label, use in lanes.items() if use.nbytes},
        "bandwidth": {label: use.bandwidth for label, use in lanes.items() if use.nbytes},
        "waited": attribute(events, start, end),
    }


def _size(nbytes: float) -> str:
    """Bytes as people read them, in powers of 1024."""
    for unit in ("B", "KiB", "MiB"):
        if nbytes < 1024:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.2f} GiB"


def _moved(label: str) -> str:
    return "memory traffic by the update" if label == "update" else label


def text(numbers: dict[str, Any]) -> str:
    """`stats` as a few lines for a person."""
    lines = [
        f"state: {_size(numbers['ram_bytes'])} in RAM ({_size(numbers['resident_bytes'])} that stay, "
        f"{_size(numbers['buffer_bytes'])} of buffers), {_size(numbers['disk_bytes'])} on disk, "
        f"in {numbers['partitions']} partitions of which {numbers['resident_partitions']} stay in RAM",
        f"update: {numbers['kernel']}, {numbers['threads']} threads; files: {numbers['io_path']}",
        *(
            [f"{numbers['small_parameters']} small parameters are taken up at once, read {numbers['small_parameters_read']}"]
            if numbers["small_parameters"]
            else []
        ),
        f"steps: {numbers['steps']}, skipped {numbers['skipped_steps']}"
        + (f"; {numbers['hit_rate']:.0%} of the state's bytes came from RAM" if numbers["hit_rate"] is not None else ""),
    ]
    last = numbers["last_step"]
    if last is not None:
        moved = ", ".join(
            f"{_size(nbytes)} of {_moved(label)} at {_size(last['bandwidth'][label])}/s"
            for label, nbytes in last["bytes"].items()
        )
        lines.append(f"last step: {last['seconds'] * 1000:.1f} ms" + (f"; {moved}" if moved else ""))
        waited = {label: share for label, share in last["waited"].items() if label not in ("update", "other")}
        worst = max(waited, key=lambda label: waited[label])
        if waited[worst] > 0:
            lines.append(f"{waited[worst]:.0%} of the step waited for {worst}; {last['waited']['update']:.0%} was the update")
    return "\n".join(lines)
