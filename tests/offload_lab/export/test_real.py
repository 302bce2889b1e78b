"""The exports, run by those they are for: DeepSpeed, `accelerate launch`, torchrun; two steps each on the CPU.

DeepSpeed is tried where its environment is already there (`python -m bench.peers` makes it); these tests install nothing.
"""

import pytest
import torch

from bench import exports, peers

needs_peers = pytest.mark.skipif(
    not peers.ready(), reason="DeepSpeed has an environment of its own, and it is not here: python -m bench.peers makes it"
)
needs_gloo = pytest.mark.skipif(
    not torch.distributed.is_available() or not torch.distributed.is_gloo_available(), reason="this torch has no gloo"
)

N = 3 * 1024 * 1025  # parameters of bench/deepspeed_export.py: weights and biases
WEIGHTS = 3 * 1024 * 1024  # of which gradients and weights are large enough to be written to disk


def as_torch_trains(dtype, steps=2, accumulation=1):
    """Losses of the model of bench/deepspeed_export.py with torch's AdamW on float32 masters."""
    torch.manual_seed(0)
    masters = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(3))).to(dtype).float()
    model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(3))).to(dtype)
    torch.manual_seed(0)
    for _ in range(3):
        torch.nn.Linear(1024, 1024)
    x = torch.randn(2, 1024).to(dtype)
    optimizer = torch.optim.AdamW(masters.parameters(), lr=1e-3, weight_decay=0.01)
    losses = []
    for _ in range(steps):
        for parameter, master in zip(model.parameters(), masters.parameters(), strict=True):
            parameter.data.copy_(master)
            master.grad = torch.zeros_like(master)
        for _ in range(accumulation):
            model.zero_grad()
            loss = (model(x).float() - 1).pow(2).mean()
            loss.backward()
            losses.append(loss.item())
            for parameter, master in zip(model.parameters(), masters.parameters(), strict=True):
                master.grad += parameter.grad.float() / accumulation
        torch.nn.utils.clip_grad_norm_(masters.parameters(), 1.0)
        optimizer.step()
    return losses


@needs_peers
@pytest.mark.parametrize("case", exports.DEEPSPEED)
def test_deepspeed_trains_two_steps_as_exported(tmp_path, case):
    answer = exports.run_deepspeed(case, tmp_path)
    options, config, understood = exports.DEEPSPEED[case], answer["config"], answer["understood"]
    assert answer["steps"] == 2 and answer["inner"] == "DeepSpeedCPUAdam"
    assert answer["optimizer"] == (
        "DeepSpeedZeroOptimizer_Stage3" if understood["zero"]["stage"] == 3 else "DeepSpeedZeroOptimizer"
    )
    float32 = options.get("model", {}).get("dtype") == "float32"
    expected = as_torch_trains(
        torch.float32 if float32 else torch.bfloat16, accumulation=options.get("model", {}).get("accumulation", 1)
    )
    assert answer["losses"] == pytest.approx(expected, rel=1e-5 if float32 else 2e-2)
    # By hand: float32 master and moments of everything, the gradients and the 16-bit weights of what is large enough.
    on_disk = 12 * N + 4 * WEIGHTS if options["state"] == "disk" else 0
    on_disk += 2 * WEIGHTS if options.get("weights") == "disk" else 0
    assert set(answer["bytes_on_disk"].values()) <= {on_disk} and bool(on_disk) == bool(answer["bytes_on_disk"])
    _every_field_was_understood(config, understood)


def _every_field_was_understood(config, understood):
    """DeepSpeed says nothing about keys that it does not know; so each of ours is looked for in what it read."""
    assert understood["train_batch_size"] == config.pop("train_batch_size")
    assert understood["micro_batch"] == config.pop("train_micro_batch_size_per_gpu")
    assert understood["accumulation"] == config.pop("gradient_accumulation_steps")
    assert understood["clip"] == config.pop("gradient_clipping")
    optimizer = config.pop("optimizer")
    assert understood["optimizer"] == [optimizer["type"].lower(), optimizer["params"]]
    assert understood["bf16"] == config.pop("bf16", {"enabled": False})["enabled"] and not understood["fp16"]
    assert understood["grad_accum_dtype"] == config.pop("data_types", {"grad_accum_dtype": None})["grad_accum_dtype"]
    aio = config.pop("aio", {})
    assert {name: understood["aio"][name] for name in aio} == aio
    for name, value in config.pop("zero_optimization").items():
        read = understood["zero"][name]
        assert ({key: read[key] for key in value} if isinstance(value, dict) else read) == value, name
    assert set(config) == {"_note"}


@needs_gloo
@pytest.mark.parametrize("case", [pytest.param(c, marks=needs_peers if "deepspeed" in c else ()) for c in exports.ACCELERATE])
def test_accelerate_launch_starts_with_the_exported_file_and_trains(tmp_path, case):
    pytest.importorskip("accelerate", reason="accelerate is in the extra 'test'")
    seen = exports.run_accelerate(case, tmp_path)
    assert len(seen["losses"]) == 2 and seen["processes"] == 1 and seen["dtype"] == "torch.bfloat16"
    if case == "plain":
        assert seen["type"] == "DistributedType.NO" and (tmp_path / "state" / "offload.json").exists()
    elif case == "fsdp2":
        assert seen["plugin"] == [2, "CPUOffloadPolicy", True, False] and seen["parameter"] == "DTensor"
    else:
        assert seen["type"] == "DistributedType.DEEPSPEED" and seen["config"]["gradient_clipping"] == 1.0
        assert seen["config"]["bf16"]["enabled"] and seen["config"]["train_batch_size"] == 2
        offload = seen["config"]["zero_optimization"]["offload_optimizer"]
        assert offload["device"] == ("nvme" if case == "deepspeed-file" else "cpu")
        assert (case == "deepspeed-file") == (tmp_path / "state" / "zero_stage_3").exists()
        assert not (tmp_path / "none").exists(), "where Accelerate's launcher puts what it forgets the folder of"


@needs_gloo
@pytest.mark.parametrize("case", [case for case in exports.FSDP if case != "one rank, state on disk"])
def test_the_fsdp2_script_runs_under_torchrun(tmp_path, case):
    ran = exports.run_fsdp(case, tmp_path)
    options = exports.FSDP[case]
    assert ran["losses"] == pytest.approx(_alone(tmp_path / "train.py", options.get("gpus", 1)), abs=1e-2)
    assert bool(ran["bytes_on_disk"]) == (options["state"] == "disk")


def _alone(script, ranks):
    """The same script's model, data and loss in one process: rank 0's losses, torch's AdamW on float32 weights."""
    source = {"__name__": "script"}
    exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), source)

    class Ranks:
        rank = 0
        get_rank = staticmethod(lambda: Ranks.rank)
        get_world_size = staticmethod(lambda: ranks)

    source["dist"] = Ranks
    torch.manual_seed(0)
    model = source["build_model"]()[0].float()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    losses = []
    for step in range(2):
        optimizer.zero_grad()
        first = 0.0
        for Ranks.rank in range(ranks):
            for micro in range(source["ACCUMULATION"]):
                tokens = source["batch"](step * source["ACCUMULATION"] + micro)
                loss = source["loss_of"](model, tokens) / source["ACCUMULATION"]
                (loss / ranks).backward()
                first += loss.item() if Ranks.rank == 0 else 0.0
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(first)
    return losses
