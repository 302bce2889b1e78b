"""What was exported and imported again is judged as before: score, verdict, what is told."""

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from interchange_making import answers, bank, questions

from quizzes.grading import judge
from quizzes.interchange import formats
from quizzes.interchange.edition import edition
from quizzes.question import BANK, KEYS, every

BANKS = every(BANK) | every(KEYS)
FORMATS = list(formats.FORMS)
often = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))


def there_and_back(held, form, strip=lambda data: data):
    data, _report = formats.export([held], form)
    found = formats.read(strip(data), "a file", None)
    return found.bank, found.report


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("path", list(BANKS), ids=lambda path: f"{path.parent.name}-{path.stem[:2]}")
def test_the_bank_comes_back_as_it_went(path, form):
    held = BANKS[path]
    back, report = there_and_back(held, form)
    assert not report.entries, report.lines()
    for question in held.questions:
        drawn, same = edition(question), back[question.name]
        for answer in answers(drawn):
            assert judge(same, answer) == judge(drawn, answer), (question.id, answer)
        assert same.public() == drawn.public() and same.misconceptions == drawn.misconceptions
        assert same.hints == drawn.hints and same.reread == drawn.reread


@pytest.mark.parametrize("form", FORMATS)
@often
@given(question=questions())
def test_any_question_is_judged_alike(form, question):
    data, report = formats.export([bank(question)], form)
    if report.skipped():
        return
    found = formats.read(data, "a file", None)
    assert found.bank is not None, found.report.lines()
    (same,) = found.bank.questions
    assert formats.checked(found.bank)
    for answer in answers(question):
        one, other = judge(question, answer), judge(same, answer)
        assert (one.share, one.correct, one.understood) == (other.share, other.correct, other.understood), answer
        assert one.misconceptions == other.misconceptions and one.answer == other.answer


@pytest.mark.parametrize("form", FORMATS)
def test_a_second_export_is_the_same_file(form):
    banks = list(BANKS.values())[:2]
    assert formats.export(banks, form) == formats.export(banks, form)


def test_what_is_kept_only_here_stands_in_comments():
    (held,) = [found for path, found in BANKS.items() if path.parent == BANK and path.stem.startswith("05")]
    text = formats.export([held], "gift")[0].decode()
    notes = [line for line in text.splitlines() if line.startswith("// offload-quiz: ")]
    assert len(notes) == len(held.questions)
    for line in notes:
        assert "[" not in re.sub(r'[\[\]](?=[{"\],}])|\[(?=[0-9])', "", line)  # no text of a note looks like a tag
        assert json.loads(line.removeprefix("// offload-quiz: "))["version"] == 1
