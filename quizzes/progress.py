"""Progress of the whole course, in one file of this computer: what was answered, and what comes back when.

The file is replaced in one step, under a lock file beside it, so that two notebooks at once lose nothing. A damaged file is
kept aside under another name and said; it is never overwritten.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from platformdirs import user_data_path

from quizzes.answers import _is_entry
from quizzes.repetition import after

VERSION = 1
PATIENCE = 10.0
"""Seconds to wait for another notebook that is writing."""


class ProgressError(ValueError):
    """The progress file could not be read or written; the message names it. What it holds is untouched."""


def default_path() -> Path:
    """Where progress is kept: OFFLOAD_LAB_PROGRESS, else a file in this user's data folder."""
    told = os.environ.get("OFFLOAD_LAB_PROGRESS", "").strip()
    return Path(told).expanduser() if told else user_data_path("offload_lab") / "progress.json"


class Progress:
    """`answers`: question id -> its newest entry (as in an answer record, with "lesson"); `cards`: question id -> when it
    comes back. `notes` are sentences for the learner about what went wrong with the file."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = Path(path) if path is not None else default_path()
        self.notes: list[str] = []

    def read(self) -> dict[str, Any]:
        """{"version", "answers", "cards"}. Raises ProgressError for a file that is damaged or of a later version."""
        return _checked(self.path)

    def note(self, lesson: str, question: str, entry: dict[str, Any], now: datetime | None = None) -> None:
        """Keep an answer, and plan its return where it was missed. Raises ProgressError."""
        moment = now or datetime.now(UTC)

        def put(content: dict[str, Any]) -> None:
            content["answers"][question] = {**entry, "lesson": lesson}
            card = after(content["cards"].get(question), entry["share"], entry.get("hints", 0), moment)
            if card is not None:
                content["cards"][question] = card

        self._change(put)

    def export(self, target: str | os.PathLike[str]) -> None:
        """Write a copy to `target`, which must not exist. Raises ProgressError."""
        content = self.read()
        try:
            with open(target, "x", encoding="utf-8") as file:
                json.dump(content, file, ensure_ascii=False, indent=1)
        except OSError as error:
            raise ProgressError(
                f"{target} was not written: {error.strerror}. Name a new file in a folder that exists."
            ) from None

    def take_in(self, source: str | os.PathLike[str]) -> list[str]:
        """Add an exported file: the newer answer to each question stays. Returns the questions on which they differed.

        Raises ProgressError for a file that is not there or not readable; nothing is changed then.
        """
        if not Path(source).is_file():
            raise ProgressError(f"{source} is not a file; name one that was exported.")
        theirs, differ = _checked(Path(source)), []

        def put(content: dict[str, Any]) -> None:
            for question, entry in theirs["answers"].items():
                held = content["answers"].get(question)
                if held is not None and held["answer"] != entry["answer"]:
                    differ.append(question)
                if held is None or entry["at"] > held["at"]:
                    content["answers"][question] = entry
                    if question in theirs["cards"]:
                        content["cards"][question] = theirs["cards"][question]

        self._change(put)
        return differ

    def _change(self, put: Callable[[dict[str, Any]], None]) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self.path}.lock", timeout=PATIENCE):
                try:
                    content = _checked(self.path)
                except _Damaged as error:
                    aside = self._aside()
                    self.notes.append(f"{error} It was kept as {aside}, and a new one begun.")
                    content = _empty()
                put(content)
                _replace(self.path, content)
        except Timeout:
            raise ProgressError(
                f"{self.path} is held by another program for {PATIENCE:g} s; this answer is not in it."
            ) from None
        except OSError as error:
            raise ProgressError(
                f"{self.path} was not written: {error.strerror or error}. The notebook has the answer."
            ) from None

    def _aside(self) -> Path:
        """Rename the damaged file to a name that is free. Called with the lock held."""
        number = 1
        while (aside := Path(f"{self.path}.damaged-{number}")).exists():
            number += 1
        os.rename(self.path, aside)
        return aside


class _Damaged(ProgressError):
    pass


def _empty() -> dict[str, Any]:
    return {"version": VERSION, "answers": {}, "cards": {}}


def _checked(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return _empty()
    except OSError as error:
        raise ProgressError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise _Damaged(f"The progress file {path} is damaged.") from None
    if not isinstance(content, dict) or type(content.get("version")) is not int:
        raise _Damaged(f"The progress file {path} is damaged.")
    if content["version"] > VERSION:
        raise ProgressError(f"{path} was written by a later version of this course; update the course. It was left alone.")
    answers, cards = content.get("answers"), content.get("cards")
    if not isinstance(answers, dict) or not isinstance(cards, dict) or not all(map(_is_entry, answers.values())):
        raise _Damaged(f"The progress file {path} is damaged.")
    return {"version": VERSION, "answers": answers, "cards": cards}


def _replace(path: Path, content: dict[str, Any]) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(content, file, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
