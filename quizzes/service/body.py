"""Reads what a client sends, with a limit on everything: bytes, seconds, depth, length of texts."""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quizzes.certificates import strict_json
from quizzes.say import _
from quizzes.service.errors import ServiceError
from quizzes.service.settings import LOCALES, MOST_ATTEMPTS

if TYPE_CHECKING:
    from starlette.requests import Request

LARGEST = 16 * 1024
LONGEST_TEXT = 2000
MOST_PARTS = 100
_SECONDS = 20.0
NONCE = r"[A-Za-z0-9_-]{8,64}"
_NONCE = re.compile(NONCE)
EDITION = r"[0-9a-f]{0,16}"
_EDITION = re.compile(EDITION)
_NAME = re.compile(r"[A-Za-z]\w{0,30}", re.ASCII)
_FIELDS = {"question", "attempt", "answer", "nonce", "locale", "edition", "confidence"}
_HINT_FIELDS = {"question", "attempt", "hint", "cost", "locale", "edition"}
MOST_HINTS = 100


@dataclass(frozen=True)
class Sent:
    """An answer as it was sent: the name of the question, which of its attempts (from 1), the answer, the client's nonce."""

    question: str
    attempt: int
    answer: Any
    nonce: str
    locale: str
    fingerprint: str
    """Of all of it: a repeat with the same nonce has the same one."""
    edition: str = ""
    """Of the question as the learner read it, where the client tells."""
    confidence: float | None = None
    """In per cent, 0 … 100: how sure the learner was, where that was said."""


@dataclass(frozen=True)
class SentHint:
    """A hint that is asked for: the name of the question, which of its attempts, the number of the hint (from 1) and the share
    of the points that the learner was told it costs."""

    question: str
    attempt: int
    hint: int
    cost: float
    locale: str
    edition: str = ""


async def read(request: Request) -> bytes:
    """The body. Raises ServiceError 413 for one that is too large, 408 for one that does not come, 415 for another type."""
    kind = request.headers.get("content-type", "application/json").split(";")[0].strip().lower()
    if kind != "application/json":
        raise ServiceError(415, "not-json", _("Send JSON, with Content-Type: application/json."))
    told = request.headers.get("content-length", "0")
    if not told.isascii() or not told.isdigit() or len(told) > 9 or int(told) > LARGEST:
        raise _too_large()
    data = bytearray()
    try:
        async with asyncio.timeout(_SECONDS):
            async for chunk in request.stream():
                data += chunk
                if len(data) > LARGEST:
                    raise _too_large()
    except TimeoutError:
        raise ServiceError(408, "too-slow", _("The answer did not arrive in time; send it again.")) from None
    return bytes(data)


def _too_large() -> ServiceError:
    return ServiceError(413, "too-large", _("The answer is too large to be one. No attempt was used."))


def parse(data: bytes) -> Sent:
    """An answer of strict JSON. Raises ServiceError 400 for what is not JSON, 422 for what is no answer."""
    content, canonical = _read_json(data)
    if not isinstance(content, dict) or not {"question", "attempt", "answer", "nonce"} <= set(content) <= _FIELDS:
        said = _(
            "Send an object with question, attempt, answer and nonce; locale, edition and confidence may be added, "
            "and nothing else."
        )
        raise _no(said)
    question, attempt, locale, edition = _place(content)
    nonce = content["nonce"]
    if not isinstance(nonce, str) or not _NONCE.fullmatch(nonce):
        raise _no(_("nonce: 8 to 64 letters, digits, - or _ are needed, chosen anew for each answer."))
    if not _is_answer(content["answer"]):
        raise _no(_("answer: text, a number, a list of texts or an object of texts is needed, and a short one."))
    confidence = content.get("confidence")
    if "confidence" in content and not _is_number(confidence, 100):
        raise _no(_("confidence: a number from 0 to 100 is needed, in per cent, or nothing."))
    fingerprint = "sha256:" + hashlib.sha256(canonical).hexdigest()
    return Sent(question, attempt, content["answer"], nonce, locale, fingerprint, edition, confidence)


def parse_hint(data: bytes) -> SentHint:
    """What asks for a hint, of strict JSON. Raises ServiceError 400 for what is not JSON, 422 for what asks for none."""
    content, _canonical = _read_json(data)
    if not isinstance(content, dict) or not {"question", "attempt", "hint", "cost"} <= set(content) <= _HINT_FIELDS:
        said = _("Send an object with question, attempt, hint and cost; locale and edition may be added, and nothing else.")
        raise _no(said)
    question, attempt, locale, edition = _place(content)
    hint, cost = content["hint"], content["cost"]
    if type(hint) is not int or not 1 <= hint <= MOST_HINTS:
        raise _no(_("hint: the number of a hint is needed, from 1 on."))
    if not _is_number(cost, 1):
        raise _no(_("cost: the share of the points is needed that the service said a hint costs, from 0 to 1."))
    return SentHint(question, attempt, hint, float(cost), locale, edition)


def _read_json(data: bytes) -> tuple[Any, bytes]:
    """(what it says, its canonical form). Raises ServiceError 400."""
    try:
        content = strict_json.loads(data)
        return content, strict_json.canonical(content)
    except strict_json.MalformedJsonError:
        raise ServiceError(
            400,
            "malformed",
            _("This is not JSON that can be recorded: UTF-8, no NaN, no number beyond 2**53 (write it as text), 32 levels."),
        ) from None


def _place(content: dict[str, Any]) -> tuple[str, int, str, str]:
    """(question, attempt, locale, edition). Raises ServiceError 422."""
    question, attempt = content["question"], content["attempt"]
    locale, edition = content.get("locale", "en"), content.get("edition", "")
    if not isinstance(question, str) or not _NAME.fullmatch(question):
        raise _no(_("question: the name of a question is needed, for example q1."))
    if type(attempt) is not int or not 1 <= attempt <= MOST_ATTEMPTS:
        raise _no(_("attempt: a whole number from 1 on is needed."))
    if locale not in LOCALES:
        raise _no(_("locale: en, fr or ko is needed."))
    if not isinstance(edition, str) or not _EDITION.fullmatch(edition):
        raise _no(_("edition: what the service said with the question is needed, or nothing."))
    return question, attempt, locale, edition


def _is_number(value: Any, most: int) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most


def _no(message: str) -> ServiceError:
    return ServiceError(422, "no-answer", message)


def _is_answer(answer: Any) -> bool:
    parts = [answer]
    if isinstance(answer, list):
        parts = answer
    elif isinstance(answer, dict):
        parts = [*answer, *answer.values()]
    if len(parts) > 2 * MOST_PARTS:
        return False
    return all(isinstance(part, (str, int, float)) and len(str(part)) <= LONGEST_TEXT for part in parts)
