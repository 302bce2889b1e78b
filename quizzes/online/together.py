"""Two copies of one sheet of judged answers, as JSON, made one. Pure; imports nothing of the quiz, because a progress file is
read without the libraries of receipts.
"""

from __future__ import annotations

import json
from typing import Any

_LISTS = ("replies", "refused", "unsent", "issuers", "others")
_DICTS = ("last", "drafts", "sure")


def together(mine: Any, theirs: dict[str, Any]) -> dict[str, Any]:
    """`theirs` beside `mine` (None where there is none): everything that either holds, mine first. Entries that differ are both
    there: `quizzes.online.sheet.from_json` takes the one that its receipt proves, and what is settled in either is settled."""
    if not isinstance(mine, dict):
        return theirs
    found = theirs | {name: value for name, value in mine.items() if value}
    for name in _LISTS:
        every = [*_part(mine, name, list), *_part(theirs, name, list)]
        found[name] = list({json.dumps(one, sort_keys=True): one for one in reversed(every)}.values())[::-1]
    for name in _DICTS:
        found[name] = _part(theirs, name, dict) | _part(mine, name, dict)
    return found


def _part(content: dict[str, Any], name: str, kind: type) -> Any:
    part = content.get(name)
    return part if isinstance(part, kind) else kind()
