"""Progress of the whole course, in one file of this computer: what was answered, and what comes back when.

The file is replaced in one step, under a lock file beside it, so that two notebooks at once lose nothing. A damaged file is
kept aside under another name and said; it is never overwritten.
"""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from platformdirs import user_data_path

from quizzes.answers import Record, is_entry, kept_others
from quizzes.copies import standing
from quizzes.online.together import together
from quizzes.repetition import after
from quizzes.say import _

VERSION = 2
"""Version 1 had no `others` and no `learner`; it is read, and written as version 2 at the next answer."""
WITH_JUDGED = 3
"""The version of a file with answers to the judging service: a program that would drop them must refuse it."""
FORMAT = "offload-lab progress"
PATIENCE = 10.0
"""Seconds to wait for another notebook that is writing."""


class ProgressError(ValueError):
    """The progress file could not be read or written; the message names it. What it holds is untouched."""


def default_path() -> Path:
    """Where progress is kept: OFFLOAD_LAB_PROGRESS, else a file in this user's data folder."""
    told = os.environ.get("OFFLOAD_LAB_PROGRESS", "").strip()
    return Path(told).expanduser() if told else user_data_path("offload_lab") / "progress.json"


class Progress:
    """`answers`: question id -> its newest entry (as in an answer record, with "lesson"); `others`: question id -> answers of
    other copies, none of which was chosen yet; `cards`: question id -> when it comes back; `learner`: see Record; `judged`: run
    of the judging service -> what was answered there, see quizzes.online.sheet.
    `notes` are sentences for the learner about what went wrong with the file."""

    def __init__(self, path: str | os.PathLike[str] | None = None, patience: float = PATIENCE) -> None:
        self._patience = patience
        self.path = Path(path) if path is not None else default_path()
        self.notes: list[str] = []

    def read(self) -> dict[str, Any]:
        """{"version", "learner", "answers", "others", "cards", "judged"}. Raises ProgressError for a file that is damaged or of
        a later version."""
        return checked(self.path)

    def record(self, lesson: str) -> Record:
        """What the file holds of a lesson, as an answer record. Raises ProgressError."""
        content = self.read()
        mine = {name: dict(entry) for name, entry in content["answers"].items() if entry.get("lesson") == lesson}
        others = {name: content["others"][name] for name in mine if name in content["others"]}
        for entry in (*mine.values(), *(entry for entries in others.values() for entry in entries)):
            entry.pop("lesson", None)
        return Record(lesson, mine, others=others, learner=content["learner"])

    def note(self, lesson: str, question: str, entry: dict[str, Any], now: datetime | None = None) -> list[dict[str, Any]]:
        """Keep an answer, and plan its return where it was missed. Returns all answers to it that stand now: more than one
        where another copy gave one that `entry` does not replace. Raises ProgressError."""
        moment, left = now or datetime.now(UTC), []

        def put(content: dict[str, Any]) -> None:
            left[:] = _join(content, question, [{**entry, "lesson": lesson}])
            # By what was earned: the hints, which took their share of it, are told beside it.
            card = after(content["cards"].get(question), entry.get("earned", entry["share"]), entry.get("hints", 0), moment)
            if card is not None:
                content["cards"][question] = card

        self._change(put)
        return [{name: value for name, value in entry.items() if name != "lesson"} for entry in left]

    def choose(self, question: str, entry: dict[str, Any]) -> None:
        """Keep `entry`, which replaces every other answer that the file holds to this question. Raises ProgressError."""

        def put(content: dict[str, Any]) -> None:
            _join(content, question, [entry])

        self._change(put)

    def forget(self, question: str) -> None:
        """Take an answer out; when it comes back is kept. Raises ProgressError."""

        def put(content: dict[str, Any]) -> None:
            content["answers"].pop(question, None)
            content["others"].pop(question, None)

        self._change(put)

    def learner(self, suggested: str) -> str:
        """The random name that seeds this learner's variants: the file's, else `suggested`, which is kept. Raises
        ProgressError."""
        held = self.read()["learner"]
        if held:
            return str(held)

        def put(content: dict[str, Any]) -> None:
            content["learner"] = content["learner"] or suggested

        self._change(put)
        return str(self.read()["learner"])

    def judged(self, run: str, join: Callable[[Any], dict[str, Any]]) -> None:
        """Keep what `join` makes of the sheet that the file holds of a run; None is passed where it holds none. Raises
        ProgressError."""

        def put(content: dict[str, Any]) -> None:
            content["judged"][run] = join(content["judged"].get(run))

        self._change(put)

    def export(self, target: str | os.PathLike[str]) -> None:
        """Write a copy to `target`, which must not exist. Raises ProgressError."""
        content = self.read()
        try:
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            _replace(Path(target), content)
        except OSError as error:
            said = _("{path} was not written: {why}. Name a new file in a folder that exists.")
            raise ProgressError(said.format(path=target, why=error.strerror)) from None

    def take_in(self, source: str | os.PathLike[str]) -> list[str]:
        """Add an exported file. Returns the questions on which the two differ; both answers are kept until one is chosen.

        Raises ProgressError for a file that is not there or not readable; nothing is changed then.
        """
        if not Path(source).is_file():
            raise ProgressError(_("{path} is not a file; name one that was exported.").format(path=source))
        theirs, differ = checked(Path(source)), []

        def put(content: dict[str, Any]) -> None:
            differ.clear()
            for question, entry in theirs["answers"].items():
                before = content["answers"].get(question)
                left = _join(content, question, [entry, *theirs["others"].get(question, [])])
                if len(left) > 1:
                    differ.append(question)
                # The card goes with the answer that counts; a card that only they have is not lost either.
                mine_counts = before is not None and left[0]["at"] == before["at"]
                if question in theirs["cards"] and not (mine_counts and question in content["cards"]):
                    content["cards"][question] = theirs["cards"][question]
            for question, card in theirs["cards"].items():
                content["cards"].setdefault(question, card)
            for run, sheet in theirs["judged"].items():
                content["judged"][run] = together(content["judged"].get(run), sheet)
            content["learner"] = content["learner"] or theirs["learner"]

        self._change(put)
        return differ

    def _change(self, put: Callable[[dict[str, Any]], None]) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self.path}.lock", timeout=self._patience):
                try:
                    content = checked(self.path)
                except _Damaged as error:
                    aside = self._aside()
                    said = _("{error} It was kept as {aside}, and a new one begun.")
                    self.notes.append(said.format(error=error, aside=aside))
                    content = _empty()
                put(content)
                content["version"] = WITH_JUDGED if content["judged"] else VERSION
                _replace(self.path, content)
        except Timeout:
            said = _("{path} is held by another program for {seconds:g} s; this answer is not in it.")
            raise ProgressError(said.format(path=self.path, seconds=self._patience)) from None
        except OSError as error:
            said = _("{path} was not written: {why}. The notebook has the answer.")
            raise ProgressError(said.format(path=self.path, why=error.strerror or error)) from None

    def _aside(self) -> Path:
        """Rename the damaged file to a name that is free. Called with the lock held."""
        number = 1
        while (aside := Path(f"{self.path}.damaged-{number}")).exists():
            number += 1
        os.rename(self.path, aside)
        return aside


