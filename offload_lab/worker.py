"""A background thread that loses no error."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Worker(threading.Thread):
    """Runs `work()` in a daemon thread and keeps what it returned or raised, whatever that is, for `result()`."""

    def __init__(self, work: Callable[[], Any], name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._work: list[Callable[[], Any]] = [work]
        self._value: Any = None
        self._kept = _Kept()

    def run(self) -> None:
        with self._kept:
            self._value = self._work.pop()()  # taken out, so that what it refers to goes when it is done

    @property
    def error(self) -> BaseException | None:
        """What the work raised, if it has ended that way."""
        return self._kept.error

    def result(self) -> Any:
        """Wait for the end; return what the work returned, or raise what it raised, with its own traceback."""
        self.join()
        if self._kept.error is not None:
            raise self._kept.error
        return self._value


class _Kept:
    """Holds an error back until somebody asks: a thread has nobody to raise it to."""

    error: BaseException | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self.error = error
        return True
