"""A plan as the configuration file of Hugging Face Accelerate: what its questionnaire (`accelerate config`) writes.

Field names: Accelerate 1.12's `commands/config/config_args.py`; https://huggingface.co/docs/accelerate/package_reference/cli.
"""

from __future__ import annotations

import textwrap
from typing import Any, Literal

import yaml

from offload_lab.export.deepspeed import as_deepspeed, stage
from offload_lab.export.policy_text import policy_text
from offload_lab.export.recipe import WHERE, ExportError, Recipe, about, check, moves, printable, ranks
from offload_lab.plan import Plan

Kind = Literal["plain", "deepspeed", "fsdp2"]
KINDS: tuple[Kind, ...] = ("plain", "deepspeed", "fsdp2")
NEVER_REACHED = 1e30
"""A norm of gradients, for who cannot be told that nothing is to be clipped."""


def as_accelerate(plan: Plan, recipe: Recipe | None = None, kind: Kind | None = None, deepspeed_file: str | None = None) -> str:
    """The text of the YAML file; comments at its head say what the file cannot.

    "plain": the script holds OffloadAdamW. "deepspeed": DeepSpeed holds the state, with the questionnaire's few settings, or
    with all of those in `deepspeed_file` (a path; made by `as_deepspeed`), which a plan with a disk needs. "fsdp2": weights
    and gradients are sharded, and move to RAM.
    None: "plain" where weights do not move, "fsdp2" where they and the state are in RAM, else "deepspeed".

    Raises ExportError where Accelerate cannot do what was planned, ValueError where the plan is damaged.
    """
    check(plan)
    recipe = recipe or Recipe()
    if kind is None:
        places = plan.placement
        kind = "plain" if not moves(plan) else "fsdp2" if places.state == places.weights == "ram" else "deepspeed"
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r}: one of {', '.join(KINDS)} is needed")
    if deepspeed_file is not None and kind != "deepspeed":
        raise ValueError(f"a DeepSpeed file is of use with kind deepspeed only, not with {kind}")
    if kind == "deepspeed":
        settings, notes = _deepspeed(plan, recipe, deepspeed_file)
    elif kind == "fsdp2":
        settings, notes = _fsdp2(plan)
    else:
        settings, notes = _plain(plan)
    head = [
        f"Exported by offload-lab from a plan: {about(plan)}.",
        "accelerate launch --config_file THIS_FILE train.py",
        *notes,
    ]
    if plan.model.accumulation > 1 and kind != "deepspeed":
        head.append(f"In the script: Accelerator(gradient_accumulation_steps={plan.model.accumulation}).")
    comments = [
        line for note in head for line in textwrap.wrap(printable(note), 120, initial_indent="# ", subsequent_indent="#   ")
    ]
    return "\n".join(comments) + "\n" + yaml.safe_dump(settings, sort_keys=True)


def _common(plan: Plan, distributed: str, precision: str | None) -> dict[str, Any]:
    """What the questionnaire writes for every kind."""
    settings = {
        "compute_environment": "LOCAL_MACHINE",
        "debug": False,
        "distributed_type": distributed,
        "downcast_bf16": "no",
        "enable_cpu_affinity": False,
        "machine_rank": 0,
        "main_training_function": "main",
        "num_machines": 1,
        "num_processes": ranks(plan),
        "rdzv_backend": "static",
        "same_network": True,
        "tpu_env": [],
        "tpu_use_cluster": False,
        "tpu_use_sudo": False,
        "use_cpu": plan.hardware.gpus == 0 and distributed == "NO",  # DeepSpeed finds out by itself
    }
    return settings if precision is None else settings | {"mixed_precision": precision}


def _native(plan: Plan, kind: str) -> list[str]:
    """How weights of the plan's dtype are had: Accelerate's mixed precision keeps them in float32 and casts as it computes."""
    if plan.model.dtype == "float16":
        raise ExportError(
            f"the plan trains float16 weights, and Accelerate's fp16 ({kind}) keeps float32 ones, 4 bytes instead of 2. Plan "
            "with dtype bfloat16, or export with DeepSpeed (--kind deepspeed), which keeps float16 weights."
        )
    if plan.model.dtype == "bfloat16":
        return [
            'mixed_precision is "no" because the weights themselves are bfloat16: load the model in torch.bfloat16. With '
            '"bf16", Accelerate casts float32 weights as it computes (and FSDP2 makes yours float32): 4 bytes a weight, not 2.'
        ]
    return []


def _plain(plan: Plan) -> tuple[dict[str, Any], list[str]]:
    places = plan.placement
    if moves(plan):
        raise ExportError(
            f"the plan puts weights {WHERE[places.weights]}, which plain Accelerate does not do. Export with --kind "
            + ("fsdp2 or deepspeed." if places.weights == "ram" else "deepspeed.")
        )
    notes = _native(plan, "plain")
    early = plan.offload.overlap == "backward" and ranks(plan) == 1
    if places.state == "gpu":
        notes.append("The optimizer in the script: torch.optim.AdamW.")
    else:
        notes.append(
            "This file says nothing about the optimizer's state. The optimizer in the script: "
            f"OffloadAdamW(model.parameters(), offload=OffloadPolicy({policy_text(plan, early)})); examples/accelerate_loop.py."
        )
    if early and places.state != "gpu":
        notes.append('Nothing can be clipped with overlap="backward": a gradient is used up before the others are there.')
    elif places.gradients != places.weights:
        notes.append(f"Gradients stay beside the weights until the step, not {WHERE[places.gradients]}.")
    if plan.model.checkpointing == "full":
        notes.append("Activation checkpointing is the model's own business: e.g. model.gradient_checkpointing_enable().")
    several = plan.hardware.gpus > 1
    if several:
        notes.append(
            f"Each of the {plan.hardware.gpus} accelerators holds all weights and gradients; the plan shares them out. "
            "`offload-lab export fsdp`, or --kind deepspeed, does what was planned."
        )
    settings = _common(plan, "MULTI_GPU" if several else "NO", "no")
    return (settings if plan.hardware.gpus == 0 else settings | {"gpu_ids": "all"}), notes


