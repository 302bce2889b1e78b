"""State in torch's own format, both ways, and resuming from a directory.

The format is that of `torch.optim.AdamW.state_dict()`: for each parameter number `step` (a float32 scalar), `exp_avg` and
`exp_avg_sq` (float32, the parameter's shape). A 16-bit parameter has `master` beside them, its float32 weight; AdamW
carries entries that it does not know along, and a checkpoint without `master` starts the master at the weight.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from offload_lab import entries
from offload_lab.engine import Engine
from offload_lab.halves import flat, join_words, low_halves, split_words, words_of
from offload_lab.partition import Partition, Span
from offload_lab.storage.direct_io import StorageError
from offload_lab.storage.manifest import Generation, Manifest
from offload_lab.storage.memory import Slab


def _host_weight(engine: Engine, number: int) -> torch.Tensor:
    return engine.tracked[number].local.detach().to("cpu").contiguous()


def export(engine: Engine, zeros: entries.Zeros = entries.in_memory) -> dict[int, dict[str, torch.Tensor]]:
    """State of every parameter that has been stepped, by parameter number, as host tensors of their own; `zeros` makes them."""
    stepped = {number: tracked for number, tracked in enumerate(engine.tracked) if tracked.step}
    state: dict[int, dict[str, torch.Tensor]] = {}
    for number, tracked in stepped.items():
        shape = tracked.local.shape
        state[number] = {"step": torch.tensor(float(tracked.step)), **entries.empty(engine.kind(number), shape, zeros)}
        if tracked.dtype != "float32":
            state[number]["master"] = zeros(shape, torch.float32)
    scratch = engine.scratch()
    for part in engine.partitions:
        blocks = part.first_blocks()
        wanted = [(span, block) for span, block in zip(part.spans, blocks, strict=False) if span.parameter in stepped]
        if wanted:
            fields = engine.fields(part, engine.load(part.index, scratch))
            for span, block in wanted:
                entries.export(part.kind, fields, span, block, state[span.parameter])
                _export_span(engine, part, span, fields, state[span.parameter])
    return state


def _export_span(engine: Engine, part: Partition, span: Span, fields, into: dict[str, torch.Tensor]) -> None:
    here, there = slice(span.offset, span.offset + span.length), slice(span.start, span.start + span.length)
    if part.dtype == "float32":
        return
    tracked = engine.tracked[span.parameter]
    weight = _host_weight(engine, span.parameter)
    if part.dtype == "bfloat16":
        rest = np.zeros(span.length, np.uint16) if tracked.edited() else fields.master[here]
        master = join_words(words_of(weight)[there], rest)
    else:
        held, current = fields.master[here], weight.view(-1).numpy()[there]
        with np.errstate(over="ignore"):
            master = np.where(held.astype(np.float16) == current, held, current.astype(np.float32))
    into["master"].view(-1).numpy()[there] = master


def check(engine: Engine, state: Mapping[int, Mapping[str, Any]]) -> None:
    """Raises ValueError naming the parameter when `state` does not fit; nothing has been changed then."""
    for number, entry in state.items():
        tracked = engine.tracked[number]
        if "step" not in entry:
            raise ValueError(f"the checkpoint of {tracked.name} has no 'step'; is it of an Adam or AdamW optimizer?")
        entries.check(engine.kind(number), entry, tracked.local.shape, tracked.name)
        if "master" in entry and tuple(entry["master"].shape) != tuple(tracked.local.shape):
            raise ValueError(
                f"the checkpoint's master of {tracked.name} has shape {tuple(entry['master'].shape)}, "
                f"the parameter has {tuple(tracked.local.shape)}"
            )


def restore(engine: Engine, state: Mapping[int, Mapping[str, Any]]) -> None:
    """Replace all state by `state` (as `export` gives it; parameters that it does not name start anew).

    On disk this is a generation like that of a step: until it is published the one before it stands.
    A master that does not round to the current weight is kept aside until the next step, because `model.load_state_dict`
    may still follow; then it counts only where it rounds to the weight.
    """
    engine.usable()
    check(engine, state)
    engine.provide([n for n in state if not engine.tracked[n].parts and engine.tracked[n].numel])
    try:
        steps = _restore(engine, state)
    except BaseException as error:
        engine.failed = error
        raise
    for number, tracked in enumerate(engine.tracked):
        tracked.step = steps[number]
        tracked.note()
        entry = state.get(number, {})
        tracked.loaded_master = _pending_master(engine, number, entry.get("master"))


def _restore(engine: Engine, state: Mapping[int, Mapping[str, Any]]) -> list[int]:
    scratch = engine.scratch()
    written = []
    for part in engine.partitions:
        resident = engine.resident.get(part.index)
        record = (scratch if resident is None else resident)[: engine.record_bytes(part)]
        record.fill(0)
        fields = engine.fields(part, record)
        for span, block in zip(part.spans, part.first_blocks(), strict=False):
            entry = state.get(span.parameter)
            if entry is not None:
                entries.restore(part.kind, fields, span, block, entry)
            _restore_span(engine, part, span, fields, entry)
        if engine.files is not None and (resident is None or engine.policy.keeps_weights):
            engine.files.write(part.index, record)
            written.append(part.index)
    steps = [int(state[n]["step"]) if n in state else 0 for n in range(len(engine.tracked))]
    engine.steps = max(steps, default=0)
    if engine.files is not None:
        engine.files.turn(written)
        if engine.policy.keeps_weights:
            engine.files.publish(engine.steps, steps, engine.describe_groups(), engine.layout_described)
            engine.stepping.execution.forget_unpublished()
    return steps


def _restore_span(engine: Engine, part: Partition, span: Span, fields, entry: Mapping[str, Any] | None) -> None:
    here, there = slice(span.offset, span.offset + span.length), slice(span.start, span.start + span.length)
    weight = _host_weight(engine, span.parameter)
    if part.dtype == "float16":
        # The loop itself takes the weight where the master does not round to it.
        master = entry.get("master") if entry is not None else None
        fields.master[here] = flat(weight if master is None else master)[there]
        return
    if part.dtype == "bfloat16" and entry is not None and "master" in entry:
        fields.master[here] = low_halves(entry["master"], weight, span)
    if engine.policy.keeps_weights:
        mirror = fields.weight
        mirror[here] = (flat(weight) if part.dtype == "float32" else words_of(weight))[there]


def _pending_master(engine: Engine, number: int, master: torch.Tensor | None) -> torch.Tensor | None:
    """The master, where some weight is not its rounding yet; else None (float32 and float16 need no such thing)."""
    tracked = engine.tracked[number]
    if master is None or tracked.dtype != "bfloat16":
        return None
    words, _ = split_words(flat(master))
    return None if np.array_equal(words, words_of(_host_weight(engine, number))) else master.detach().clone()


def resume(engine: Engine, found: Manifest) -> None:
    """Take up what a directory holds: state, step counts and weights, into the partitions that the engine took over.

    With existing="previous" the generation before the newest, which is given up. Raises StorageError where what is asked for
    is damaged or not there.
    """
    files, older = engine.files, found.previous
    if engine.policy.existing == "previous":
        why = "there is none" if older is None else _lacking(engine, found.newest, older)
        if older is None or why:
            raise StorageError(errno.EIO, f"{str(files.directory)!r} has no whole step before step {found.step}: {why}")
        _take_up(engine, older)
        _publish_again(engine, older)
        return
    try:
        _take_up(engine, found.newest)
    except StorageError as error:
        whole = older is not None and not _lacking(engine, found.newest, older)
        advice = (
            f' The step before it, {older.step}, is whole: OffloadPolicy(existing="previous") goes on from there.'
            if whole
            else ""
        )
        raise StorageError(error.errno, f"resuming step {found.step}: {error.strerror}{advice}") from error
    files.previous = older


def _lacking(engine: Engine, newest: Generation, older: Generation) -> str:
    """Why the engine can't go back from `newest` to `older`; "" where it can."""
    later = [i for i, slot in enumerate(newest.slots) if slot is not None and (older.slots[i : i + 1] or [None])[0] is None]
    if later or len({len(generation.parameter_steps) for generation in (newest, older)}) > 1:
        return f"step {older.step} has no state yet of partitions {later or 'that came later'}, and no weights of theirs"
    damage = _unreadable(engine, older)
    return "" if damage is None else str(damage.strerror)


