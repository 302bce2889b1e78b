"""One open gradebook for a whole batch, and one grader at a time on a course."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.converters import autograde
from nbgrader.preprocessors import latesubmissions, overwritecells, overwritekernelspec, saveautogrades, savecells
from sqlalchemy import text

from quizzes.say import _

BUSY_MS = 30_000  # how long a write waits for another program that holds the SQLite file
_KEY = 0x6F66666C6F6164  # of PostgreSQL's advisory lock: any number that nobody else uses
_USERS: tuple[ModuleType, ...] = (autograde, overwritecells, overwritekernelspec, saveautogrades, latesubmissions, savecells)


class LockedError(RuntimeError):
    """Another grader works on this course."""


class _Shared:
    """Stands for `Gradebook(url, course)`: entering gives the open one, leaving keeps it open."""

    def __init__(self, gradebook: Gradebook):
        self._gradebook = gradebook

    def __call__(self, *_all: Any, **_more: Any) -> _Shared:
        return self

    def __enter__(self) -> Gradebook:
        return self._gradebook

    def __exit__(self, kind: object, *_rest: object) -> None:
        # A failed statement would poison the session for every later student.
        if kind is not None:
            self._gradebook.db.rollback()

    def close(self) -> None:
        """Kept open: the block that opened it closes it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gradebook, name)


def find_scripts() -> None:
    """nbgrader calls `alembic` by its bare name for a new gradebook; it lies beside the interpreter, also where no environment
    was activated."""
    scripts = str(Path(sys.executable).parent)
    if scripts not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([scripts, os.environ.get("PATH", "")])


@contextmanager
def one_gradebook(url: str, course_id: str) -> Iterator[Gradebook]:
    """Let nbgrader's autograde use one session inside the block; it opens the database a dozen times a student otherwise.

    Nothing is written before `gradebook.keep()`; `gradebook.db.rollback()` forgets what came after the last one. Raises
    LockedError where another grader has a PostgreSQL gradebook, on whatever machine.
    """
    find_scripts()
    before = [module.Gradebook for module in _USERS]
    with Gradebook(url, course_id) as gradebook, _alone_in(gradebook, url):
        if url.startswith("sqlite"):
            gradebook.db.execute(text(f"PRAGMA busy_timeout = {BUSY_MS}"))
        shared = _Shared(gradebook)
        # nbgrader commits six times a student. One transaction is faster, and a student whose grading fails half-way keeps
        # what the gradebook said before.
        session = gradebook.db
        commit = session.commit
        session.commit = session.flush
        gradebook.keep = commit
        try:
            for module in _USERS:
                module.Gradebook = shared
            yield gradebook
        finally:
            session.rollback()  # what was not kept is half a student's
            session.commit = commit
            for module, original in zip(_USERS, before, strict=True):
                module.Gradebook = original


@contextmanager
def _alone_in(gradebook: Gradebook, url: str) -> Iterator[None]:
    """Hold a PostgreSQL gradebook for the block: graders of two machines share no file that could be locked."""
    if not url.startswith("postgresql"):
        yield
        return
    # A connection of its own, which keeps the lock over all commits. The server frees it when this process dies.
    with gradebook.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if not connection.execute(text(f"SELECT pg_try_advisory_lock({_KEY})")).scalar():
            raise LockedError(_("another offload-quiz grade is at work in this gradebook; wait until it has ended"))
        yield


@contextmanager
def only_grader(course: Path) -> Iterator[None]:
    """Hold the course for the block. Raises LockedError at once where another process grades it."""
    path = course / ".grading.lock"
    with path.open("a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the system frees it when the process dies
        except BlockingIOError:
            told = _("another offload-quiz grade is at work in {course!r}; wait until it has ended")
            raise LockedError(told.format(course=str(course))) from None
        yield
