"""The small model of `elsewhere_child.py`, trained by OffloadAdamW as a plan says: what stands beside `elsewhere.DeepSpeed`."""

from __future__ import annotations

from course import elsewhere_child
from course.elsewhere import NotHere
from offload_lab import OffloadAdamW
from offload_lab.placing import policy_of
from offload_lab.plan import Plan
from offload_lab.storage.direct_io import StorageError
from quizzes.say import _


class Ours:
    """In this process, on the CPU, with the same weights, batch and learning rate as DeepSpeed gets.

    `train(steps)` returns the last loss; `disk` are the bytes of state on disk. Close it, or use it in a `with`. Raises NotHere
    where the plan wants a disk tier and there is none, or the disk is full.
    """

    def __init__(self, plan: Plan) -> None:
        self._model, self._batch = elsewhere_child.network(), elsewhere_child.batch()
        policy = policy_of(plan.placement, plan.offload)
        try:
            self._optimizer = OffloadAdamW(self._model.parameters(), lr=elsewhere_child.LR, offload=policy)
        except StorageError as error:
            raise NotHere(_("OffloadAdamW has no disk here: {error}").format(error=error)) from None
        self.disk = 0

    def about(self) -> dict[str, str]:
        """As DeepSpeed's."""
        return {"optimizer": type(self._optimizer).__name__}

    def train(self, steps: int) -> float:
        """Train `steps` more steps; return the loss of the last one."""
        loss = float("nan")
        for _step in range(steps):
            found = elsewhere_child.loss_of(self._model, self._batch)
            found.backward()
            try:
                self._optimizer.step()
            except StorageError as error:
                raise NotHere(_("OffloadAdamW has no disk here: {error}").format(error=error)) from None
            self._optimizer.zero_grad()
            loss = found.item()
        self.disk = self._optimizer.memory()["disk"]
        return loss

    def close(self) -> None:
        self._optimizer.close()

    def __enter__(self) -> Ours:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
