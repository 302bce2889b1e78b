"""The seven verdicts on a certificate, in the words that every verifier uses, and the keys that prove nothing. Pure.

Words, their order and the published test keys stand in `verdicts.json`, which the static page reads as well.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from quizzes.say import _

DATA: dict[str, Any] = json.loads(resources.files(__package__).joinpath("verdicts.json").read_text("utf-8"))
ORDER: tuple[str, ...] = tuple(DATA["order"])
"""The verdicts; of those that apply, the first is given."""
TEST_KEYS: frozenset[str] = frozenset(DATA["test_keys"])
"""did:key names whose private half is public: in standards, in this program's tests, and that of `keygen --test`."""

PICTURE: str = DATA["picture"]
"""What every verifier says of a PNG whose credential is whole."""


def heading(verdict: str) -> str:
    """The verdict as a heading. Raises KeyError for a word that is no verdict."""
    return _(DATA["verdicts"][verdict]["heading"])


def exit_status(verdict: str) -> int:
    """What the command line ends with. Raises KeyError for a word that is no verdict."""
    return DATA["verdicts"][verdict]["exit"]


def sentences(verdict: str) -> str:
    """What the verdict means and what to do. Raises KeyError for a word that is no verdict."""
    entry = DATA["verdicts"][verdict]
    return f"{_(entry['meaning'])} {_(entry['advice'])}"
