"""A made-up class to try the item analysis on. Pure but for reading the open questions."""

from __future__ import annotations

import random

from quizzes.analysis import Row
from quizzes.question import BANK, Question, every
from quizzes.say import N_

SAID = N_("These answers are made up: no results were given. One question was made hard in Korean on purpose.")


def made_up_class(learners: int = 60, seed: int = 5, questions: int = 8) -> list[Row]:
    """Rows of the first one-choice questions of the open bank: learners of different skill, half of them in Korean, to whom
    the second question is mistranslated. The same for the same seed."""
    chance = random.Random(seed)
    asked = [one for bank in every(BANK).values() for one in bank.questions if one.kind == "one" and not one.variants][
        :questions
    ]
    found = []
    for number in range(learners):
        language = "ko" if number % 2 else "en"
        skill = chance.gauss(0.0, 1.0)
        for place, question in enumerate(asked):
            hard = place * 0.35 - 1.2 + (4.0 if language == "ko" and place == 1 else 0.0)
            right = chance.random() < 1 / (1 + 2.718281828 ** (hard - 1.5 * skill))
            found.append(_row(f"learner {number}", question, right, language, chance))
    return found


def _row(learner: str, question: Question, right: bool, language: str, chance: random.Random) -> Row:
    some = [choice for choice in question.choices if choice.correct == right]
    choice = some[min(chance.randrange(len(some) + 1), len(some) - 1)]  # the last one draws twice as many
    ideas = (choice.misconception,) if choice.misconception and not right else ()
    return Row(learner, question.id, float(right), (choice.id,), ideas, language)
