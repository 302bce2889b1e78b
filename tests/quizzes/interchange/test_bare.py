"""Without our notes, as another program would hand a file back: what the format itself says is judged alike."""

import io
import re
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from interchange_making import EVIL, bank, questions

from quizzes.grading import judge
from quizzes.interchange import formats
from quizzes.interchange.edition import edition
from quizzes.question import BANK, UNNAMED, Question, every

BANKS = every(BANK)


def bare(data, form):
    """A file without our notes."""
    if form == "gift":
        return re.sub(rb"(?m)^// offload-quiz:.*\n", b"", data)
    if form == "moodle":
        return re.sub(rb"<!-- offload-quiz:.*?-->", b"", data)
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            new.writestr(name, re.sub(rb"<!-- offload-quiz:.*?-->", b"", old.read(name)))
    return made.getvalue()


def there_and_back(held, form):
    data, report = formats.export([held], form)
    stripped = bare(data, form)
    assert not re.search(rb"(// |<!-- )offload-quiz: \{\"", stripped)
    if report.skipped():
        return (), {entry.question for entry in report.skipped()}
    found = formats.read(stripped, "a file")
    return (found.bank.questions if found.bank else ()), {entry.question for entry in report.skipped()}


def pairs_of_answers(question, same):
    """The same answer in the ids of both."""
    if question.choices:
        names = [(one.id, other.id) for one, other in zip(question.choices, same.choices, strict=True)]
        yield from (([one], [other]) for one, other in names)
        yield tuple(map(list, zip(*names, strict=True)))
        yield tuple(map(list, zip(*names[:2], strict=True)))
        right = [(one.id, other.id) for one, other in zip(question.choices, same.choices, strict=True) if one.correct]
        yield tuple(map(list, zip(*right, strict=True)))
    if question.kind == "text":
        yield from ((text, text) for text in (*question.accepted, *(wrong.text for wrong in question.wrong), "zzz"))
    if question.kind == "order":
        one, other = [step.id for step in question.steps], [step.id for step in same.steps]
        for turn in range(len(one)):
            yield one[turn:] + one[:turn], other[turn:] + other[:turn]
        yield one[::-1], other[::-1]
    if question.kind == "match":
        lefts = list(zip(question.pairs, same.pairs, strict=True))
        yield tuple({pair.id: pair.option for pair in side} for side in zip(*lefts, strict=True))
        first = tuple(part[0].option for part in zip(*lefts, strict=True))
        yield tuple({pair.id: option for pair in side} for side, option in zip(zip(*lefts, strict=True), first, strict=True))
    if question.kind == "number":
        for part in (*question.right, *question.traps):
            for factor in (1, 2, -1):
                text = repr(float(part.value.number()) * factor)
                yield text, text


def alike(question, same, form):
    weighed = form.startswith("qti") or not any(choice.credit for choice in question.choices)
    for one, other in pairs_of_answers(question, same):
        before, after = judge(question, one), judge(same, other)
        assert (before.correct, before.understood) == (after.correct, after.understood), (one, other)
        assert before.share == pytest.approx(after.share, abs=1e-6 if weighed else 0.06), (one, other)


@pytest.mark.parametrize("form", list(formats.FORMS))
def test_the_bank_is_judged_alike(form):
    for held in BANKS.values():
        back, skipped = there_and_back(held, form)
        assert not skipped and len(back) == len(held.questions)
        for question, same in zip(held.questions, back, strict=True):
            assert set(same.misconceptions) <= {UNNAMED} and not same.reread and same.id == question.id
            alike(edition(question), same, form)


@pytest.mark.parametrize("form", list(formats.FORMS))
@pytest.mark.parametrize("right", [1, 2, 3])
def test_a_text_of_signs_in_every_place(form, right):
    """Each text that formats stumble over as prompt, choice and explanation; of the choices some are right, or all."""
    made = []
    for count, text in enumerate(EVIL):
        parts = [
            {"id": name, "text": words, "explanation": text, "correct": place < right, "misconception": "one-moment"}
            for place, (name, words) in enumerate((("k1", text), ("k2", "b"), ("k3", f"{text}c")))
        ]
        more = {"kind": "one", "choices": parts, "several_right": right > 1}
        made.append(Question.model_validate({"id": f"x{count}", "name": f"q{count}", "prompt": text} | more))
    back, skipped = there_and_back(bank(*made), form)
    assert not skipped and [question.id for question in back] == [question.id for question in made]
    normal = formats.FORMS[form].normal
    for question, same in zip(made, back, strict=True):
        assert same.kind == "one" and same.prompt == (normal(question.prompt) or "(no text)")
        assert [choice.text for choice in same.choices] == [normal(c.text) or "(no text)" for c in question.choices]
        alike(question, same, form)


@pytest.mark.parametrize("form", list(formats.FORMS))
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(question=questions(kinds=("one", "several", "text", "order", "match")))
def test_any_question_is_judged_alike(form, question):
    found, skipped = there_and_back(bank(question), form)
    arrows = form == "gift" and any("->" in text for text in question.accepted)
    if skipped or arrows or any(choice.exclusive for choice in question.choices):
        return  # what a format has no sign for
    assert len(found) == 1
    alike(question, found[0], form)
