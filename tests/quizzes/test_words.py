"""Catalogues that are broken, wrong or hostile; plural forms; which language is spoken; a quiz that changes its language."""

import ast
import os
import re
import struct
import subprocess
import sys
from pathlib import Path
from string import Formatter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quizzes import languages, say
from quizzes import quiz as quizzes_quiz
from quizzes.fields import complaint, fields, plural_complaint
from quizzes.grading import judge
from quizzes.languages import forget, from_environment, negotiate
from quizzes.question import BANK, KEYS, every
from quizzes.quiz import Quiz
from quizzes.say import _, _n, language, words

ROOT = Path(__file__).parents[2]
FRENCH, KOREAN = "nplurals=2; plural=(n > 1);", "nplurals=1; plural=0;"


def mo(texts, plural=FRENCH):
    """A .mo file as gettext's manual lays it out: a header, two tables of lengths and places, the texts."""
    held = {"": f"Content-Type: text/plain; charset=UTF-8\nPlural-Forms: {plural}\n", **texts}
    pairs = sorted((key.encode(), value.encode()) for key, value in held.items())
    place, tables = 28 + 16 * len(pairs), b""
    for column in (0, 1):
        for pair in pairs:
            tables += struct.pack("<II", len(pair[column]), place)
            place += len(pair[column]) + 1
    body = b"".join(pair[column] + b"\0" for column in (0, 1) for pair in pairs)
    return struct.pack("<7I", 0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, 28) + tables + body


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Write a catalogue of a language, which is read from then on."""
    monkeypatch.setenv("OFFLOAD_LAB_LOCALES", str(tmp_path))
    monkeypatch.setattr(say, "_chosen", ["en"])
    monkeypatch.setattr(quizzes_quiz, "_open", {})

    def write(name, content, domain="offload_lab"):
        path = tmp_path / name / "LC_MESSAGES" / f"{domain}.mo"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else mo(content))
        forget()
        return path

    forget()
    yield write
    forget()


@pytest.mark.parametrize(
    "asked, spoken",
    [("fr_CA.UTF-8", "fr"), ("fr", "fr"), ("FR-fr", "fr"), ("ko_KR.eucKR@dict", "ko"), ("C", "en"), ("C.UTF-8", "en"),
     ("POSIX", "en"), ("de_DE", "en"), ("de:ko:fr", "ko"), ("", "en"), (None, "en"), ("../../etc", "en"), ("fr/../x", "en"),
     ("f", "en"), ("français", "en"), ("en_GB", "en"), ("xx", "xx"), ("fr\0", "en")],
)  # fmt: skip
def test_which_language_is_spoken(asked, spoken):
    assert negotiate(asked) == spoken


@given(st.text(max_size=40))
def test_no_name_is_a_path_or_an_error(name):
    found = negotiate(name)
    assert found in languages.known()
    with language(name):
        assert isinstance(_("Misconceptions"), str)


def test_the_environment_in_gettexts_order():
    assert from_environment({"OFFLOAD_LAB_LANG": "ko", "LANG": "fr_FR.UTF-8"}) == "ko"
    assert from_environment({"LC_ALL": "fr_FR", "LANG": "ko_KR", "LC_MESSAGES": "ko_KR"}) == "fr"
    assert from_environment({"LANG": "fr_FR.UTF-8", "LANGUAGE": "ko:fr"}) == "ko"
    assert from_environment({"LANG": "C.UTF-8", "LANGUAGE": "fr"}) == "en", "as gettext: C takes no notice of LANGUAGE"
    assert from_environment({}) == "en"


def test_a_catalogue_of_a_country_comes_before_that_of_its_language(put):
    put("fr", {"Question": "Question fr", "Verdict": "Verdict fr"})
    put("fr_CA", {"Question": "Question ca"})
    with language("fr_CA.UTF-8"):
        assert (_("Question"), _("Verdict"), _("Misconceptions")) == ("Question ca", "Verdict fr", "Misconceptions")
    with language("fr_BE"):
        assert _("Question") == "Question fr"


@pytest.mark.parametrize(
    "broken",
    [b"", b"\xde\x12\x04", b"not a catalogue", mo({"a": "b"})[:40], mo({"a": "b"})[:-9],
     mo({"a": "b"}, "nplurals=2; plural=(n"), mo({"a": "b"}, "nplurals=2; plural=__import__('os')"),
     mo({"a": "b"}).replace(b"UTF-8", b"KLNGN"),
     mo({"a": "\u00e9"}).replace("\u00e9".encode(), b"\xff\xfe"), b"\xde\x12\x04\x95" + b"\xff" * 24, b"\0" * 5000],
)  # fmt: skip
def test_a_broken_catalogue_is_english_and_said_once(put, capsys, broken):
    path = put("fr", broken)
    with language("fr"):
        assert _("Question") == _("Question") == "Question"
        assert (
            _n("One more belongs to the answer.", "{count} more belong to the answer.", 2).format(count=2).startswith("2 more")
        )
    said = capsys.readouterr().err
    assert said.count(str(path)) == 1 and "make words" in said


def test_a_catalogue_that_is_not_there_is_said_once_to_who_asks_for_it(put, capsys):
    assert say.speak("ko_KR.UTF-8") == "ko" == say.speak("ko")
    assert capsys.readouterr().err.count("no catalogue of ko") == 1
    assert _("Question") == "Question"


BAD = ["Not {name}", "{percent!r} {name}", "{percent}", "{percent!r:>9}", "{0}", "{}", "{percent!r", "}", "{percent.__class__}",
       "{percent!r} {percent.__init__.__globals__}", "", "<script>alert(1)</script> {percent!r}", "<b>{percent!r}</b>",
       "{percent!r} [x](javascript:alert(1))"]  # fmt: skip


@pytest.mark.parametrize("told", BAD)
def test_a_translation_that_does_not_fit_is_english_and_no_error(put, told):
    source = "Not noted: {percent!r} is not a number from 0 to 100."
    assert not told or complaint(source, told)
    put("fr", {source: told})
    with language("fr"):
        assert _(source).format(percent=300) == "Not noted: 300 is not a number from 0 to 100."


@given(st.text(max_size=60), st.text(max_size=60))
def test_whatever_fits_can_be_filled(source, told):
    if not complaint(source, told) and "{" not in fields(source):
        names = {re.split(r"[.\[!:]", field.strip("{}"))[0] for field in fields(source)}
        if all(name.isidentifier() for name in names) and not any(mark in f for f in fields(source) for mark in ".[!:"):
            told.format(**dict.fromkeys(names, 1))


ONE, MANY = "{passed} of {cases} case", "{passed} of {cases} cases"


def test_french_counts_nothing_as_one_and_korean_has_one_form(put):
    put("fr", {f"{ONE}\0{MANY}": "{passed} cas sur {cases}\0{passed} cas sur {cases} (pluriel)"})
    put("ko", mo({f"{ONE}\0{MANY}": "{cases}개 중 {passed}개"}, KOREAN))
    with language("fr"):
        said = [_n(ONE, MANY, n).format(passed=0, cases=n) for n in (0, 1, 2)]
    assert said == ["0 cas sur 0", "0 cas sur 1", "0 cas sur 2 (pluriel)"]
    with language("ko"):
        assert {_n(ONE, MANY, n) for n in range(5)} == {"{cases}개 중 {passed}개"}
    with language("en"):
        assert [_n(ONE, MANY, n) for n in (0, 1, 2)] == [MANY, ONE, MANY]


def test_plural_forms_that_cannot_be_used():
    one, many = "One more.", "{count} more."
    assert plural_complaint(one, many, ["Une.", "{count} de plus."], lambda n: int(n != 1)) == ""
    assert "count" in plural_complaint(one, many, ["Une.", "{count} de plus."], lambda n: int(n > 1)), "0 is its first form too"
    assert plural_complaint(one, many, ["{count}"], lambda n: 0) == ""
    assert "forms" in plural_complaint(one, many, ["{count}"], lambda n: int(n != 1))
    assert "computed" in plural_complaint(one, many, ["{count}"], lambda n: n // 0)
    assert "<img" in plural_complaint(one, many, ["{count} <img src=x>"], lambda n: 0)


def test_markup_in_a_translation_is_shown_and_not_obeyed(put):
    """Even where the English has a sign that a check would let pass, a translation is escaped where English is."""
    from quizzes.answers import Record, as_html

    put("fr", {"Your answer": "a < b > c & \" '", "Verdict": "<script>alert(1)</script>"})
    with language("fr"):
        html = as_html(Record("01"), [("q1", "p", "a", "v")])
    assert "a &lt; b &gt; c &amp;" in html and "<script" not in html


def test_a_quiz_changes_its_language_and_keeps_its_answers(put):
    bank = next(bank for bank in every(BANK).values() if bank.lesson == "01")
    asked = next(question for question in bank.questions if question.variants)
    for name in ("fr", "ko"):
        put(name, {asked.prompt: f"[{name}] {asked.prompt}"}, "lesson_01")
        put(name, {"Quiz: {title}": name + " {title}"})
    quiz = Quiz("01", language="en")
    quiz.answer(asked.name, "1" if asked.kind == "number" else asked.choices[0].id if asked.choices else "x")
    before, variant, points = quiz.recorded(asked.name), quiz.bank[asked.name].variant, quiz.score
    for name in ("fr_CA.UTF-8", "ko_KR", "fr"):
        assert Quiz("01", language=name) is quiz
        assert quiz.bank[asked.name].prompt.startswith(f"[{name[:2]}] ") and str(quiz).startswith(f"{name[:2]} ")
        assert (quiz.recorded(asked.name), quiz.bank[asked.name].variant, quiz.score) == (before, variant, points)
        assert "{" not in quiz.bank[asked.name].prompt, "its numbers are drawn"
    Quiz("01", language="en")
    assert str(quiz).startswith("Quiz: ") and quiz.recorded(asked.name) == before


def test_a_word_is_accepted_in_both_languages_and_two_rights_stay_two(put, capsys):
    texts = [(bank.lesson, q) for bank in every(BANK).values() for q in bank.questions if q.kind == "text" and not q.variants]
    lesson, asked = texts[0]
    put("ko", mo({asked.accepted[0]: "모멘트"}, KOREAN), f"lesson_{lesson}")
    quiz = Quiz(lesson, language="ko")
    assert quiz.answer(asked.name, "모멘트").correct and quiz.answer(asked.name, asked.accepted[0]).correct
    pairs = [(bank.lesson, q) for bank in every(BANK).values() for q in bank.questions if q.kind == "match" and not q.variants]
    lesson, asked = pairs[0]
    put("ko", mo({asked.pairs[0].left: "같다", asked.pairs[1].left: "같다"}, KOREAN), f"lesson_{lesson}")
    Quiz(lesson, language="en")
    assert Quiz(lesson, language="ko").bank[asked.name].pairs[0].left == asked.pairs[0].left, "asked in English, not mixed up"
    assert asked.id in capsys.readouterr().err


def test_a_word_is_worth_the_same_online_and_in_a_class(put, monkeypatch):
    """A Korean word that the service takes counts in `offload-quiz grade` too, whatever language the grader speaks."""
    from quizzes.nbgrader.edition import handed_out
    from quizzes.nbgrader.notebook import build

    found = [(bank.lesson, q) for bank in every(KEYS).values() for q in bank.questions if q.kind == "text" and not q.variants]
    if not found:
        pytest.skip("the keys are not installed")
    lesson, asked = found[0]
    assert not judge(handed_out(lesson)[asked.name], "모멘트").correct
    told = {asked.accepted[0]: "모멘트", asked.prompt: "무엇입니까?"}
    monkeypatch.setattr(languages, "KEYS", put("ko", mo(told, KOREAN), "keys").parents[2])
    put("ko", mo({"Quiz: {title}": "퀴즈: {title}"}, KOREAN))
    marks = []
    for name in ("en", "fr", "ko"):
        with language(name):
            here = handed_out(lesson)[asked.name]
            assert judge(here, "모멘트").correct and judge(here, asked.accepted[0]).correct
            assert not judge(here, "모멘트가 아니다").correct
            shown = build(handed_out(lesson)).cells
        assert shown[0].source.startswith("# 퀴즈: ") == (name == "ko")
        assert any("무엇입니까?" in cell.source for cell in shown) == (name == "ko")
        marks.append([cell.metadata.get("nbgrader") for cell in shown])
    assert marks[0] == marks[1] == marks[2]


def test_two_languages_at_once_do_not_mix(put):
    put("fr", {"Question": "La question"})
    with language("fr"):
        with language("ko"):
            assert _("Question") == "Question"
        assert words("offload_lab", "Question") == "La question"
    assert _("Question") == "Question"


def test_the_command_line_speaks_the_language_of_its_environment(put, tmp_path):
    put("fr", {"No answers yet in {path}.": "Aucune réponse dans {path}."})
    there = {"LANG": "fr_FR.UTF-8", "LC_ALL": "", "LC_MESSAGES": "", "LANGUAGE": "", "OFFLOAD_LAB_LANG": ""}
    here = os.environ | there | {"OFFLOAD_LAB_PROGRESS": str(tmp_path / "p.json"), "PYTHONIOENCODING": "utf-8"}
    line = [sys.executable, "-m", "quizzes.cli", "progress", "show"]
    done = subprocess.run(line, cwd=ROOT, env=here, capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert done.stdout.startswith("Aucune réponse dans")


SOURCES = [p for part in ("quizzes", "course") for p in sorted((ROOT / part).rglob("*.py")) if "src" not in p.parts]


def test_every_sentence_gets_the_fields_that_it_names():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = getattr(node, "func", None)
            held = called.value if isinstance(called, ast.Attribute) and called.attr == "format" else None
            if isinstance(held, ast.Call) and getattr(held.func, "id", "") in {"_", "_n"}:
                given_here = {word.arg for word in node.keywords}
                for text in (arg.value for arg in held.args[:2] if isinstance(arg, ast.Constant)):
                    named = {re.split(r"[.\[]", part[1])[0] for part in Formatter().parse(str(text)) if part[1] is not None}
                    assert named <= given_here, (path.name, node.lineno)
                    assert "" not in named, f"{path.name}, line {node.lineno}: a place without a name cannot change its order"


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def test_nothing_hides_the_function_that_translates():
    """A loop's `_`, in a function that says something, would be called instead of it."""
    for path in SOURCES:
        for scope in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(scope, (*FUNCTIONS, *COMPREHENSIONS)):
                inside = list(ast.walk(scope))
                # The names of a comprehension are its own, and hide nothing around it.
                inner = [part for n in inside if isinstance(n, COMPREHENSIONS) and n is not scope for part in ast.walk(n)]
                bound = {n for n in inside if isinstance(n, ast.Name) and n.id == "_" and isinstance(n.ctx, ast.Store)}
                called = any(isinstance(n, ast.Call) and getattr(n.func, "id", "") == "_" for n in inside)
                assert not (bound - set(inner) and called), (path.name, scope.lineno)


def test_the_service_asks_in_the_learners_language(put, monkeypatch):
    """Graded questions have their own catalogue, beside the keys and not where learners' catalogues lie."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from quizzes.service.judging import Judge

    banks = every(KEYS)
    if not banks:
        pytest.skip("the keys are not installed")
    asked = next(iter(banks.values())).questions[0]
    path = put("fr", {asked.prompt: f"[fr] {asked.prompt}"}, "keys")
    judge = Judge(KEYS, Ed25519PrivateKey.generate(), 2)
    lesson = next(iter(banks.values())).lesson
    assert judge.edition(lesson, asked.name, "ann", 1, "ko").prompt[:4] != "[fr]"
    assert judge.edition(lesson, asked.name, "ann", 2, "fr").prompt[:4] != "[fr]", "not out of the learners' folder"
    monkeypatch.setattr(languages, "KEYS", path.parents[2])
    forget()
    assert judge.edition(lesson, asked.name, "bob", 1, "fr").prompt.startswith("[fr] ")
    assert not judge.edition(lesson, asked.name, "bob", 1, "en").prompt.startswith("[fr] ")
