"""An exported configuration field by field: what each means, and what of the plan it is. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from quizzes.say import N_, _, _n

_NAME, _VALUE = 34, 16
"""Columns; a longer name takes of the value's."""

MEANINGS = {
    # DeepSpeed
    "train_batch_size": N_("batch × accumulation × accelerators of the plan"),
    "train_micro_batch_size_per_gpu": N_("batch: sequences of one forward"),
    "gradient_accumulation_steps": N_("accumulation: forwards and backwards a step"),
    "gradient_clipping": N_("largest norm of all gradients; 0: none is clipped"),
    "optimizer.type": N_("the same algorithm"),
    "optimizer.params.lr": N_("learning rate; no plan has one"),
    "optimizer.params.betas": N_("decay of the two moments"),
    "optimizer.params.eps": N_("what keeps the division finite"),
    "optimizer.params.weight_decay": N_("as torch's AdamW has it; DeepSpeed's own is 0"),
    "bf16.enabled": N_("dtype: bfloat16 weights"),
    "fp16.enabled": N_("dtype: float16 weights"),
    "fp16.loss_scale": N_("0: found out while it trains"),
    "data_types.grad_accum_dtype": N_("gradients are summed in float32"),
    "zero_optimization.stage": N_("what is shared out: 2 state and gradients, 3 weights too"),
    "zero_optimization.contiguous_gradients": N_("gradients lie in one buffer"),
    "zero_optimization.overlap_comm": N_("several accelerators: exchange while backward goes on"),
    "zero_optimization.sub_group_size": N_("parameters updated at a time; from the RAM budget"),
    "zero_optimization.offload_optimizer.device": N_("state: cpu is RAM, nvme the disk"),
    "zero_optimization.offload_optimizer.nvme_path": N_("directory of the plan"),
    "zero_optimization.offload_optimizer.pin_memory": N_("buffers that the accelerator copies from by itself"),
    "zero_optimization.offload_optimizer.buffer_count": N_("buffers of a sub-group, for reading ahead"),
    "zero_optimization.offload_optimizer.pipeline_read": N_("read ahead of the update"),
    "zero_optimization.offload_optimizer.pipeline_write": N_("write behind it"),
    "zero_optimization.offload_param.device": N_("weights: cpu is RAM, nvme the disk"),
    "zero_optimization.offload_param.nvme_path": N_("directory of the plan"),
    "zero_optimization.offload_param.pin_memory": N_("as above, for weights"),
    "zero_optimization.stage3_gather_16bit_weights_on_model_save": N_("a saved model is whole, not one accelerator's share"),
    "aio.block_size": N_("bytes of one request to the disk"),
    "aio.queue_depth": N_("requests under way at a time"),
    "aio.intra_op_parallelism": N_("threads for one transfer"),
    "aio.single_submit": N_("requests are handed over in groups"),
    "aio.overlap_events": N_("finished ones are collected meanwhile"),
    # Accelerate; what its questionnaire always writes is not listed
    "distributed_type": N_("who holds the model: NO is the script alone"),
    "num_processes": N_("accelerators of the plan, or one"),
    "mixed_precision": N_("no: the weights are 16-bit themselves"),
    "use_cpu": N_("the plan has no accelerator"),
    "gpu_ids": N_("the accelerators that it may use"),
    "deepspeed_config.deepspeed_config_file": N_("all else is in that file"),
    "deepspeed_config.zero3_init_flag": N_("weights are shared out as the model is built"),
    "deepspeed_config.zero_stage": N_("what is shared out: 2 state and gradients, 3 weights too"),
    "deepspeed_config.gradient_accumulation_steps": N_("accumulation: forwards and backwards a step"),
    "deepspeed_config.gradient_clipping": N_("largest norm of all gradients"),
    "deepspeed_config.offload_optimizer_device": N_("state: cpu is RAM"),
    "deepspeed_config.offload_param_device": N_("weights: cpu is RAM"),
    "deepspeed_config.zero3_save_16bit_model": N_("a saved model is whole, not one accelerator's share"),
}
"""Field, with its sections before it, and what it means."""
ROUTINE = {
    "compute_environment", "debug", "downcast_bf16", "enable_cpu_affinity", "machine_rank", "main_training_function",
    "num_machines", "rdzv_backend", "same_network", "tpu_env", "tpu_use_cluster", "tpu_use_sudo",
}  # fmt: skip
"""What Accelerate's questionnaire writes into every file."""


def fields(configuration: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Every field with its sections before it ("zero_optimization.stage"), and its value; what begins with _ is left out."""
    for name, value in configuration.items():
        if name.startswith("_"):
            continue
        if isinstance(value, Mapping):
            yield from fields(value, f"{above}{name}.")
        else:
            yield above + name, value


def explained(configuration: Mapping[str, Any]) -> str:
    """A line a field: its name beneath its section, its value, and what it means. Routine ones are counted, not listed."""
    sections: dict[str, list[tuple[str, Any]]] = {}
    routine = 0
    for path, value in fields(configuration):
        if path in ROUTINE:
            routine += 1
        else:
            sections.setdefault(path.rpartition(".")[0], []).append((path, value))
    lines = []
    for head, found in sections.items():
        lines += [head] if head else []
        for path, value in found:
            name = ("  " if head else "") + path.rpartition(".")[2]
            said = _(MEANINGS[path]) if path in MEANINGS else _("(not explained here)")
            lines.append(f"{name:{_NAME}}{_shown(value):>{max(1, _VALUE - max(0, len(name) - _NAME))}}   {said}")
    if routine:
        lines.append(_n("and {count} field that every such file has", "and {count} fields that every such file has", routine))
        lines[-1] = lines[-1].format(count=routine)
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