class _Damaged(ProgressError):
    pass


def _join(content: dict[str, Any], question: str, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put `entries` beside what `content` holds of a question; the ones that stand, the one that counts first."""
    held = [content["answers"][question]] if question in content["answers"] else []
    left = standing([*held, *content["others"].pop(question, []), *entries])
    content["answers"][question] = left[0]
    if left[1:]:
        content["others"][question] = left[1:]
    return left


def _empty() -> dict[str, Any]:
    return {"format": FORMAT, "version": VERSION, "learner": "", "answers": {}, "others": {}, "cards": {}, "judged": {}}


def checked(path: Path) -> dict[str, Any]:
    """What a progress file holds, as version 3; empty where there is none. Raises ProgressError."""
    damaged = _Damaged(_("The progress file {path} is damaged, or is none.").format(path=path))
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return _empty()
    except OSError as error:
        raise ProgressError(_("{path} cannot be read: {why}.").format(path=path, why=error.strerror)) from None
    except (ValueError, RecursionError):
        raise damaged from None
    if not isinstance(content, dict) or type(content.get("version")) is not int:
        raise damaged
    if content["version"] > WITH_JUDGED and content.get("format", FORMAT) == FORMAT:
        said = _("{path} was written by a later version of this course; update the course. It was left alone.")
        raise ProgressError(said.format(path=path))
    if content.get("format", FORMAT) != FORMAT or (content["version"] > 1 and "format" not in content):
        raise ProgressError(_("{path} is not a progress file of this course. It was left alone.").format(path=path))
    answers, cards, others = content.get("answers"), content.get("cards"), content.get("others", {})
    judged = content.get("judged", {})
    if not all(isinstance(part, dict) for part in (answers, cards, others, judged, *judged.values())):
        raise damaged
    lost: list[str] = []
    kept = kept_others(others, lost)
    if lost or not all(map(is_entry, answers.values())):
        raise damaged
    learner = content.get("learner", "")
    named = learner if isinstance(learner, str) else ""
    parts = {"answers": answers, "others": kept, "cards": cards, "judged": judged}
    return {"format": FORMAT, "version": WITH_JUDGED if judged else VERSION, "learner": named} | parts


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
