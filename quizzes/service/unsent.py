"""Answers that the service has not acknowledged yet, in one file of this user, so that none is lost when it is away."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from platformdirs import user_data_path

_FIELDS = {"lesson", "question", "attempt", "answer", "nonce", "locale"}
_MORE = {"confidence"}
_SECONDS = 10.0


class UnsentError(ValueError):
    """The file could not be read or written; the message names it."""


class Unsent:
    """Each is a dict of lesson, question, attempt, answer, nonce and locale, and of confidence where it was said."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or user_data_path("offload_lab") / "unsent.json"

    def all(self) -> list[dict[str, Any]]:
        """What is kept, oldest first. Raises UnsentError for a file that is damaged; it is left as it is."""
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        except (OSError, ValueError, RecursionError) as error:
            told = getattr(error, "strerror", None) or "it is damaged"
            raise UnsentError(f"{self.path} cannot be read ({told}); move it away, it may hold answers.") from None
        if not isinstance(content, list) or not all(map(_is_kept, content)):
            raise UnsentError(f"{self.path} cannot be read (it is damaged); move it away, it may hold answers.")
        return content

    def add(self, answer: dict[str, Any]) -> None:
        """Raises UnsentError where it cannot be kept."""
        self._change(lambda held: [*(one for one in held if one["nonce"] != answer["nonce"]), answer])

    def remove(self, nonce: str) -> None:
        """Raises UnsentError."""
        self._change(lambda held: [one for one in held if one["nonce"] != nonce])

    def _change(self, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self.path}.lock", timeout=_SECONDS):
                before = self.all()
                after = change(before)
                if after != before:
                    self._replace(after)
        except Timeout:
            raise UnsentError(f"{self.path} is held by another program.") from None
        except OSError as error:
            raise UnsentError(f"{self.path} was not written: {error.strerror or error}.") from None

    def _replace(self, content: list[dict[str, Any]]) -> None:
        beside = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}.part")
        try:
            with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                json.dump(content, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self.path)
        except OSError:
            beside.unlink(missing_ok=True)
            raise


def _is_kept(one: Any) -> bool:
    return isinstance(one, dict) and _FIELDS <= set(one) <= _FIELDS | _MORE
