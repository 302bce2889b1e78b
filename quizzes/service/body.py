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
_FIELDS = {"question", "attempt", "answer", "nonce", "locale", "edition"}


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
    try:
        content = strict_json.loads(data)
        canonical = strict_json.canonical(content)
    except strict_json.MalformedJsonError:
        raise ServiceError(
            400,
            "malformed",
            _("This is not JSON that can be recorded: UTF-8, no NaN, no number beyond 2**53 (write it as text), 32 levels."),
        ) from None
    if not isinstance(content, dict) or not {"question", "attempt", "answer", "nonce"} <= set(content) <= _FIELDS:
        said = _("Send an object with question, attempt, answer and nonce; locale and edition may be added, and nothing else.")
        raise _no(said)
    question, attempt, nonce = content["question"], content["attempt"], content["nonce"]
    locale = content.get("locale", "en")
    if not isinstance(question, str) or not _NAME.fullmatch(question):
        raise _no(_("question: the name of a question is needed, for example q1."))
    if type(attempt) is not int or not 1 <= attempt <= MOST_ATTEMPTS:
        raise _no(_("attempt: a whole number from 1 on is needed."))
    if not isinstance(nonce, str) or not _NONCE.fullmatch(nonce):
        raise _no(_("nonce: 8 to 64 letters, digits, - or _ are needed, chosen anew for each answer."))
    if locale not in LOCALES:
        raise _no(_("locale: en, fr or ko is needed."))
    edition = content.get("edition", "")
    if not isinstance(edition, str) or not _EDITION.fullmatch(edition):
        raise _no(_("edition: what the service said with the question is needed, or nothing."))
    if not _is_answer(content["answer"]):
        raise _no(_("answer: text, a number, a list of texts or an object of texts is needed, and a short one."))
    fingerprint = "sha256:" + hashlib.sha256(canonical).hexdigest()
    return Sent(question, attempt, content["answer"], nonce, locale, fingerprint, edition)


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
