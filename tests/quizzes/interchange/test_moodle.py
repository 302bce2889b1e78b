"""Moodle XML as Moodle writes it, and what it takes of ours."""

from fractions import Fraction
from xml.etree import ElementTree

import pytest
from interchange_making import bank

from quizzes.grading import judge
from quizzes.interchange import formats
from quizzes.interchange.edition import edition
from quizzes.question import UNNAMED, Question, practice

LISTED = """100 90 83.33333 80 75 70 66.66667 60 50 40 33.33333 30 25 20 16.66667 14.28571 12.5 11.11111 10 5 0""".split()  # noqa: SIM905
"""The percentages that Moodle offers for an answer."""


def read(inner):
    found = formats.read(f"<?xml version='1.0'?>\n<quiz>\n{inner}\n</quiz>".encode(), "a file.xml")
    return (found.bank.questions if found.bank else ()), found.report


def question(kind, inner, text="<p>Which?</p>", form="html"):
    return (
        f'<question type="{kind}"><name><text>N</text></name><questiontext format="{form}"><text><![CDATA[{text}]]></text>'
        f"</questiontext><defaultgrade>2.0</defaultgrade>{inner}</question>"
    )


def answer(fraction, text, feedback="", more="", form="html"):
    told = f'<feedback format="html"><text>{feedback}</text></feedback>'
    return f'<answer fraction="{fraction}" format="{form}"><text>{text}</text>{told}{more}</answer>'


def only(inner):
    questions, report = read(inner)
    assert len(questions) == 1, report.lines()
    return questions[0], report


def test_one_choice_with_feedback_hints_and_partial_credit():
    found, report = only(
        question(
            "multichoice",
            "<single>true</single>"
            + answer(100, "&lt;b&gt;yes&lt;/b&gt;", "good")
            + answer("33.33333", "half")
            + answer(-50, "no")
            + '<hint format="html"><text>Think.</text></hint><penalty>0.5</penalty>'
            + "<incorrectfeedback><text>Try again</text></incorrectfeedback>",
        )
    )
    assert [c.text for c in found.choices] == ["yes", "half", "no"] and found.points == 2
    assert judge(found, "b").share == pytest.approx(1 / 3) and judge(found, "c").share == 0
    assert found.hints == ("Think.",) and found.hint_cost == 0.5 and judge(found, "a", hints=1).share == 0.5
    said = "\n".join(report.lines())
    assert "takes away" in said and "alike" in said and UNNAMED in said


def test_several_words_truth_pairs_and_an_order():
    several, words, truth, match, order = read(
        question("multichoice", "<single>false</single>" + answer(50, "a") + answer(50, "b") + answer(-50, "c"))
        + question(
            "shortanswer",
            "<usecase>1</usecase>" + answer(100, r"a\*b") + answer(0, "no", "why") + answer(100, "x*y") + answer(0, "*"),
        )
        + question("truefalse", answer(0, "true", "no") + answer(100, "false", "yes"))
        + question(
            "matching",
            "".join(
                f'<subquestion format="html"><text>{left}</text><answer><text>{right}</text></answer></subquestion>'
                for left, right in (("&lt;p&gt;A&lt;/p&gt;", "1"), ("B", "2"), ("", "3"))
            ),
        )
        + question("ordering", "<gradingtype>ABSOLUTE_POSITION</gradingtype>" + "".join(answer(n, f"s{n}") for n in (1, 2, 3)))
    )[0]
    assert judge(several, "a, b").correct and judge(several, "a, c").share == 0
    assert judge(words, "A*B").correct and not judge(words, "xzy").correct and judge(words, "no").message.endswith("why")
    assert judge(truth, "b").correct and judge(truth, "a").message.endswith("no")
    assert judge(match, {p.id: p.option for p in match.pairs}).correct and match.pairs[0].left == "A"
    assert [part.text for part in match.extra] == ["3"]
    assert judge(order, [s.id for s in order.steps]).correct and [s.text for s in order.steps] == ["s1", "s2", "s3"]


