"""`transformers.Trainer` with its optimizer's state on disk: `python examples/huggingface_trainer.py [FOLDER]`.

The model is a small GPT-2 that starts from random weights, the text is Python's own help, so nothing is downloaded.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from pydoc_data import topics

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from offload_lab import OffloadAdamW, OffloadPolicy


class Bytes(torch.utils.data.Dataset):
    """`count` pieces of Python's help, each `length` bytes long."""

    def __init__(self, count: int, length: int = 64) -> None:
        text = "".join(topics.topics.values()).encode()[: count * length]
        self._rows = torch.tensor(list(text), dtype=torch.long).view(count, length)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self._rows[index], "labels": self._rows[index]}


def model() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=64, n_embd=64, n_layer=2, n_head=4))


def arguments(folder: Path, **more: object) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(folder / "out"),
        max_steps=6,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        max_grad_norm=1.0,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        logging_steps=1,
        seed=0,
        **{"save_strategy": "no", **more},
    )


def train(folder: Path) -> tuple[list[float], GPT2LMHeadModel]:
    """Losses of six steps, and the trained model. The optimizer's state is in `folder`/state meanwhile and afterwards."""
    trained = model()
    policy = OffloadPolicy(tier="disk", directory=folder / "state", ram_budget="4MiB")
    with OffloadAdamW(trained.parameters(), lr=1e-3, offload=policy) as optimizer:
        trainer = Trainer(trained, arguments(folder), train_dataset=Bytes(64), optimizers=(optimizer, None))
        trainer.train()
        print(optimizer)
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry], trained


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        print(train(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(scratch))[0])
