"""What of the exercises may be in nothing that ships: the hints and ideas of hidden cases. Pure but for reading the bank."""

from __future__ import annotations

from quizzes.exercises.exercise import BANK, KEYS, with_keys
from quizzes.say import _

SHORTEST = 16
"""Characters; a shorter text is in anything by chance."""


def texts() -> dict[str, str]:
    """Private text -> what it is; none where the keys are not installed. What the open exercises say too is no secret.

    Raises quizzes.exercises.exercise.ExerciseError for a bad file.
    """
    if not KEYS.is_dir():
        return {}
    public = " ".join(" ".join(path.read_text(encoding="utf-8").split()) for path in sorted(BANK.glob("*.yaml")))
    found = {}
    for exercise in with_keys():
        for case in exercise.hidden:
            for text in (case.hint, *(trap.idea for trap in case.traps)):
                plain = " ".join(text.split())
                if len(plain) >= SHORTEST and plain not in public:
                    found[plain] = _("text of a hidden case of {id}").format(id=exercise.id)
    return found
