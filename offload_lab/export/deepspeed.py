"""A plan as a DeepSpeed configuration: ZeRO-Offload (state in RAM), ZeRO-Infinity (state on disk).

Fields and what they do: DeepSpeed 0.19's `runtime/config.py`, `runtime/zero/config.py`, `runtime/zero/offload_config.py` and
`runtime/swap_tensor`; https://www.deepspeed.ai/docs/config-json/. The bytes: Rajbhandari et al. 2021 (ZeRO-Infinity):
master, two moments and gradient in float32, 16 a parameter.
"""

from __future__ import annotations

from typing import Any

from offload_lab.export.recipe import WEIGHT_BYTES, WHERE, ExportError, Recipe, about, check, moves, ranks
from offload_lab.plan import Plan

STATE_BYTES = 16
"""Bytes a parameter that DeepSpeed moves off the accelerator with its optimizer: master, moments and gradient in float32."""
BUFFERS = 16
"""Of one sub-group's elements in float32: the least with which reads and writes are pipelined (bench/deepspeed_disk.py)."""
LARGEST_GROUP = 32 << 20
"""Elements of a sub-group; 16 buffers of it are 2 GiB. What bench/ measured with."""
SMALLEST_GROUP = 1 << 20
LEAST_SWAPPED = 1 << 20
"""Bytes below which DeepSpeed leaves a tensor in RAM whatever is asked for (MIN_AIO_BYTES)."""
BLOCK = 2 << 20
"""Bytes of one request to the disk: of 1 to 4 MiB, all of which are as fast; DeepSpeed's own is 1 MiB."""
QUEUE_DEPTH = 32


def as_deepspeed(plan: Plan, recipe: Recipe | None = None) -> dict[str, Any]:
    """The content of DeepSpeed's JSON file. What differs from the plan is said in `_note`, which DeepSpeed ignores.

    Raises ExportError where DeepSpeed cannot do what was planned, ValueError where the plan is damaged.
    """
    check(plan)
    recipe = recipe or Recipe()
    model, places = plan.model, plan.placement
    _refuse(plan)
    config: dict[str, Any] = {
        "_note": [f"Exported by offload-lab from a plan: {about(plan)}.", *_notes(plan)],
        "train_batch_size": model.batch * model.accumulation * ranks(plan),
        "train_micro_batch_size_per_gpu": model.batch,
        "gradient_accumulation_steps": model.accumulation,
    }
    # 0 is not clipped, and has to be said: where nothing is, DeepSpeed 0.19 clips at 1.
    config["gradient_clipping"] = 0.0 if recipe.clip is None else recipe.clip
    config["optimizer"] = {"type": "AdamW", "params": recipe.arguments()}
    if model.dtype == "bfloat16":
        config["bf16"] = {"enabled": True}
    elif model.dtype == "float16":
        config["fp16"] = {"enabled": True, "loss_scale": 0}  # 0: dynamic
    if plan.offload.gradients == "float32" and model.dtype != "float32":
        config["data_types"] = {"grad_accum_dtype": "fp32"}
    config["zero_optimization"] = _zero(plan)
    if "disk" in (places.state, places.weights):
        config["aio"] = {
            "block_size": BLOCK,
            "queue_depth": QUEUE_DEPTH,
            "intra_op_parallelism": 1,
            "single_submit": False,
            "overlap_events": True,
        }
    return config


def stage(plan: Plan) -> int:
    """ZeRO's stage: 3 where weights move or are shared out over several accelerators, or state goes to disk; else 2, which
    keeps all weights on each."""
    return 3 if moves(plan) or plan.placement.state == "disk" or ranks(plan) > 1 else 2


def sub_group(plan: Plan) -> int:
    """Elements of a sub-group, so that the buffers stay within the plan's RAM budget."""
    budget = plan.offload.ram_budget
    wanted = LARGEST_GROUP if budget is None else budget // (BUFFERS * 4) // SMALLEST_GROUP * SMALLEST_GROUP
    return max(SMALLEST_GROUP, min(LARGEST_GROUP, wanted))


