"""Whether a judged answer that a notebook holds is what the service signed. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from quizzes.receipts import ReceiptError, answer_hash, check
from quizzes.say import _

_SAME = ("run", "variant", "attempt", "at", "nonce", "score", "max_score")


def complaint(reply: dict[str, Any], run: str, issuers: Iterable[str]) -> str:
    """Why `reply` is not what its receipt says; "" where it is."""
    try:
        claims = check(str(reply.get("receipt")), set(issuers))
        hashed = answer_hash(reply.get("answer"))
    except ReceiptError:
        return _("its receipt is damaged, was edited or is of another service")
    if claims.hints != reply.get("hints", 0):
        return _("it was edited: its receipt says something else")
    if claims.run != run or claims.answer_hash != hashed or any(reply.get(name) != getattr(claims, name) for name in _SAME):
        return _("it was edited: its receipt says something else")
    return ""


def clock_off(entry: dict[str, Any] | None, reply: dict[str, Any]) -> float:
    """Seconds by which the clocks of computer and service differ at least; 0 or less where nothing speaks against either.

    An answer (`entry`; None where it is not known) is judged after it was given and before its reply is read.
    """
    if entry is None:
        return 0.0
    judged = datetime.fromisoformat(reply["at"])
    given, now = datetime.fromisoformat(entry["at"]), datetime.now(UTC)
    return max((given - judged).total_seconds(), (judged - now).total_seconds())
