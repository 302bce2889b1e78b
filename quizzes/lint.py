"""Quality of the bank: what gives an answer away without a thought, and what was left loose. Pure but for reading files."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from quizzes.formula import FormulaError, exact
from quizzes.lint_figures import check_figure
from quizzes.question import KEYS, UNNAMED, Bank, Question, misconceptions
from quizzes.say import _

_ALL = re.compile(r"\b(all|both|none|neither|any) of (the above|them|these|those)\b|\ball the above\b", re.I)
_PLACES = 6  # so many one-choice questions of a file are needed before "always in one place" means anything
_LONGER = 1.25
_WIDEST = 100
_UNTELLING = re.compile(r"g\d\d-\d+")


def check(banks: Mapping[Path, Bank], catalogues: Mapping[str, set[str]] | None = None) -> list[str]:
    """All that is wrong, a line each: file, question, what, what to do. `catalogues`: language -> translated texts."""
    found: list[str] = []
    used: set[str] = {"gib-for-gb", UNNAMED}  # the judge itself names the one, an import the other
    for path, bank in banks.items():
        for question in bank.questions:
            if path.parent.name == KEYS.name and not _UNTELLING.fullmatch(question.id):
                # A graded id names its cell in the notebook that is handed out: "sixteen" would be the answer.
                found.append(
                    _("{file}, question {id}: a graded id is g{lesson}-1, g{lesson}-2, …; words tell").format(
                        file=path.name, id=question.id, lesson=bank.lesson
                    )
                )
            used.update(question.misconceptions)
            found += [f"{path.name}, question {question.id}: {said}" for said in check_question(question)]
        found += [f"{path.name}: {said}" for said in _places(bank.questions)]
        for language, texts in (catalogues or {}).items():
            missing = [text for question in bank.questions for text in strings(question) if text not in texts]
            if missing:
                found.append(
                    _("{file}: {count} strings are not in {language}, first {missing!r}").format(
                        file=path.name, count=len(missing), language=language, missing=missing[0][:60]
                    )
                )
    orphans = sorted(set(misconceptions()) - used)
    return found + [
        _("misconceptions.yaml: {name!r} is named by no answer; use it or take it out").format(name=name) for name in orphans
    ]


def check_question(question: Question) -> list[str]:
    """What is wrong with one question."""
    found = []
    right = [len(choice.text) for choice in question.choices if choice.correct]
    wrong = [len(choice.text) for choice in question.choices if not choice.correct]
    if right and wrong and question.kind != "several" and max(right) > max(wrong) * _LONGER and max(right) > 20:
        found.append(_("the right choice is the longest by far; shorten it or lengthen another"))
    for choice in question.choices:
        if _ALL.search(choice.text) and not choice.stays_last:
            found.append(
                _("choice {id}: {text!r} needs stays_last: true, because choices are shuffled").format(
                    id=choice.id, text=choice.text
                )
            )
    ids = [step.id for step in question.steps]
    if ids and ids == sorted(ids):
        found.append(_("the ids of the steps sort in the right order and give it away; rename them"))
    if question.variants and max(map(len, question.variants.values())) < 2:
        found.append(_("variants: with one value each there is nothing to vary"))
    found += [f"variants.{name}: {said}" for name, values in question.variants.items() if (said := _too_wide(values))]
    public = json.dumps(question.public(), ensure_ascii=False, default=str)
    hidden = [text for text in secrets(question) if len(text) > 30 and text in public]
    found += [_("{text!r} belongs to the key and is public").format(text=text[:60]) for text in hidden]
    return found + check_figure(question, secrets(question))


def _too_wide(values: Iterable[int | float | str]) -> str:
    """Every draw takes the same formula, so that draws differ in difficulty by the size of their numbers alone."""
    try:
        sizes = [abs(exact(value)) for value in values]
    except FormulaError:
        return ""  # words, a dtype
    if any(sizes) and (not all(sizes) or max(sizes) > _WIDEST * min(sizes)):
        return _("the largest is more than {most} times the smallest (or one is 0), which is not the same difficulty").format(
            most=_WIDEST
        )
    return ""


def _places(questions: Iterable[Question]) -> list[str]:
    ones = [question for question in questions if question.kind in ("one", "plot")]
    places = Counter(next(i for i, choice in enumerate(question.choices) if choice.correct) for question in ones)
    if len(ones) < _PLACES or max(places.values()) < 0.7 * len(ones):
        return []
    place, times = places.most_common(1)[0]
    return [
        _("the right choice is number {place} in {times} of {count} questions; move some").format(
            place=place + 1, times=times, count=len(ones)
        )
    ]


def strings(question: Question) -> list[str]:
    """Every text of a question that a learner reads."""
    found = [question.prompt, question.explanation, *question.hints]
    for part in (*question.choices, *question.traps, *question.wrong, *question.steps, *question.mistakes, *question.pairs):
        found += [getattr(part, name) for name in ("text", "left", "right", "explanation") if hasattr(part, name)]
    return [text for text in dict.fromkeys([*found, *(part.text for part in question.extra)]) if text]


def secrets(question: Question) -> list[str]:
    """The private texts of a question with its key: explanations, hints, accepted answers. Short ones too."""
    parts = (*question.choices, *question.traps, *question.wrong, *question.mistakes, *question.pairs)
    found = [question.explanation, *question.hints, *question.accepted, *(part.explanation for part in parts)]
    return [text for text in dict.fromkeys(found) if text]
