"""Times of submission and due times, as the naive UTC that nbgrader's database holds. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from quizzes.say import _

_OFFSET = re.compile(r"\s*([+-]\d\d):?(\d\d)$")
_NAMED = re.compile(r"^(.*\d)\s+([A-Za-z][A-Za-z0-9_+\-/]*)$")
_DATE = re.compile(r"\d{4}-?(\d\d-?\d\d|W\d\d(-?\d)?|\d{3})")


@dataclass(frozen=True)
class Moment:
    """An instant as somebody wrote it."""

    when: datetime
    """With its zone."""
    zone: str
    """The zone as it was written: `Europe/Berlin`, `+09:00` or `UTC`."""
    text: str
    """As it was written."""
    note: str = ""
    """What has to be said about the reading; "" for nothing."""

    @property
    def utc(self) -> datetime:
        """Naive UTC, as nbgrader's database wants it."""
        return self.when.astimezone(UTC).replace(tzinfo=None)


def to_utc(text: str) -> datetime:
    """Naive UTC of `2026-03-29 23:59 Europe/Paris`, `… +0900`, ISO 8601 with offset or Z; without a zone it is UTC.

    The machine's own time zone plays no part. Raises ValueError.
    """
    when, zone, _name = _read(text)
    return _utc(text, when if when.tzinfo is not None else when.replace(tzinfo=zone or UTC))


def moment(text: str) -> Moment:
    """A time that an instructor set: it needs a time of day and a zone, and must exist in that zone. Raises ValueError.

    Of a time that the clocks show twice the later one is meant, and the note says so: nobody is late by a doubt.
    """
    try:
        when, zone, name = _read(text)
    except ValueError as error:
        told = _("{text!r} is no time ({why}); write for example 2026-12-24T23:59 Europe/Berlin")
        raise ValueError(told.format(text=text, why=error)) from None
    if _DATE.fullmatch(_NAMED.sub(r"\1", text.strip())):
        told = _("{text!r} has no time of day; write for example {text!r} with T23:59 after the day")
        raise ValueError(told.format(text=text.strip()))
    if when.tzinfo is None and zone is None:
        told = _("{text!r} has no time zone; write {text} Europe/Berlin, or another place's, or an offset: {text}+01:00")
        raise ValueError(told.format(text=text.strip()))
    note = ""
    if when.tzinfo is None and zone is not None:
        early, late = when.replace(tzinfo=zone, fold=0), when.replace(tzinfo=zone, fold=1)
        if _back(early) != when:
            first = _back(early)
            told = _(
                "{text!r} does not exist: the clocks of {zone} go forward over it; write {first}, or a time before the change"
            )
            raise ValueError(told.format(text=text.strip(), zone=name, first=first.isoformat(timespec="minutes")))
        if early.utcoffset() != late.utcoffset():
            told = _(
                "{text} comes twice in {zone}, where the clocks go back; the later one is meant (for the earlier write {other})"
            )
            other = f"{when.isoformat(timespec='minutes')}{early.strftime('%z')}"
            note = told.format(text=when.isoformat(timespec="minutes"), zone=name, other=other)
        when = late
    _utc(text, when)
    return Moment(when, name or ("UTC" if when.utcoffset() == timedelta(0) else offset_of(when)), text.strip(), note)


def _read(text: str) -> tuple[datetime, ZoneInfo | None, str]:
    """(the time, with its offset where one is written; the named zone; its name). Raises ValueError."""
    text = text.strip()
    zone: ZoneInfo | None = None
    name = ""
    named = _NAMED.match(text)
    if named and named[2] != "Z":
        text, name = named[1], named[2]
        try:
            zone = ZoneInfo(name)
        except (OSError, LookupError):  # ZoneInfoNotFoundError is a KeyError; a folder of zones is an OSError
            told = _("{name!r} is no time zone; write for example Europe/Paris or +0100")
            raise ValueError(told.format(name=name)) from None
    when = datetime.fromisoformat(_OFFSET.sub(r"\1:\2", text) if ":" in text else text)
    if when.tzinfo is not None and zone is not None:
        raise ValueError(_("{text!r} names an offset and a zone; write one of them").format(text=text))
    return when, zone, name


def _utc(text: str, when: datetime) -> datetime:
    try:
        return when.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise ValueError(_("{text!r} lies outside the calendar").format(text=text)) from None


def _back(when: datetime) -> datetime:
    """The clock of the same place at the same instant: another one for a time that the clocks leap over."""
    zone: tzinfo | None = when.tzinfo
    return when.astimezone(UTC).astimezone(zone).replace(tzinfo=None, fold=0)


def offset_of(when: datetime) -> str:
    """The offset of a time with a zone, as `+09:00`."""
    plain = when.strftime("%z")
    return ":".join(filter(None, (plain[:3], plain[3:5], plain[5:7])))