def _zero(plan: Plan) -> dict[str, Any]:
    places, directory = plan.placement, plan.offload.directory
    pin = plan.hardware.gpus > 0  # without an accelerator there is no copy that pinned memory would speed up
    zero: dict[str, Any] = {"stage": stage(plan), "contiguous_gradients": True, "overlap_comm": ranks(plan) > 1}
    if places.state == "ram":
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": pin}
    elif places.state == "disk":
        zero["offload_optimizer"] = {
            "device": "nvme",
            "nvme_path": directory,
            "pin_memory": pin,
            "buffer_count": BUFFERS,
            "pipeline_read": True,
            "pipeline_write": True,
        }
        zero["sub_group_size"] = sub_group(plan)
    if places.weights == "ram" and moves(plan):
        zero["offload_param"] = {"device": "cpu", "pin_memory": pin}
    elif places.weights == "disk":
        zero["offload_param"] = {"device": "nvme", "nvme_path": directory, "pin_memory": pin}
    if zero["stage"] == 3:
        zero["stage3_gather_16bit_weights_on_model_save"] = True  # else a saved model holds one rank's shards
    return zero


def _refuse(plan: Plan) -> None:
    model, places, offload = plan.model, plan.placement, plan.offload
    if places.state != "gpu" and offload.state_dtype != "float32":
        raise ExportError(
            f"the plan keeps moments in {offload.state_dtype}. DeepSpeed's keeps them in float32; in bfloat16 only together "
            "with bfloat16 masters, which lose small updates, and in 8 bits not at all. Plan with state_dtype float32, or use "
            "OffloadAdamW."
        )
    if places.state == "gpu" and places.gradients != "gpu":
        raise ExportError(
            f"the plan puts gradients {WHERE[places.gradients]} and leaves the state on the accelerator. DeepSpeed moves "
            "gradients only together with the optimizer's state; put the state there too, or export fsdp."
        )
    room = {"ram": 0, "disk": 0}
    if places.state != "gpu":
        room[places.state] += STATE_BYTES * model.parameters
    if places.weights != "gpu":  # moved, or at home in RAM
        room[places.weights] += WEIGHT_BYTES[model.dtype] * (model.parameters + model.frozen)
    for tier, needed in room.items():
        there = plan.capacity.get(tier)
        if there is not None and needed > there:
            raise ExportError(
                f"DeepSpeed needs at least {needed:,} bytes {WHERE[tier]} for this ({STATE_BYTES} a parameter of float32 state "
                f"and gradient, weights that are there), and there are {there:,}. OffloadAdamW takes less, and the plan "
                f"counts on it; {'plan with the state on disk' if tier == 'ram' else 'a larger disk is needed'}."
            )


def _notes(plan: Plan) -> list[str]:
    model, places, offload = plan.model, plan.placement, plan.offload
    notes = []
    if places.state != "gpu":
        if plan.placement.runs_with != "deepspeed":
            notes.append(
                f"Memory is not as planned: DeepSpeed keeps master, moments and gradient in float32, {STATE_BYTES} bytes a "
                f"parameter {WHERE[places.state]}; the plan's figures are those of OffloadAdamW."
            )
        if places.gradients != places.state:
            notes.append(
                f"Gradients: planned {WHERE[places.gradients]}; DeepSpeed has them {WHERE[places.state]}, with the state."
            )
    if places.state == "disk":
        group = sub_group(plan)
        notes += [
            f"Buffers: {BUFFERS} of a sub-group of {group:,} float32 elements: {BUFFERS * 4 * group:,} bytes of RAM. A "
            "parameter that is larger than a sub-group makes all of them as large as itself.",
            "No step is published: after a crash nothing can be taken up from nvme_path; save checkpoints.",
            "RAM beyond the buffers is not used for state: DeepSpeed reads and writes all of it each step.",
        ]
        if offload.ram_budget is not None and BUFFERS * 4 * group > offload.ram_budget:
            notes.append(
                f"The RAM budget of {offload.ram_budget:,} bytes is too small for DeepSpeed's buffers of even the smallest "
                "sub-group that is written here."
            )
        if 4 * model.parameters // ranks(plan) < max(BLOCK, LEAST_SWAPPED):
            notes.append(f"Nothing will be on disk: tensors below {max(BLOCK, LEAST_SWAPPED):,} bytes stay in RAM.")
    if model.checkpointing == "full":
        notes.append("Activation checkpointing is the model's own business: e.g. model.gradient_checkpointing_enable().")
    if offload.overlap != "none":
        notes.append(f'overlap="{offload.overlap}": not here; engine.step() returns when the update is over.')
    if model.dtype == "float16":
        notes.append("fp16: the loss is scaled dynamically; steps whose gradients overflow are skipped.")
    return notes