def _unreadable(engine: Engine, generation: Generation) -> StorageError | None:
    """What is wrong with a generation on disk, or None: all of it is read and compared with its checksums."""
    room = Slab(max((engine.record_bytes(part) for part in engine.partitions), default=0))
    try:
        for part in engine.partitions[: len(generation.slots)]:
            if generation.slots[part.index] is not None:
                engine.files.read(part.index, room.bytes[: engine.record_bytes(part)], generation=generation)
    except StorageError as error:
        return error
    finally:
        room.close()
    return None


def _publish_again(engine: Engine, generation: Generation) -> None:
    """Let `generation`, which was taken up, be the only one that the directory holds."""
    engine.files.published = None  # or the generation that is left would be kept as the previous one
    engine.files.publish(generation.step, generation.parameter_steps, generation.groups, engine.layout_described)
    engine.files.previous = None


def _take_up(engine: Engine, generation: Generation) -> None:
    """Put a generation that is on disk into RAM and into the parameters: state, step counts and weights."""
    engine.files.take_up(generation)
    scratch = engine.scratch()
    for part in engine.partitions:
        if engine.files.slots[part.index] is None:
            continue
        record = engine.resident.get(part.index, scratch)[: engine.record_bytes(part)]
        engine.files.read(part.index, record)
        fields = engine.fields(part, record)
        for span in part.spans:
            _resume_weight(engine, part, span, fields)
    engine.steps = generation.step
    for tracked, step in zip(engine.tracked, generation.parameter_steps, strict=True):
        tracked.step = step
        tracked.note()
        tracked.loaded_master = None


