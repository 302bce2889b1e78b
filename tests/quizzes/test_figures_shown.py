"""Where figures of questions are shown: widgets, text, an assignment, the service."""

import json
import re
from html import unescape

import nbformat
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from nbconvert import HTMLExporter

from quizzes import Quiz, quiz
from quizzes.canary import search
from quizzes.figures import FigureError, picture
from quizzes.lint import secrets
from quizzes.nbgrader.edition import handed_out
from quizzes.nbgrader.notebook import build, filled, read_answers
from quizzes.question import KEYS, Question
from quizzes.service.judging import Judge
from quizzes.widgets import Board

LESSONS = ("02", "04", "06", "08")  # of which a graded question has a figure


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setattr(quiz, "_open", {})
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)


def figured(bank):
    return [question for question in bank.questions if question.figure is not None]


def test_a_card_has_the_figure_between_prompt_and_choices():
    opened = Quiz("06", "fr")
    cards = Board(opened).cards
    for question in figured(opened.bank):
        prompt, figure, first, *_ = cards[question.name].box.children
        assert question.prompt[:20] in unescape(prompt.value) and figure.value == picture(question, "fr").html()
        assert first is cards[question.name].controls[0]
    assert len(figured(opened.bank)) == 2 and cards["q1"].box.children[1] is cards["q1"].controls[0]


def test_a_quiz_as_text_has_the_table_under_the_prompt():
    opened = Quiz("04")
    told = str(opened).replace("\n   ", "\n")
    for question in figured(opened.bank):
        assert picture(question).text() in told
    assert "<img" not in told


def test_other_numbers_have_another_figure():
    opened = Quiz("04")
    before = picture(opened.bank["q10"]).text()
    opened.answer("q10", "b")
    assert before not in opened.again("q10") and before != picture(opened.bank["q10"]).text()


def test_without_widgets_a_notebook_shows_the_pictures(monkeypatch):
    seen = []
    monkeypatch.setattr(quiz, "shell", lambda: object())
    monkeypatch.setattr("IPython.display.display", lambda content, **more: seen.append(content))
    monkeypatch.setattr(Board, "show", lambda self: False)
    opened = Quiz("04")
    opened.show()
    images = [content["text/html"] for content in seen if "<img" in content.get("text/html", "")]
    assert len(images) == 2 and all("The figure of q" in image for image in images)


@pytest.mark.parametrize("lesson", LESSONS)
def test_an_assignment_has_them_in_its_text_and_keeps_them(lesson, tmp_path):
    bank = handed_out(lesson)
    notebook = build(bank)
    nbformat.validate(notebook)
    path = tmp_path / "devoir noté.ipynb"
    path.write_text(nbformat.writes(notebook), encoding="utf-8")
    again = nbformat.read(path, 4)
    (question,) = figured(bank)
    drawn = picture(question)
    for whole in (notebook, again, filled(bank, {question.name: "a"})):
        (text,) = (cell.source for cell in whole.cells if cell.id == f"{question.name}-text")
        assert drawn.html() in text.split("\n")  # on a line of its own: one block, which Markdown leaves alone
    assert read_answers(path, bank.questions)[0] == {}
    page, _ = HTMLExporter().from_notebook_node(again)
    assert 'alt="' in page and "<details>" in page and drawn.tables()[0].caption in page
    private = {text: "key" for other in bank.questions for text in secrets(other) if len(text) > 15}
    assert search("quiz.ipynb", path.read_bytes(), private) == []
    assert len(path.read_bytes()) < 200_000


def test_the_service_sends_the_picture_in_the_locale_of_the_learner():
    judge = Judge(KEYS, Ed25519PrivateKey.generate(), attempts=2)
    for locale, written in (("en", r"1,[34][05]0"), ("fr", "1\u202f[34][05]0")):
        (sent,) = (each for each in judge.shown("08", "ada", locale, {}) if each["figure"])
        assert set(sent["figure"]) == {"title", "svg", "alternative", "tables"} and json.dumps(sent)
        assert re.match(f"({written}) million", sent["figure"]["title"])


def test_a_figure_that_cannot_be_drawn_names_its_question():
    choices = [
        {"id": "a", "text": "yes", "correct": True, "explanation": "e"},
        {"id": "b", "text": "no", "correct": False, "explanation": "f", "misconception": "all-hidden"},
    ]
    asked = Question(
        id="l04-x", name="q1", kind="plot", prompt="The figure?", choices=choices,
        figure={"source": "timeline", "schedule": "magic"},
    )  # fmt: skip
    with pytest.raises(FigureError, match="question l04-x, figure: schedule: 'magic' is not one of"):
        picture(asked)
