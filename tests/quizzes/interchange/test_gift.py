"""GIFT as others write it: what every sign means, and what can't be taken over."""

import itertools
from fractions import Fraction

import pytest
from interchange_making import bank

from quizzes.grading import judge
from quizzes.interchange import formats
from quizzes.question import UNNAMED, Question


def read(text, **more):
    found = formats.read(text.encode(), "a file.gift", "gift", **more)
    return (found.bank.questions if found.bank else ()), found.report


def only(text):
    questions, report = read(text)
    assert len(questions) == 1, report.lines()
    return questions[0]


def test_a_choice_and_its_feedback():
    question = only(
        "::Grant::Who's buried in Grant's tomb?{~Grant#He lies above. =no one#Right, buried is the word. ~%50%Julia}"
    )
    assert (question.kind, question.prompt) == ("one", "Who's buried in Grant's tomb?")
    assert [(c.id, c.text, c.correct, c.credit) for c in question.choices] == [
        ("a", "Grant", False, 0.0),
        ("b", "no one", True, 0.0),
        ("c", "Julia", False, 0.5),
    ]
    assert judge(question, "a").message.endswith("He lies above.") and judge(question, "c").share == 0.5
    assert question.id == "grant" and {c.misconception for c in question.choices} == {None, UNNAMED}


def test_escapes_mean_what_they_say():
    question = only(
        r"1 \= 1 \{a\} \# \~ \: \\alpha line\nnext {=a \= b #f\#g ~\\begin\{array\} \\\\ 2 ~(Correct (with caveats)) ~\:(}"
    )
    assert question.prompt == "1 = 1 {a} # ~ : \\alpha line\nnext"
    assert [c.text for c in question.choices] == ["a = b", "\\begin{array} \\\\ 2", "(Correct (with caveats))", ":("]
    assert question.choices[0].explanation == "f#g"


def test_a_backslash_before_another_letter_stays():
    assert only(r"What is \alpha + \beta?{=\gamma ~\delta}").choices[0].text == "\\gamma"


@pytest.mark.parametrize(
    ("answers", "right", "wrong"),
    [
        ("#0..10", ["0", "10", "5"], ["10.01", "-0.01"]),
        ("#10:2", ["8", "12"], ["7.9", "12.1"]),
        ("#45.8:0.2", ["46.0", "45.6"], ["46.01"]),
        ("#=3.14:0.01 =22/7", None, None),
        ("#=3.14:.01 =2.718:.001", ["3.15", "2.719", "2.717"], ["2.72", "3.16"]),
        ("#1e-8:1e-10", ["1e-8", "1.01e-8", "0.00000001"], ["0", "2e-8", "1e-4"]),
        ("#=%100%5:0 =%50%6:0#near", ["5"], ["6"]),
        ("#-3", ["-3", "−3", "－3"], ["3"]),
    ],
)
def test_numbers(answers, right, wrong):
    questions, report = read(f"How many?{{{answers}}}")
    if right is None:
        assert not questions and "not a number" in report.lines()[0]
        return
    for answer in right:
        assert judge(questions[0], answer).correct, answer
    for answer in wrong:
        assert not judge(questions[0], answer).correct, answer


def test_several_are_weighed_alike_and_what_is_not_is_said():
    question = only("Which?{~%33.33333%a ~%33.33333%b ~%33.33333%c ~%-100%d}")
    assert question.kind == "several" and judge(question, ["a", "b"]).share == pytest.approx(2 / 3)
    _questions, report = read("Which?{~%70%a ~%30%b ~%-100%d}")
    assert any("weigh differently" in line for line in report.lines())


