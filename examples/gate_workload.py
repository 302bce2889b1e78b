"""A workload for `offload-lab gate`: a small GPT on Python's own help texts, with optimizer state on disk.

    offload-lab gate --script examples/gate_workload.py --targets examples/targets.json

Put your own model, optimizer and batches in their place. `losses` is lazy: the gate takes one loss, calls backward() and
optimizer.step(), and takes the next; what follows a `yield` runs after the step.
"""

from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.training import Batches, GPTConfig, TinyGPT, corpus, loss_of


def workload(folder):
    """(model, optimizer, losses); `folder` is an empty one on the disk to test, deleted afterwards."""
    config = GPTConfig(layers=2, width=128, heads=4, context=64)
    model = TinyGPT(config)
    optimizer = OffloadAdamW(model.parameters(), lr=1e-3, offload=OffloadPolicy(tier="disk", directory=folder / "state"))

    def losses():
        for inputs, targets in Batches(corpus(), 4, config.context):
            yield loss_of(model, inputs, targets)

    return model, optimizer, losses()