@pytest.mark.parametrize(
    ("units", "unit", "right", "wrong"),
    [
        ("", "count", ["12", "12.5", "11.5"], ["12.51"]),
        (
            "<unit><multiplier>1</multiplier><unit_name>GB</unit_name></unit>",
            "bytes", ["12 GB", "12e9", "12500 MB"], ["12", "12 GiB"],
        ),
        (
            "<unit><multiplier>1</multiplier><unit_name>s</unit_name></unit>"
            "<unit><multiplier>1000</multiplier><unit_name>ms</unit_name></unit>",
            "seconds", ["12 s", "12000 ms", "0.2 min"], ["12 ms"],
        ),
        ("<unit><multiplier>1</multiplier><unit_name>furlong</unit_name></unit>", "count", ["12"], ["13"]),
    ],
)  # fmt: skip
def test_numbers_and_units(units, unit, right, wrong):
    inner = answer(100, "12", "", "<tolerance>0.5</tolerance>") + answer(0, "*", "no") + f"<units>{units}</units>"
    found, _report = only(question("numerical", inner))
    assert found.unit == unit
    assert all(judge(found, given).correct for given in right) and not any(judge(found, given).correct for given in wrong)


def test_a_thousandth_is_written_as_moodle_divides():
    held = Question.model_validate(
        {"id": "x", "name": "q1", "kind": "number", "prompt": "p", "unit": "seconds", "value": 2, "explanation": "e"}
    )
    root = ElementTree.fromstring(formats.export([bank(held)], "moodle")[0])
    units = {unit.findtext("unit_name"): unit.findtext("multiplier") for unit in root.iter("unit")}
    assert units["s"] == "1" and units["ms"] == "1000" and Fraction(units["min"]).limit_denominator(60) == Fraction(1, 60)


@pytest.mark.parametrize("kind", ["cloze", "essay", "description", "calculated", "gapselect", "", "../x"])
def test_unknown_types_are_named_and_the_rest_is_read(kind):
    good = question("truefalse", answer(100, "true") + answer(0, "false"))
    questions, report = read(good + "\n" + question(kind, "") + "\n" + good)
    assert len(questions) == 2
    (entry,) = report.skipped()
    assert "line 4" in entry.question and repr(kind) in entry.said


def test_bad_numbers_cost_one_question_only():
    good = question("truefalse", answer(100, "true") + answer(0, "false"))
    for bad in (
        question("numerical", answer(100, "five")),
        question("numerical", answer("many", "5")),
        question("multichoice", answer("1e9999", "5") + answer(0, "b")),
        question("numerical", answer(100, "1e300", "", "<tolerance>1e999</tolerance>")),
        question("multichoice", ""),
        question("truefalse", answer(100, "true") + answer(0, "false")).replace("2.0", "two"),
        question("truefalse", answer(100, "true") + answer(0, "false")).replace("Which?", "x" * 5001),
        "<question/>",
    ):
        questions, report = read(good + bad + good)
        assert len(questions) == 2 and len(report.skipped()) == 1, bad


def test_scripts_never_arrive():
    text = (
        "<script>alert(1)</script><img src=x onerror=alert(2)><svg><script>3</script></svg><iframe src=j>4</iframe>a &lt;b&gt;"
    )
    found, report = only(question("truefalse", answer(100, "true") + answer(0, "false"), text))
    assert found.prompt == "a <b>"
    assert any("scripts" in line for line in report.lines()) and any("pictures" in line for line in report.lines())


def test_every_weight_written_is_one_that_moodle_knows():
    for count in range(1, 15):
        parts = [
            {"id": f"c{n}", "text": str(n), "correct": n < count, "explanation": "e", "misconception": "one-moment"}
            for n in range(count + 1)
        ]
        held = Question.model_validate({"id": "x", "name": "q1", "kind": "several", "prompt": "p", "choices": parts})
        data, report = formats.export([bank(held)], "moodle")
        weights = [node.get("fraction") for node in ElementTree.fromstring(data).iter("answer")]
        assert {weight.lstrip("-") for weight in weights} <= set(LISTED)
        exact = abs(sum(float(weight) for weight in weights[:count]) - 100) < 0.001
        assert exact is (count <= 10) and any("weight" in line for line in report.lines()) is not exact


def test_texts_are_marked_as_plain():
    root = ElementTree.fromstring(formats.export([practice("05")], "moodle")[0])
    asked = {edition(held).id: edition(held).prompt for held in practice("05").questions}
    for node in root.iter("question"):
        if node.get("type") != "category":
            assert node.find("questiontext").get("format") == "plain_text"
            assert node.findtext("questiontext/text") == asked[node.findtext("idnumber")]
            assert {tag.text for tag in node.findall("tags/tag/text")} >= {"lesson-05"}