def test_any_of_two_right_ones_will_do():
    question = only("Which?{=a =b ~c}")
    assert question.kind == "one" and question.several_right
    assert judge(question, "a").correct and judge(question, "b").correct and not judge(question, "c").correct


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("No right one{~a ~b}", "no choice is right"),
        ("Half right only{=%50%a}", "no answer earns all"),
        ("An essay{}", "essay"),
        ("A description.", "description"),
        ("Open {=a", "do not fit together"),
        ("Closed =a}", "do not fit together"),
        ("Twice {=a ~b} and {=c ~d}", "more than one pair"),
        ("Inside {=a {b} ~c}", "inside of another"),
        ("One choice {=a ~}", ""),
        ("A match{=a -> b =c}", "no ->"),
        ("One pair{=a -> b}", "at least two"),
        ("Words{#five}", "not a number"),
        ("Wild{=*}", "no answer earns all"),
        ("An order{>2 ALL\na\nb\n}", "at least three"),
        ("Many{" + " ".join(f"~a{n}" for n in range(600)) + " =b}", "at most 500"),
    ],
)
def test_one_bad_question_never_loses_the_others(text, said):
    questions, report = read(f"First?{{=a ~b}}\n\n{text}\n\nLast?{{TRUE}}")
    assert [q.prompt for q in questions if q.prompt != text.partition("{")[0].strip()] == ["First?", "Last?"]
    if said:
        (entry,) = report.skipped()
        assert said in entry.said and "line 3" in entry.question


def test_pairs_words_truth_and_gaps():
    match, words, true, gap, order = read(
        "Capitals{=Canada -> Ottawa =Italy -> Rome = -> Tokyo}\n\nFlag?{=O_DIRECT =direct =%0%O_SYNC#It waits.}\n\n"
        "The sky is blue.{T#Look up.#Well seen.}\n\nA gap {=here ~there} in it.\n\n"
        "Order{>3 ALL VERTICAL\nfirst\nsecond\nthird\n}"
    )[0]
    assert judge(match, {p.id: p.option for p in match.pairs}).correct and len(match.options()) == 3
    assert judge(words, "o_direct").correct and judge(words, "O_SYNC").message.endswith("It waits.")
    assert judge(true, "a").correct and judge(true, "b").message.endswith("Look up.")
    assert gap.prompt == "A gap _____ in it."
    right = [next(s.id for s in order.steps if s.text == text) for text in ("first", "second", "third")]
    assert judge(order, right).correct and sorted(right) != right


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("[html]<p>2 &lt; 3<br>10<sup>9</sup> <b>bold</b></p><script>alert(1)</script>", "2 < 3\n10^9 bold"),
        ("[html]<img src\\=x onerror\\=alert(1) alt\\='a plot'>see", "[a plot]see"),
        ("[plain]<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("[markdown]**a** < `b` <script>alert(1)</script>", "**a** < `b`"),
        ("[markdown]<scr<script></script>ipt>x", "x"),
        ("[moodle]a<b and <i>c</i>", "a<b and c"),
        ("if a < b and c > d", "if a < b and c > d"),
        ("[unknown]x", "[unknown]x"),
        ("R&D &amp; more", "R&D & more"),
    ],
)
def test_formats_become_text(written, read_as):
    assert only(f"{written}{{=a ~b}}").prompt == read_as


def test_comments_categories_and_ids():
    questions, _report = read(
        "\ufeff// a comment\n$CATEGORY: top/x\n\n// [id:My Id] [tag:easy]\n::n::One?{\n"
        "// inside\n=a\n~b\n}\r\n\r\n::n::Two?{=a ~b}"
    )
    assert [q.id for q in questions] == ["my-id", "n"]


def test_two_of_the_same_id_are_both_kept_and_it_is_said():
    questions, report = read("// [id:x]\nOne?{=a ~b}\n\n// [id:x]\nTwo?{=a ~b}")
    assert [q.id for q in questions] == ["x", "x-2"] and any("has the id x" in line for line in report.lines())


