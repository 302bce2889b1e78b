"""What the service refuses, as one small JSON object: {"error": a word for programs, "message": a sentence for a person}. Pure.

Nothing that was sent comes back in a message: what was sent may not be text at all.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any


class StartError(ValueError):
    """The service cannot be started; the message says what is wrong with which path or option, and what to do."""


@dataclass
class ServiceError(Exception):
    """A request that is refused. Whatever is refused took no attempt, unless the message says that it is recorded."""

    status: int
    code: str
    message: str
    retry_after: float | None = None
    """Seconds after which to try again."""

    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"Retry-After": str(max(1, math.ceil(self.retry_after)))}

    def body(self) -> bytes:
        return encode({"error": self.code, "message": self.message})


def encode(content: Any) -> bytes:
    """JSON in ASCII: any text can be written in it. Raises ValueError for NaN and infinities."""
    return json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")