def _deepspeed(plan: Plan, recipe: Recipe, file: str | None) -> tuple[dict[str, Any], list[str]]:
    notes = list(as_deepspeed(plan, recipe)["_note"][1:])  # it refuses what DeepSpeed cannot do
    places = plan.placement
    if file is not None:
        notes.append(
            f"The optimizer is in {file}: pass accelerate.utils.DummyOptim(model.parameters()) in the script, and a DataLoader "
            f"of batch_size={plan.model.batch}."
        )
        config: dict[str, Any] = {"deepspeed_config_file": file, "zero3_init_flag": moves(plan)}
        return _common(plan, "DEEPSPEED", None) | {"deepspeed_config": config}, notes
    if "disk" in (places.state, places.weights):
        # Accelerate 1.12 asks for the folder and writes it to its file, but `accelerate launch` passes it to nobody.
        raise ExportError(
            "something is to be on disk, and `accelerate launch` (1.12) forgets the folder that its questionnaire asks for: "
            "DeepSpeed would write to a folder called none. Make a file with `offload-lab export deepspeed --out ds.json`, and "
            "give it here as --deepspeed-file ds.json."
        )
    notes.append(
        f"The optimizer in the script: torch.optim.AdamW(model.parameters(), lr={recipe.lr}, betas={recipe.betas}, "
        f"eps={recipe.eps}, weight_decay={recipe.weight_decay}); Accelerate makes DeepSpeed's of it. A DataLoader of "
        f"batch_size={plan.model.batch}."
    )
    device = {"gpu": "none", "ram": "cpu"}
    config = {
        "gradient_accumulation_steps": plan.model.accumulation,
        "offload_optimizer_device": device[places.state],
        "offload_param_device": "cpu" if moves(plan) else "none",
        "zero3_init_flag": moves(plan),
        "zero_stage": stage(plan),
    }
    config["gradient_clipping"] = NEVER_REACHED if recipe.clip is None else recipe.clip
    if recipe.clip is None:
        notes.append(
            "Nothing is to be clipped, so gradient_clipping is a norm that no gradient has: Accelerate 1.12 passes no 0 on, "
            "and where nothing is said, DeepSpeed 0.19 clips at 1."
        )
    if config["zero_stage"] == 3:
        config["zero3_save_16bit_model"] = True
    precision = {"bfloat16": "bf16", "float16": "fp16", "float32": "no"}[plan.model.dtype]
    return _common(plan, "DEEPSPEED", precision) | {"deepspeed_config": config}, notes


def _fsdp2(plan: Plan) -> tuple[dict[str, Any], list[str]]:
    places = plan.placement
    if plan.hardware.gpus == 0:
        raise ExportError(
            "the plan has no accelerator, and Accelerate shards on accelerators only: on a CPU it would train without FSDP and "
            "not say so. `offload-lab export fsdp` makes a script that shards there too."
        )
    if places.weights == "disk":
        raise ExportError("the plan puts weights on disk, and FSDP2 moves them to RAM only. Export with --kind deepspeed.")
    if places.state != places.weights:
        raise ExportError(
            f"planned: {places}. With Accelerate's FSDP2, AdamW's state is where the weights are. "
            "`offload-lab export fsdp` makes a script in which OffloadAdamW holds it elsewhere."
            if places.state != "gpu"
            else f"planned: {places}. With Accelerate's FSDP2, state that belongs to weights in RAM is in RAM."
        )
    notes = _native(plan, "fsdp2")
    if places.state == "ram" and plan.offload.state_dtype != "float32":
        raise ExportError(
            f"the plan keeps moments in {plan.offload.state_dtype}; torch's AdamW keeps them in the dtype of its weights. "
            "`offload-lab export fsdp` makes a script with OffloadAdamW."
        )
    notes.append("Pass model and optimizer (torch.optim.AdamW) to one accelerator.prepare(…); FSDP2 wants them together.")
    if plan.model.dtype == "bfloat16":
        notes.append(
            "Precision is not as planned: torch's AdamW keeps moments in the weights' bfloat16 and has no masters, so that "
            "small updates are lost. `offload-lab export fsdp` makes a script with OffloadAdamW: float32 moments and masters."
        )
    if places.gradients != places.weights:
        notes.append(f"Gradients are where the weights are, {WHERE[places.weights]}, not {WHERE[places.gradients]} as planned.")
    fsdp = {
        "fsdp_activation_checkpointing": plan.model.checkpointing == "full",
        "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "fsdp_cpu_ram_efficient_loading": False,
        "fsdp_offload_params": moves(plan),
        "fsdp_reshard_after_forward": True,
        "fsdp_state_dict_type": "SHARDED_STATE_DICT",
        "fsdp_version": 2,
    }
    notes.append(
        "Blocks are wrapped by the model's own _no_split_modules (Transformers); for another model add "
        "fsdp_transformer_layer_cls_to_wrap: the class names of its blocks."
    )
    return _common(plan, "FSDP", "no") | {"fsdp_config": fsdp}, notes
