"""The Hugging Face examples, run, and held against torch.optim.AdamW in the same loop."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest
import torch

os.environ.setdefault("HF_HUB_OFFLINE", "1")
pytest.importorskip("transformers", reason="transformers is in the extra 'test'")
pytest.importorskip("accelerate", reason="accelerate is in the extra 'test'")

from offload_lab import OffloadAdamW, OffloadPolicy

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def close_to(ours, theirs):
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-6)


def test_the_trainer_trains_as_with_torchs_adamw(tmp_path):
    hf = example("huggingface_trainer")
    losses, ours = hf.train(tmp_path)
    theirs = hf.model()
    optimizer = torch.optim.AdamW(theirs.parameters(), lr=1e-3)
    trainer = hf.Trainer(theirs, hf.arguments(tmp_path), train_dataset=hf.Bytes(64), optimizers=(optimizer, None))
    trainer.train()
    expected = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert losses == pytest.approx(expected, rel=1e-3) and len(losses) == 6 and losses[-1] < losses[0]
    close_to(ours, theirs)
    assert (tmp_path / "state" / "offload.json").exists()


@pytest.mark.parametrize("tier", ["ram", "disk"])
def test_the_trainer_saves_and_resumes(tmp_path, tier):
    hf = example("huggingface_trainer")
    finals = []
    for stop in (6, 3):
        model = hf.model()
        folder = tmp_path / str(stop)
        more = {"save_strategy": "steps", "save_steps": 3, "save_safetensors": False}
        for last in {stop, 6}:
            where = {"directory": folder / f"state {last}"} if tier == "disk" else {}
            with OffloadAdamW(model.parameters(), lr=1e-3, offload=OffloadPolicy(tier=tier, **where)) as optimizer:
                settings = hf.arguments(folder, **more)
                if last == 3:
                    settings.max_steps = 6  # the schedule is that of six steps
                trainer = hf.Trainer(model, settings, train_dataset=hf.Bytes(64), optimizers=(optimizer, None))
                if last == 3:
                    trainer.add_callback(_StopAt(3))
                trainer.train(resume_from_checkpoint=str(folder / "out" / "checkpoint-3") if stop == 3 and last == 6 else None)
        finals.append(model)
    assert all(torch.equal(p, q) for p, q in zip(finals[0].parameters(), finals[1].parameters(), strict=True))


def _StopAt(step):
    from transformers import TrainerCallback

    class StopAt(TrainerCallback):
        def on_step_end(self, args, state, control, **rest):
            control.should_training_stop = state.global_step >= step

    return StopAt()


def test_accelerate_trains_as_with_torchs_adamw(tmp_path):
    loop = example("accelerate_loop")
    close_to(loop.main(tmp_path), loop.train(lambda parameters: torch.optim.AdamW(parameters, lr=0.01)))
