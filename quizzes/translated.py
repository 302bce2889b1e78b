"""The texts of a bank as messages of a catalogue, and a bank in another language. Pure but for reading catalogues.

A question's texts are translated before its numbers are drawn: `{n}` in a text is a place that the translation keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from quizzes import languages
from quizzes.languages import say_once
from quizzes.question import Bank, Question
from quizzes.say import spoken, words
from quizzes.words import plain

_READ = {"prompt", "explanation", "text", "left", "right", "reread"}
_LISTS = ("choices", "traps", "wrong", "steps", "mistakes", "pairs", "extra")


def messages(question: Question) -> list[str]:
    """Every text of a question that a learner reads, and the words that are accepted, each once."""
    found: list[str] = []

    def seen(text: str) -> str:
        found.append(text)
        return text

    _through(question, seen)
    return [text for text in dict.fromkeys(found) if text]


def translated(bank: Bank, domain: str | None = None) -> Bank:
    """The bank in the language that is spoken here; what has no translation stays English. `domain`: else the lesson's."""
    domain = domain or f"lesson_{bank.lesson}"
    questions = tuple(asked_in(question, domain) for question in bank.questions)
    return bank.model_copy(update={"title": words(domain, bank.title), "questions": questions})


def asked_in(question: Question, domain: str) -> Question:
    """One question in the language that is spoken here, before its numbers are drawn. Where a translation would make it
    another question (two right sides become one), that is said and it stays English. Words are accepted in every language that
    has them, so that an answer is worth the same whoever judges it, and in whatever language that one reads."""
    if spoken() == "en":
        return _in_every_language(question, domain)
    data = _through(question, lambda text: words(domain, text))
    try:
        return _in_every_language(Question.model_validate(data), domain, question.accepted)
    except ValidationError as error:
        said = error.errors()[0]["msg"].removeprefix("Value error, ")
        say_once(
            f"{domain}, {spoken()}: question {question.id} cannot be asked as translated ({said}); it is asked in English."
        )
        return _in_every_language(question, domain)


def _in_every_language(question: Question, domain: str, english: tuple[str, ...] = ()) -> Question:
    """The question with what each catalogue has for its accepted words (`english`, or its own) beside them."""
    catalogues = [languages.catalogue(domain, name) for name in languages.having(domain)]
    said = [catalogue.one(word) for catalogue in catalogues for word in english or question.accepted]
    more = [word for word in dict.fromkeys(said) if word not in question.accepted]
    if not more:
        return question
    accepted = (*question.accepted, *more)
    right = {plain(word) for word in accepted}
    wrong = tuple(word for word in question.wrong if plain(word.text) not in right)
    return question.model_copy(update={"accepted": accepted, "wrong": wrong})


def _through(question: Question, say: Callable[[str], str]) -> dict[str, Any]:
    """The question as data, with every text replaced by what `say` makes of it."""
    data = question.model_dump()
    for name in sorted(_READ & data.keys()):
        data[name] = say(data[name])
    data["hints"] = [say(hint) for hint in data["hints"]]
    # Who reads French may type the English term, and the other way round.
    data["accepted"] = list(dict.fromkeys([*data["accepted"], *(say(word) for word in data["accepted"])]))
    for name in _LISTS:
        data[name] = [{key: say(held) if key in _READ and held else held for key, held in part.items()} for part in data[name]]
    # So are wrong words known in both, unless what is wrong in English is right in translation.
    accepted = {plain(word) for word in data["accepted"]}
    data["wrong"] = [
        part | {"text": text}
        for part, old in zip(data["wrong"], question.wrong, strict=True)
        for text in dict.fromkeys([old.text, part["text"]])
        if plain(text) not in accepted
    ]
    return data
