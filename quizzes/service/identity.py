"""Who asks. Locally and in a small class by tokens in a file that only its owner reads; behind JupyterHub see `hub.py`."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from quizzes.nbgrader.roster import is_safe
from quizzes.say import _
from quizzes.service.errors import ServiceError, StartError

if TYPE_CHECKING:
    from starlette.requests import Request

_LONGEST = 1000
_SHORTEST = 20


class People(Protocol):
    async def who(self, request: Request) -> str:
        """The learner who sends `request`. Raises ServiceError 401 or 403, or 503 where it cannot be told now."""
        ...

    async def close(self) -> None: ...


def token_of(request: Request) -> str:
    """The token of `Authorization: Bearer …` (or `token …`, as JupyterHub writes it). Raises ServiceError 401."""
    kind, _blank, token = request.headers.get("authorization", "").strip().partition(" ")
    token = token.strip()
    if kind.lower() not in ("bearer", "token") or not token or len(token) > _LONGEST:
        raise unknown()
    return token


def unknown() -> ServiceError:
    return ServiceError(401, "unknown", _("The service does not know you: send a valid token. Nothing was recorded."))


def digest(token: str) -> str:
    """What is kept of a token. Looking up a digest tells nothing by the time that it takes."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class Tokens:
    """One token a learner. Raises StartError for an id that cannot name a folder, a short token, or one given twice."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        """`tokens`: token -> learner."""
        for token, learner in tokens.items():
            if not is_safe(learner):
                raise StartError(f"{learner!a} is no id of a learner: letters, digits, _ @ . - and spaces may be in it.")
            if len(token) < _SHORTEST:
                raise StartError(f"The token of {learner!a} has {len(token)} characters; {_SHORTEST} are needed.")
        self._learner = {digest(token): learner for token, learner in tokens.items()}

    async def who(self, request: Request) -> str:
        learner = self._learner.get(digest(token_of(request)))
        if learner is None:
            raise unknown()
        return learner

    async def close(self) -> None:
        """Nothing is held open."""


def read_tokens(path: Path) -> Tokens:
    """Lines of `token learner`; empty ones and those that begin with # count for nothing.

    Raises StartError naming the line, and for a file that others can read.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(f"{path}: the tokens cannot be read ({getattr(error, 'strerror', None) or error}).") from None
    if os.name == "posix" and mode & 0o077:
        raise StartError(f"{path}: other users of this machine may read these tokens (mode {mode:o}). Say chmod 600 {path}.")
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        token, _blank, learner = line.strip().partition(" ")
        if not learner.strip():
            raise StartError(f"{path}, line {number}: a line has a token, a space and the id of a learner.")
        if token in found:
            raise StartError(f"{path}, line {number}: this token stands in two lines; each learner needs one of their own.")
        found[token] = learner.strip()
    if not found:
        raise StartError(f"{path}: there is no token in it.")
    return Tokens(found)


def new_token() -> str:
    return secrets.token_urlsafe(32)
