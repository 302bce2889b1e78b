"""When an assignment is due and what being late costs: read, kept in the course folder, and said in words with the zone."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

from quizzes.nbgrader.times import Moment, moment, offset_of
from quizzes.say import _

FILE = "due.json"
_PENALTY = re.compile(r"(\d{1,3}(?:\.\d+)?)\s*%\s*(?:/|per|a|an)\s*(day|hour)")
_SECONDS = {"day": 86_400, "hour": 3_600}


class DueError(ValueError):
    """A due time or a penalty that cannot be used; the message says what to write."""


@dataclass(frozen=True)
class Penalty:
    """`percent` of the points earned for each `every` seconds that have begun; 0 is none. `text` is as it was written."""

    percent: float = 0.0
    every: int = 86_400
    text: str = "none"

    @property
    def words(self) -> str:
        if not self.percent:
            return _("being late costs nothing")
        if self.text == "zero":
            return _("late work earns nothing")
        if self.every == _SECONDS["hour"]:
            return _("being late costs {percent:g} % of the points earned for each hour begun").format(percent=self.percent)
        return _("being late costs {percent:g} % of the points earned for each day begun").format(percent=self.percent)


def penalty(text: str) -> Penalty:
    """`none`, `zero`, `10%/day`, `2.5%/hour`. Raises DueError."""
    plain = text.strip().lower()
    if plain == "none":
        return Penalty()
    if plain == "zero":
        # Any lateness is at least one begun unit, and all of the points are its price.
        return Penalty(100.0, _SECONDS["day"], "zero")
    found = _PENALTY.fullmatch(plain)
    if found is None or float(found[1]) > 100:
        raise DueError(_("{text!r} is no penalty for being late: write none, zero, or for example 10%/day").format(text=text))
    return Penalty(float(found[1]), _SECONDS[found[2]], f"{found[1]}%/{found[2]}")


@dataclass(frozen=True)
class Due:
    """`moment` is None where an assignment has no due time."""

    moment: Moment | None = None
    penalty: Penalty = Penalty()

    @property
    def words(self) -> str:
        if self.moment is None:
            return _("No due time is set.")
        return _("Due {when}; {penalty}.").format(when=shown(self.moment.when, self.moment.zone), penalty=self.penalty.words)


def due(text: str) -> Moment | None:
    """A due time as an instructor writes it; None for `none`. Raises DueError that says what to add."""
    if text.strip().lower() == "none":
        return None
    try:
        return moment(text)
    except ValueError as error:
        raise DueError(_("--due: {why}").format(why=error)) from None


def shown(when: datetime, zone: str) -> str:
    """An instant on the clock of `zone`, with its offset: `2026-12-24 23:59 +01:00 (Europe/Berlin)`."""
    local = when.astimezone(zone_of(zone))
    clock = local.strftime("%Y-%m-%d %H:%M:%S" if local.second else "%Y-%m-%d %H:%M")
    offset = offset_of(local)
    return f"{clock} UTC" if zone == "UTC" else f"{clock} {offset}" + ("" if zone == offset else f" ({zone})")


def zone_of(name: str) -> timezone | ZoneInfo:
    if name == "UTC":
        return UTC
    if re.fullmatch(r"[+-]\d\d:\d\d(:\d\d)?", name):
        hours, minutes = int(name[1:3]), int(name[4:6])
        return timezone((1 if name[0] == "+" else -1) * timedelta(hours=hours, minutes=minutes))
    return ZoneInfo(name)


def span(seconds: float) -> str:
    """A length of time in words, its two largest units: `2 days 3 hours`, `40 seconds`."""
    whole = max(1, int(seconds))
    parts = []
    units = (
        (86_400, _("1 day"), _("{count} days")),
        (3_600, _("1 hour"), _("{count} hours")),
        (60, _("1 minute"), _("{count} minutes")),
        (1, _("1 second"), _("{count} seconds")),
    )
    for size, one, many in units:
        count, whole = divmod(whole, size)
        if count:
            parts.append(one if count == 1 else many.format(count=count))
        elif parts:
            break
    return " ".join(parts[:2])


def lateness(rule: Due, handed: datetime | None, until: datetime, points: float) -> list[str]:
    """What a student is told about the time: nothing where it was in time. `handed` and `until` (the student's own due time)
    are naive UTC, `points` what was taken off."""
    if rule.moment is None:
        return []
    if handed is None:
        return [_("no time of submission is known; it counts as on time")]
    late = (handed - until).total_seconds()
    if late <= 0:
        return []
    told = _("handed in {late} late: {when}, due {due}; {points:g} points were taken off")
    if not points:
        told = _("handed in {late} late: {when}, due {due}; nothing was taken off")
    zone = rule.moment.zone
    when, due = shown(handed.replace(tzinfo=UTC), zone), shown(until.replace(tzinfo=UTC), zone)
    return [told.format(late=span(late), when=when, due=due, points=points)]


def load(course: Path, assignment: str) -> Due:
    """What was kept for an assignment; nothing is due where nothing was. Raises DueError for a file that is damaged."""
    entry = _entries(course / FILE).get(assignment)
    if entry is None:
        return Due()
    try:
        return Due(None if entry["due"] is None else moment(entry["due"]), penalty(entry["late"] or "none"))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        told = _("{path} is damaged ({why}); say --due and --late again after moving it away")
        raise DueError(told.format(path=course / FILE, why=error)) from None


def keep(course: Path, assignment: str, text: str | None, late: str) -> None:
    """Keep what was written for an assignment. Raises DueError, OSError."""
    path = course / FILE
    entries = _entries(path) | {assignment: {"due": text, "late": late}}
    beside = path.with_name(f".{FILE}.{os.getpid()}.part")
    beside.write_text(json.dumps(entries, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(beside, path)


def _entries(path: Path) -> dict[str, dict[str, str | None]]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise DueError(_("{path} cannot be read ({why}); correct it or move it away").format(path=path, why=error)) from None
    if not isinstance(content, dict):
        raise DueError(_("{path} cannot be read ({why}); correct it or move it away").format(path=path, why=_("no object")))
    return content
