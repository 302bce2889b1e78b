"""Asks the service from a notebook. Standard library only; short waits; an answer is kept until it is acknowledged.

An answer gets its nonce once, is written down, sent, sent again with the same nonce where no reply came, and struck out when
the service has said what became of it. So it is counted once however often the connection breaks, and the notebook with it.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import secrets
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from quizzes.answers import notebook_path
from quizzes.receipts_file import RECEIPTS, append
from quizzes.say import _
from quizzes.service import connection as connections
from quizzes.service.unsent import Unsent, UnsentError

CONNECT_SECONDS, ANSWER_SECONDS = 3.0, 8.0
TRIES = 3
_LARGEST = 8 << 20
_AGAIN = (408, 425, 429, 500, 502, 503, 504)
"""Statuses that say nothing about the answer itself."""


class Away(Exception):
    """The service can't be reached or can't answer now; the message says so and what to do."""


class Unreached(Away):
    """No connection came about: whatever was to be sent has not reached the service."""


class Unknown(Away):
    """The service does not take this token. Nothing is said of an answer."""


class Refused(Exception):
    """The service answered and did not count this; `code` is its word for why, the message its sentence."""

    def __init__(self, code: str, message: str, status: int) -> None:
        super().__init__(message)
        self.code, self.status = code, status


@dataclass(frozen=True)
class Kept:
    """An answer that waits to be sent. `str()` says so."""

    question: str
    why: str

    def __str__(self) -> str:
        told = _(
            "Your answer to {question} is kept on this computer and not judged yet: {why} It is sent with your next answer."
        )
        return told.format(question=self.question, why=self.why)


@dataclass
class Client:
    """`url` without a slash at its end. `sleep` waits between tries. `receipts` is the file into which receipts are written, a
    line each, to be handed in beside the notebook; None: they are only in the replies."""

    url: str
    token: str = field(repr=False)
    unsent: Unsent = field(default_factory=Unsent)
    sleep: Callable[[float], None] = time.sleep
    receipts: Path | None = None

    @classmethod
    def found(cls, environ: Mapping[str, str] = os.environ) -> Client:
        """The service that the environment names: OFFLOAD_QUIZ_URL with the Hub's token, else a connection file, else that of
        the lab. Receipts go into `receipts.txt` beside the notebook. Raises Away where there is none."""
        path = notebook_path()
        receipts = (path.parent if path is not None else Path.cwd()) / RECEIPTS
        url = environ.get("OFFLOAD_QUIZ_URL", "").rstrip("/")
        token = environ.get("OFFLOAD_QUIZ_TOKEN") or environ.get("JUPYTERHUB_API_TOKEN", "")
        if url and token:
            return cls(url, token, receipts=receipts)
        from quizzes.service.settings import folder

        place = Path(environ.get(connections.VARIABLE) or folder() / "connection.json")
        known = connections.read(place)
        if known is None:
            raise Away(_("The service that judges graded answers is not running here. Practice questions work without it."))
        return cls(known.url.rstrip("/"), known.token, receipts=receipts)

    def __post_init__(self) -> None:
        self.token = self.token.strip()
        if not self.token or not all("!" <= letter <= "~" for letter in self.token):
            # http.client would show it in its error.
            raise Unknown(_("The token for the service has a character that no token has, or is empty; give it again."))

    def lesson(self, lesson: str, locale: str = "en") -> dict[str, Any]:
        """The questions of a lesson as they are to be answered next, and the answers recorded. Raises Away or Refused."""
        return self._ask("GET", f"/lessons/{quote(lesson, safe='')}?locale={quote(locale, safe='')}")

    def collect(self, lesson: str) -> int:
        """Write the receipts of all recorded answers of a lesson that are not in the file yet; return how many these were.

        For a file that was lost, or answers given elsewhere. Raises Away or Refused, OSError where it cannot be written.
        """
        if self.receipts is None:
            raise Refused("no-file", _("This client was given no file for receipts."), 0)
        recorded = self.lesson(lesson).get("answers")
        texts = [one["receipt"] for one in recorded or [] if isinstance(one, dict) and isinstance(one.get("receipt"), str)]
        return append(self.receipts, texts)

    def answer(
        self, lesson: str, question: str, attempt: int, answer: Any, locale: str = "en", confidence: float | None = None
    ) -> dict[str, Any] | Kept:
        """The reply of the service, or Kept where it is away. `confidence`: how sure one is, in per cent. Raises Refused where
        it is not counted, UnsentError where the service is away and the answer cannot be kept."""
        content = {
            "question": question,
            "attempt": attempt,
            "answer": answer,
            "nonce": secrets.token_urlsafe(18),
            "locale": locale,
        }
        if confidence is not None:
            content["confidence"] = confidence
        _encoded(content)
        entry = content | {"lesson": lesson}
        try:
            self.unsent.add(entry)
            kept: UnsentError | None = None
        except UnsentError as error:
            kept = error  # it matters only if the service is away as well
        try:
            reply = self._send(entry)
        except Away as error:
            if kept is not None:
                raise kept from None
            return Kept(question, str(error))
        except Refused:
            self._strike_out(entry)
            raise
        self._strike_out(entry)
        return self._written(reply)

    def _written(self, reply: dict[str, Any]) -> dict[str, Any]:
        """The reply, its receipt written to the file; where that fails the reply says so, and nothing is lost."""
        receipt = reply.get("receipt")
        if self.receipts is None or not isinstance(receipt, str):
            return reply
        try:
            append(self.receipts, [receipt])
        except OSError as error:
            told = _(
                "The receipt was not written to {path} ({why}). The service has it: say service.collect({lesson!r}) later."
            )
            said = told.format(path=self.receipts, why=_short(error), lesson=reply.get("lesson"))
            return reply | {"receipt_note": said}
        return reply

    def send_again(self) -> list[tuple[dict[str, Any], dict[str, Any] | Refused]]:
        """Sends what was kept, oldest first: (the answer, its reply or why it isn't counted) of each that the service has
        told about. Raises Away when it is away; UnsentError for a file that can't be read."""
        done: list[tuple[dict[str, Any], dict[str, Any] | Refused]] = []
        for entry in self.unsent.all():
            outcome: dict[str, Any] | Refused
            try:
                outcome = self._send(entry)
            except Refused as refused:
                outcome = refused
            except Away:
                if done:
                    break  # what was told already is not lost
                raise
            self._strike_out(entry)
            done.append((entry, outcome if isinstance(outcome, Refused) else self._written(outcome)))
        return done

    def send(self, lesson: str, content: dict[str, Any]) -> dict[str, Any]:
        """Sends an answer of which the caller keeps account: question, attempt, answer, nonce, locale, and edition and
        confidence where they are known. Raises Away, after which the same may be sent again, or Refused."""
        _encoded(content)
        return self._send(content | {"lesson": lesson})

    def hint(self, lesson: str, content: dict[str, Any]) -> dict[str, Any]:
        """Asks for a hint: question, attempt, hint (its number from 1), cost (the share of the points that the service says it
        takes), locale, and edition where it is known. Raises Away, after which it may be asked for again and is paid for once,
        or Refused, where nothing was taken."""
        return self._ask("POST", f"/lessons/{quote(lesson, safe='')}/hints", content)

    def _strike_out(self, entry: dict[str, Any]) -> None:
        try:
            self.unsent.remove(entry["nonce"])
        except UnsentError:
            return  # sent once more some day, with the same nonce, it is counted once

    def _send(self, entry: dict[str, Any]) -> dict[str, Any]:
        content = {name: value for name, value in entry.items() if name != "lesson"}
        return self._ask("POST", f"/lessons/{quote(entry['lesson'], safe='')}/answers", content)

    def _ask(self, method: str, path: str, content: Any = None) -> dict[str, Any]:
        """Up to TRIES times. A refusal that speaks of now and not of the answer is Away."""
        body = None if content is None else _encoded(content)
        said, reached = "", False
        for tries in range(TRIES):
            try:
                status, again, reply = self._once(method, path, body)
            except (OSError, http.client.HTTPException, ValueError) as error:
                reached = reached or not isinstance(error, _NoConnection)
                wait, said = 0.2 * 2**tries, _("The service cannot be reached ({error}).").format(error=_short(error))
            else:
                reached = True
                if status == 200:
                    return reply
                message = str(reply.get("message", f"HTTP {status}"))
                if status == 401:
                    # Its own token may be new after a restart: nothing is said of the answer.
                    raise Unknown(message)
                if status not in _AGAIN:
                    raise Refused(str(reply.get("error", "refused")), message, status)
                wait, said = again, message
            if tries + 1 < TRIES:
                if wait > 5:
                    break
                self.sleep(wait * random.uniform(1.0, 1.5))  # many that failed together do not come back together
        raise Away(said) if reached else Unreached(said)

    def _once(self, method: str, path: str, body: bytes | None) -> tuple[int, float, dict[str, Any]]:
        """(status, seconds to wait, the object). Raises OSError, HTTPException or ValueError for anything else."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("its address is not an http address")
        if parts.scheme == "https":
            made: http.client.HTTPConnection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=CONNECT_SECONDS, context=ssl.create_default_context()
            )
        else:
            made = http.client.HTTPConnection(parts.hostname, parts.port, timeout=CONNECT_SECONDS)
        try:
            try:
                made.connect()
            except OSError as error:
                raise _NoConnection(_short(error)) from None
            made.sock.settimeout(ANSWER_SECONDS)
            headers = {
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
                "Accept": "application/json",
            }
            made.request(method, parts.path + path, body, headers)
            answer = made.getresponse()
            data = answer.read(_LARGEST + 1)
            if len(data) > _LARGEST:
                raise ValueError("its answer is too large")
            try:
                content = json.loads(data)
            except (ValueError, RecursionError):
                raise ValueError(_("what answers there is not this service")) from None
            if not isinstance(content, dict):
                raise ValueError("its answer is not an object")
            told = answer.getheader("Retry-After", "1")
            return answer.status, float(told) if told.isascii() and told.isdigit() else 1.0, content
        finally:
            made.close()


class _NoConnection(OSError):
    pass


def _encoded(content: Any) -> bytes:
    """Raises Refused for what is not JSON: sets, NaN, objects of the notebook."""
    try:
        return json.dumps(content, allow_nan=False).encode("ascii")
    except (TypeError, ValueError, RecursionError):
        raise Refused("no-answer", _("This is not an answer: write text, a number, a list or a dict of texts."), 422) from None


def _short(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        told = error.verify_message
        if "expired" in told or "not yet valid" in told:
            now = time.strftime("%Y-%m-%d %H:%M")
            return _("its certificate is not valid at {now}, which is the time of this computer: look at its clock").format(
                now=now
            )
        return _("its certificate is not trusted here: {why}").format(why=told)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