def test_an_edited_file_is_read_as_it_was_edited():
    question = Question.model_validate(
        {
            "id": "x", "name": "q7", "kind": "one", "prompt": "Which?", "reread": "There", "choices": [
                {"id": "k1", "text": "one", "correct": True, "explanation": "e"},
                {"id": "k2", "text": "two", "correct": False, "explanation": "e", "misconception": "one-moment"},
                {"id": "k3", "text": "three", "correct": False, "explanation": "e", "misconception": "rounds-up"},
            ],
        }
    )  # fmt: skip
    text = formats.export([bank(question)], "gift")[0].decode()
    same = only(text.replace("~two#", "~2#").replace("=one#", "~one#").replace("~three#", "=three#"))
    assert [(c.id, c.text, c.correct, c.misconception) for c in same.choices] == [
        ("k1", "one", False, UNNAMED),
        ("b", "2", False, UNNAMED),
        ("k3", "three", True, "rounds-up"),
    ]
    assert same.name == "q7" and same.reread == "There"


def test_a_note_that_was_tampered_with_is_left_out_and_said():
    start = '// offload-quiz: {"version":1,'
    for more in (
        '"level":9}',
        '"figure":{"source":"../../x"}}',
        '"choices":5}',
        '"hints":[1]}',
        '"points":"nan"}',
        '"kind":"plot"}',
    ):
        questions, _report = read(f"{start}{more}\nWhich?{{=a ~b}}")
        assert len(questions) == 1 and questions[0].figure is None, more
    assert read("// offload-quiz: {\nWhich?{=a ~b}")[0] and read(f"// offload-quiz: {'[' * 5000}\nWhich?{{=a ~b}}")[0]
    assert read(start + '"right":[{"of":"5:0","value":"1e99999999"}]}\nWhich?{#5}')[0]
    assert read(start + '"points":0.5,"misconceptions":["x"],"id":"evil","name":"q1; drop"}\nWhich?{=a ~b}')[0][0].name == "q1"


def test_ids_of_steps_tell_nothing_of_their_order():
    for texts in itertools.permutations(("first", "second", "third")):
        steps = only("Order{>3 ALL\n" + "\n".join(texts) + "\n}").steps
        assert [step.text for step in steps] == list(texts)
        assert [step.id for step in steps] != sorted(step.id for step in steps)


@pytest.mark.parametrize("forgery", ['"correct":true,', '"text":"three","explanation":"g",', '"credit":1,"explanation":"g",'])
def test_a_note_never_speaks_against_the_file(forgery):
    parts = [
        {"id": "k1", "text": "one", "correct": True, "explanation": "e"},
        {"id": "k2", "text": "two", "correct": False, "explanation": "f", "misconception": "one-moment"},
    ]
    held = Question.model_validate({"id": "x", "name": "q1", "kind": "one", "prompt": "Which?", "choices": parts})
    text = formats.export([bank(held)], "gift")[0].decode()
    forged = text.replace('{"id":"k2"', "{" + forgery + '"id":"k2"')
    forged = forged.replace('"version":1', '"prompt":"Other?","several_right":false,"version":1')
    assert forged != text
    same = only(forged)
    assert same.prompt == "Which?" and [(c.text, c.correct, c.explanation, c.credit) for c in same.choices] == [
        ("one", True, "e", 0),
        ("two", False, "f", 0),
    ]


def test_a_note_numbers_no_options():
    pairs = [
        {"id": f"p{n}", "left": f"l{n}", "right": f"r{n}", "explanation": "e", "misconception": "one-moment"} for n in (1, 2)
    ]
    held = Question.model_validate({"id": "x", "name": "q1", "kind": "match", "prompt": "Which?", "pairs": pairs})
    text = formats.export([bank(held)], "gift")[0].decode()
    same = only(text.replace('"id":"p', '"option":"7","id":"p'))
    assert [pair.option for pair in same.pairs] == ["1", "2"] and [pair.id for pair in same.pairs] == ["p1", "p2"]


def test_thirds_are_thirds():
    from quizzes.interchange.decimals import listed, share, weight

    for part in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20):
        assert share(weight(Fraction(1, part))) == Fraction(1, part) and listed(Fraction(-1, part))
    assert [weight(Fraction(1, n)) for n in (3, 6, 7, 8, 9)] == ["33.33333", "16.66667", "14.28571", "12.5", "11.11111"]
    assert weight(Fraction(-2, 3)) == "-66.66667" and weight(Fraction(5, 6)) == "83.33333" and not listed(Fraction(1, 11))
