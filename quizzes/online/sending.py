"""The thread that talks to the service, so that neither a click nor a cell waits for it.

It fetches the questions, sends what waits, fetches again where an answer was judged (the next attempt has other numbers), and
then sleeps until it is woken. Where the service is away it comes back by itself, less and less often, at most once a minute.
An answer is sent with the nonce that it got when it was given: however often it is sent, it counts once.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any, Protocol

from quizzes.say import _
from quizzes.service.client import Away, Client, Refused, Unknown, Unreached

PAUSES = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Seconds between two tries while the service is away."""
FINAL = ("stale", "settled", "no-attempts", "nonce-used", "changed", "no-question", "no-answer", "malformed", "too-large")
"""Refusals of this very answer. Any other (a token without the right, an address that is another program's) may pass: the
answer waits on."""


class Desk(Protocol):
    """What the thread works on; each method locks for itself."""

    def client(self) -> Client:
        """Raises Away."""
        ...

    def fetch(self, client: Client) -> dict[str, Any]: ...
    def arrived(self, content: dict[str, Any]) -> None: ...
    def next(self) -> dict[str, Any] | None:
        """An answer to send now."""
        ...

    def outcome(self, entry: dict[str, Any], reply: dict[str, Any]) -> bool:
        """Keeps a reply; whether it was one."""
        ...

    def refused(self, entry: dict[str, Any], error: Refused) -> None: ...
    def next_hint(self) -> dict[str, Any] | None:
        """A hint to ask for now. Where the service is away, `away` gives it up."""
        ...

    def hinted(self, content: dict[str, Any], reply: dict[str, Any]) -> bool:
        """Keeps a hint; False where the questions are to be fetched to tell."""
        ...

    def no_hint(self, content: dict[str, Any], why: str) -> None: ...
    def unreached(self, entry: dict[str, Any]) -> None:
        """The answer has not left this computer."""
        ...

    def away(self, why: str) -> None:
        """Why nothing can be sent now; "" where all is sent."""
        ...


class Sender:
    """`start` begins the thread at the first need. `pause` waits, at most so many seconds, for the event that it is given."""

    def __init__(self, desk: Desk, pause: Callable[[threading.Event, float | None], object] | None = None) -> None:
        self._desk = desk
        self._pause = pause or (lambda event, seconds: event.wait(seconds))
        self._wake, self._lock = threading.Event(), threading.Lock()
        self._thread: threading.Thread | None = None
        self._stale, self._failed, self._ended = True, 0, False

    def wake(self) -> None:
        """Look again now: there is something to send, or a new token."""
        self._wake.set()
        with self._lock:
            if not self._ended and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._work, name="online quiz", daemon=True)
                self._thread.start()

    def load(self) -> None:
        """Fetch the questions again."""
        self._stale = True
        self.wake()

    def end(self) -> None:
        """For good. What is being sent now is still heard out, by nobody who waits for it."""
        self._ended = True
        self._wake.set()

    def _work(self) -> None:
        while not self._ended:
            self._wake.clear()
            try:
                self._round()
            except Unknown as error:
                self._trouble(_("{why} Write quiz.log_in() to give a token.").format(why=_sentence(error)))
            except Away as error:
                self._trouble(_sentence(error))
            except Refused as error:
                self._trouble(_("The service refuses: {why}").format(why=_sentence(error)))
            else:
                self._failed = 0
                if not self._wake.is_set():
                    self._desk.away("")
                    self._pause(self._wake, None)
                continue
            self._pause(self._wake, PAUSES[min(self._failed, len(PAUSES)) - 1] * random.uniform(0.8, 1.2))

    def _round(self) -> None:
        client = self._desk.client()
        while not self._ended:
            if self._stale:
                self._desk.arrived(self._desk.fetch(client))
                self._stale = False
            wanted = self._desk.next_hint()
            if wanted is not None:
                self._hint(wanted)
                continue
            entry = self._desk.next()
            if entry is None:
                return
            try:
                client = self._desk.client()  # anew: the token may have been changed since the questions were fetched
            except Away:
                self._desk.unreached(entry)
                raise
            try:
                reply = client.send(entry["lesson"], entry["content"])
            except (Unreached, Unknown):
                self._desk.unreached(entry)
                raise
            except Refused as error:
                if error.code not in FINAL:
                    raise
                # Perhaps it is refused because it is recorded already: the service's own list says so.
                self._desk.arrived(self._desk.fetch(client))
                self._desk.refused(entry, error)
                continue
            self._stale = self._desk.outcome(entry, reply)

    def _hint(self, wanted: dict[str, Any]) -> None:
        """Raises Away."""
        client = self._desk.client()
        try:
            reply = client.hint(wanted["lesson"], wanted["content"])
        except Refused as error:
            self._desk.no_hint(wanted["content"], _sentence(error))
            self._stale = True  # what was known of the question is old
        else:
            if not self._desk.hinted(wanted["content"], reply):
                self._stale = True

    def _trouble(self, why: str) -> None:
        self._failed += 1
        self._desk.away(why)


def _sentence(error: Exception) -> str:
    said = str(error).strip() or type(error).__name__
    return said if said.endswith((".", "!", "?")) else said + "."
