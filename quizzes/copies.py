"""Copies of one answer: which replaced which, and which stand against each other. Pure.

An entry's "past" are the times of the entries that it replaced. A copy whose time is in another's past is its history and is
dropped; two that know nothing of each other and differ are a conflict, and both stay until the learner chooses.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from quizzes.say import _

PAST = 50
"""Times kept in a past. An older copy than that is a conflict again, which asks too often and loses nothing."""

Entry = dict[str, Any]


def moment(entry: Entry) -> datetime:
    """When an entry was made, with its zone; the earliest there is for what is no time. A time without a zone is in UTC."""
    try:
        when = datetime.fromisoformat(entry["at"])
        return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):  # an edited file holds anything
        return datetime.min.replace(tzinfo=UTC)


def past(entries: Iterable[Entry]) -> list[str]:
    """The past of an entry that replaces all of `entries`."""
    held = {entry["at"]: None for entry in entries} | {at: None for entry in entries for at in entry.get("past", ())}
    return sorted(held)[-PAST:]


def standing(entries: Iterable[Entry]) -> list[Entry]:
    """The entries that nothing has replaced, the newest first: one where all copies agree, more where they are in conflict.

    The order in which copies are found does not matter.
    """
    every = list(entries)
    left = [entry for entry in every if not any(_replaces(other, entry) for other in every)] or every
    groups: dict[str, list[Entry]] = {}
    for entry in left:
        groups.setdefault(json.dumps([entry["answer"], entry.get("variant", "")], sort_keys=True), []).append(entry)
    found = []
    for group in groups.values():
        newest = max(group, key=_order)
        # Times can be equal, in an old record to the day: one that another answer has as well is in nobody's past.
        shared = {newest["at"], *(entry["at"] for entry in left if entry not in group)}
        behind = [at for at in past(group) if at not in shared]
        found.append(dict(newest) | ({"past": behind} if behind else {}))
    return sorted(found, key=_order, reverse=True)


def chosen(entry: Entry, others: Iterable[Entry], now: datetime) -> Entry:
    """`entry` again, at `now`, as what replaces itself and all `others`."""
    return dict(entry) | {"at": now.astimezone(UTC).isoformat(timespec="microseconds"), "past": past([entry, *others])}


def told(name: str, entries: list[Entry], places: dict[str, str]) -> str:
    """A conflict in words: every answer, when and where it was given, and how to choose. `places` are by the entry's time."""
    lines = [_("Two copies of your answer to {name} differ; both are kept:").format(name=name)]
    for number, entry in enumerate(entries, 1):
        when = moment(entry)
        said = entry["at"] if when.year == 1 else when.astimezone().strftime("%Y-%m-%d %H:%M %z")
        where = places.get(entry["at"], _("in another copy"))
        line = _("   {number}) {answer}, {when}, {where}")
        lines.append(line.format(number=number, answer=spoken(entry["answer"]), when=said, where=where))
    how = _("The first counts until you choose: quiz.choose({name!r}, 1), or another number; or answer again.")
    return "\n".join([*lines, how.format(name=name)])


def spoken(answer: Any) -> str:
    """An answer as a person would write it."""
    if answer is None:
        return ""
    if isinstance(answer, dict):
        return ", ".join(f"{left}: {right}" for left, right in answer.items())
    return ", ".join(map(str, answer)) if isinstance(answer, list) else str(answer)


def _replaces(one: Entry, other: Entry) -> bool:
    # A file edited by hand can say that each replaced the other; then neither did.
    return one["at"] != other["at"] and other["at"] in one.get("past", ()) and one["at"] not in other.get("past", ())


def _order(entry: Entry) -> tuple[datetime, str]:
    return moment(entry), json.dumps(entry, sort_keys=True)
