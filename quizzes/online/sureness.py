"""How sure a learner was of the answers that the service judged, as `quizzes.calibration` counts it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quizzes.online.sheet import Sheet, is_sure
from quizzes.say import _


def complaint(percent: Any) -> str:
    """Why this is no confidence, in a sentence; "" where it is one."""
    if is_sure(percent):
        return ""
    return _("Not noted: {percent!r} is not a number from 0 to 100.").format(percent=percent)


def entries(sheets: Iterable[Sheet]) -> list[dict[str, Any]]:
    """Every judged answer with a confidence, each once: a second attempt does not wipe out what was said of the first.

    What was known counts, so the share is the one before hints; of an answer without hints it follows from the receipt.
    """
    found: dict[str, dict[str, Any]] = {}
    for sheet in sheets:
        for reply in sheet.replies.values():
            sure, earned = reply.get("confidence"), share_before_hints(reply)
            if is_sure(sure):
                found[reply["nonce"]] = {"confidence": sure, "share": earned}
    return list(found.values())


def share_before_hints(reply: dict[str, Any]) -> float:
    """In [0, 1], of a judged answer whose score its receipt proves."""
    share = reply["score"] / reply["max_score"] if reply["max_score"] else 1.0
    earned = reply.get("earned")
    if not reply.get("hints") or isinstance(earned, bool) or not isinstance(earned, int | float):
        return share
    return float(earned) if share <= earned <= 1 else share
