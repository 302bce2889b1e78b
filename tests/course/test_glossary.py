"""The glossary: each word is used by the lesson that it names, and its links lead there."""

import re

import nbformat
import pytest

from course import build, glossary, words
from quizzes.say import pseudo

HEADS = {head.number: head for head in build.heads()}
TERMS = [term for term in glossary.terms() if term.lesson in HEADS]


def text_of(number):
    """All that a lesson says, in lines that are not broken."""
    (source,) = (source for source in build.lessons() if source.name.startswith(f"{number}_"))
    return " ".join(" ".join(cell.source for cell in build.cells_of(source)).split())


def says(text, form):
    return re.search(rf"(?<![\w-]){re.escape(form)}(?:s|es)?(?![\w-])", text, re.I)


@pytest.fixture(scope="module")
def page():
    (source,) = (source for source in build.targets() if source.name == "glossary.py")
    notebook = nbformat.reads(build.build(source), as_version=4)
    return "\n\n".join(cell.source for cell in notebook.cells)


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_its_lesson_says_it(term):
    text = text_of(term.lesson)
    assert any(says(text, form) for form in term.forms), f"lesson {term.lesson} says none of {term.forms}"


@pytest.mark.parametrize("term", glossary.terms(), ids=lambda term: term.name)
def test_a_definition_is_one_or_two_sentences(term):
    assert re.fullmatch(r"\d\d", term.lesson)
    assert 1 <= len(re.findall(r"[.!?](?= |$)", re.sub(r"et al\.", "", term.text))) <= 2, term.text
    assert term.text.endswith(".") and 20 < len(term.text) <= 200


def test_what_people_look_for_is_there():
    names = {term.name for term in TERMS}
    assert {"master weight", "exp_avg", "partition", "pinned memory", "bandwidth", "GiB", "GB", "makespan"} <= names


def test_every_term_has_a_heading_and_a_link_to_its_lesson(page):
    parts = dict(re.findall(r"^### (.+)\n\n(.+)$", page, re.M))
    assert set(parts) == {term.name for term in TERMS}
    files = {target.name for target in build.targets().values()}
    for term in TERMS:
        (link,) = re.findall(r"\]\(([^)]+)\)", parts[term.name])
        assert link == HEADS[term.lesson].file and link in files
        assert term.text in parts[term.name] and (not term.unit or f"Unit: {term.unit}." in parts[term.name])
    assert f"{len(TERMS)} words" in page


def test_a_word_of_a_lesson_that_is_not_there_is_left_out():
    known = [glossary.Term("one", "01", "It is one."), glossary.Term("two", "02", "It is two.")]
    said = glossary.markdown(known, [HEADS["01"]])
    assert "### one" in said and "two" not in said


def test_in_another_language_it_is_sorted_by_that_language():
    known = [glossary.Term("a", "01", "First."), glossary.Term("b", "01", "Second.")]
    said = glossary.markdown(
        known, [HEADS["01"]], {"a": "zéro", "First.": "Un.", "b": "b", "Second.": "Deux.", "": ""}.__getitem__
    )
    assert re.findall(r"### (.+)", said) == ["b", "zéro"] and "Un. Taught" in said


def test_a_translator_gets_every_definition():
    gathered = {text for text, _where in words.pages()}
    assert {part for term in glossary.terms() for part in (term.name, term.text)} <= gathered
    assert pseudo(TERMS[0].text) != TERMS[0].text


@pytest.mark.parametrize(
    "written, said",
    [
        ("{", "cannot be read"),
        ("a: 1", "not a list"),
        ("- 5", "5: give it"),
        ("- {term: x, lesson: 01, text: y}", "x: give it"),
        ("- {term: x, text: y}", "x: give it"),
        ("- {term: x, lesson: '01', text: y, units: GB}", "x: give it"),
        ("- {term: x, lesson: '01', text: y, as: z}", "x: give it"),
        ("- {term: x, lesson: '01', text: y}\n- {term: X, lesson: '02', text: z}", "x is there twice"),
    ],
)
def test_a_source_that_is_wrong_is_named(tmp_path, written, said):
    path = tmp_path / "glossaire été.yaml"
    path.write_text(written, encoding="utf-8")
    with pytest.raises(glossary.GlossaryError, match=said):
        glossary.terms(path)


def test_a_source_that_is_not_there_is_named(tmp_path):
    with pytest.raises(glossary.GlossaryError, match=r"none\.yaml cannot be read"):
        glossary.terms(tmp_path / "none.yaml")
