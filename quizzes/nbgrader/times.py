"""Times of submission and due times, as the naive UTC that nbgrader's database holds."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

_OFFSET = re.compile(r"\s*([+-]\d\d):?(\d\d)$")
_NAMED = re.compile(r"^(.*\d)\s+([A-Za-z][A-Za-z0-9_+\-/]*)$")


def to_utc(text: str) -> datetime:
    """Naive UTC of `2026-03-29 23:59 Europe/Paris`, `… +0900`, ISO 8601 with offset or Z; without a zone it is UTC.

    The machine's own time zone plays no part. Raises ValueError.
    """
    text = text.strip()
    zone: ZoneInfo | None = None
    named = _NAMED.match(text)
    if named and named[2] != "Z":
        text = named[1]
        try:
            zone = ZoneInfo(named[2])
        except (OSError, LookupError):  # ZoneInfoNotFoundError is a KeyError; a folder of zones is an OSError
            raise ValueError(f"{named[2]!r} is no time zone; write for example Europe/Paris or +0100") from None
    when = datetime.fromisoformat(_OFFSET.sub(r"\1:\2", text) if ":" in text else text)
    if when.tzinfo is None:
        when = when.replace(tzinfo=zone or UTC)
    elif zone is not None:
        raise ValueError(f"{text!r} names an offset and a zone; write one of them")
    try:
        return when.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise ValueError(f"{text!r} lies outside the calendar") from None
