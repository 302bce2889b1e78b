"""How often one learner may ask: a bucket of `burst` tokens that fills with `rate` tokens a minute. Pure but for its memory."""

from __future__ import annotations

import time
from collections.abc import Callable

from quizzes.say import _
from quizzes.service.errors import ServiceError

_MOST = 100_000


class Limits:
    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._a_second, self._burst, self._clock = rate / 60, float(burst), clock
        self._held: dict[str, tuple[float, float]] = {}

    def take(self, learner: str) -> None:
        """Takes a token. Raises ServiceError 429 with the seconds until there is one."""
        now = self._clock()
        tokens, since = self._held.get(learner, (self._burst, now))
        tokens = min(self._burst, tokens + (now - since) * self._a_second)
        if tokens < 1:
            wait = (1 - tokens) / self._a_second
            raise ServiceError(429, "too-many", _("Too many answers at once; wait a moment. No attempt was used."), wait)
        if len(self._held) >= _MOST and learner not in self._held:
            self._forget(now)
        self._held[learner] = (tokens - 1, now)

    def _forget(self, now: float) -> None:
        """Drops the learners whose buckets are full again, for whom nothing is to be remembered."""
        full = self._burst / self._a_second
        self._held = {name: held for name, held in self._held.items() if now - held[1] < full}
