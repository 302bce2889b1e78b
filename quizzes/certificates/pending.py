"""A change of several files of a registry that is made whole, whatever stops it: written down first, then carried out.

The note, `.pending`, appears by one rename. Before it nothing has changed; from it on the change is made, and whoever opens the
registry next carries out what is left. Readers take a file from the note while it stands there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from quizzes.certificates import identifier, strict_json
from quizzes.certificates.publish import publish
from quizzes.certificates.strict_json import MalformedJsonError
from quizzes.say import _

NAME = ".pending"
LARGEST = 32 * 1024 * 1024
_LISTS = ("revocations.json", "status.json", "issuer.json")
_PART = re.compile(r"\..+\.[0-9a-f]{32}\.part")


class PendingError(ValueError):
    """The note of a change cannot be read; the message is a sentence without an end stop."""


def change(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes `files` (name within the registry -> UTF-8 text), all of them or none, in their order.

    Raises OSError as the system gives it. Where that happens behind the note, the change counts as made: `finish` completes it.
    """
    if len(files) > 1:
        note = strict_json.canonical([[name, data.decode()] for name, data in files.items()])
        publish({folder / NAME: note})
    publish({folder / name: data for name, data in files.items()})
    (folder / NAME).unlink(missing_ok=True)


def finish(folder: Path) -> None:
    """Carries out what a stopped `change` left, and clears its remains away. Only for who holds the registry's lock.

    Raises OSError, and PendingError for a note that no `change` wrote.
    """
    files = noted(folder)
    if files:
        publish({folder / name: data for name, data in files.items()})
        (folder / NAME).unlink(missing_ok=True)
    for place in (folder, folder / "c"):
        for path in place.glob(".*.part"):
            if _PART.fullmatch(path.name):
                path.unlink(missing_ok=True)


def noted(folder: Path) -> dict[str, bytes]:
    """The files of a change that is written down and not yet known to be carried out. Raises OSError, PendingError."""
    try:
        with (folder / NAME).open("rb") as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        return {}
    try:
        entries = strict_json.loads(data)
    except MalformedJsonError as error:
        raise PendingError(str(error)) from None
    if not isinstance(entries, list) or not all(_is_entry(entry) for entry in entries):
        raise PendingError(_("it is not a list of files of a registry"))
    return {name: text.encode() for name, text in entries}


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, list) or len(entry) != 2 or not all(isinstance(part, str) for part in entry):
        return False
    name = entry[0]
    return name in _LISTS or (
        name.startswith("c/") and name.endswith(".json") and identifier.is_canonical(name[len("c/") : -len(".json")])
    )