def rollback(engine: Engine) -> list[dict]:
    """Go back to the published step before the state that is in memory: to the last one published, where steps have been
    made since, else to the one before it. Weights, moments and step counts are as they were then, on disk too.

    Returns the groups' settings of that step. Raises RuntimeError where there is no such step any more; nothing is changed
    then, nor where a StorageError says that its state was damaged.
    """
    files = engine.files
    if files is None or not engine.policy.keeps_weights:
        raise RuntimeError(
            'rollback() goes back to a published step, and this policy publishes none. It needs tier="disk" and '
            'durability="step" or a number of steps.'
        )
    since = files.published is not None and (engine.failed is not None or engine.steps > files.published.step)
    target = files.published if since else files.previous
    if target is None:
        raise RuntimeError(
            f"there is no published step before step {engine.steps}: a directory holds two, and the older one is given up as "
            "soon as the next step begins to write"
        )
    # A partition that was never published has the weights that the model had; after a failure these may be half of a step.
    started = [i for i, slot in enumerate(files.slots) if slot is not None and (target.slots[i : i + 1] or [None])[0] is None]
    if engine.failed is not None:
        started = [part.index for part in engine.partitions if (target.slots[part.index : part.index + 1] or [None])[0] is None]
    if started or len(target.parameter_steps) != len(engine.tracked):
        raise RuntimeError(
            f"step {target.step} has no state yet of partitions {started or 'that came later'}, so their weights of then are "
            "on no disk; go back by loading a checkpoint"
        )
    damage = _unreadable(engine, target)  # before anything is changed
    if damage is not None:
        raise StorageError(
            damage.errno, f"going back to step {target.step}: {damage.strerror}; nothing was changed"
        ) from damage
    try:
        _take_up(engine, target)
        if not since:
            _publish_again(engine, target)
    except BaseException as error:
        engine.failed = error
        raise
    engine.failed = None
    engine.stepping.execution.forget_unpublished()
    return target.groups


def reload(engine: Engine, indexes: Sequence[int], numbers: Collection[int]) -> None:
    """Put the published state of partitions `indexes` back, and the weights of parameters `numbers` in them."""
    scratch = engine.scratch()
    for index in indexes:
        part = engine.partitions[index]
        record = engine.resident.get(index, scratch)[: engine.record_bytes(part)]
        engine.files.read(index, record)
        for span in part.spans:
            if span.parameter in numbers:
                _resume_weight(engine, part, span, engine.fields(part, record))


def _resume_weight(engine: Engine, part: Partition, span: Span, fields) -> None:
    parameter = engine.tracked[span.parameter].local
    here = slice(span.offset, span.offset + span.length)
    if part.dtype == "float16":
        values = torch.from_numpy(fields.master[here]).to(torch.float16)
    elif part.dtype == "bfloat16":
        values = torch.from_numpy(fields.weight[here].view(np.int16)).view(torch.bfloat16)
    else:
        values = torch.from_numpy(fields.weight[here])
    with torch.no_grad():
        if parameter.is_contiguous():
            parameter.detach().view(-1)[span.start : span.start + span.length].copy_(values)
        else:
            whole = parameter.detach().contiguous()
            whole.view(-1)[span.start : span.start + span.length].copy_(values)
            parameter.detach().copy_(whole)
