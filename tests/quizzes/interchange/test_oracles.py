"""Readers of others on what we write: a converter of QTI, a parser of Moodle XML."""

import io
import zipfile
from xml.etree import ElementTree

import pytest

from quizzes.interchange import formats
from quizzes.interchange.edition import edition
from quizzes.question import BANK, every

BANKS = every(BANK)


def outline(node):
    """An element as a value; where its schema lies is left out, which has no one right answer."""
    attributes = {name: value for name, value in node.attrib.items() if "schemaLocation" not in name}
    inner = tuple(outline(child) for child in node)
    return (node.tag, tuple(sorted(attributes.items())), (node.text or "").strip(), (node.tail or "").strip(), inner)


def test_our_qti_3_is_what_a_converter_makes_of_our_qti_2():
    convert = pytest.importorskip("qti_convert.upgrade", reason="the converter of QTI is in the extra interop")
    for held in BANKS.values():
        two, three = (zipfile.ZipFile(io.BytesIO(formats.export([held], form)[0])) for form in ("qti22", "qti3"))
        names = [name for name in two.namelist() if name != "imsmanifest.xml"]
        assert len(names) == len(held.questions)
        for name in names:
            made = convert.upgrade_qti2_to_qti3(two.read(name))
            assert outline(ElementTree.fromstring(made)) == outline(ElementTree.fromstring(three.read(name))), name


def test_a_parser_of_moodle_finds_every_choice():
    parser = pytest.importorskip("moodle_xml_parser.parser", reason="the parser of Moodle XML is in the extra interop")
    for held in BANKS.values():
        wanted = [edition(question) for question in held.questions if question.choices]
        found = parser.parse_bytes(formats.export([held], "moodle")[0])["multichoice"]
        for question, read in zip(wanted, found, strict=True):
            assert (read.name, read.text_pre_parse) == (question.id, question.prompt.strip())
            assert read.single is (question.kind != "several") and read.default_grade == question.points
            for choice, option in zip(question.choices, read.options, strict=True):
                assert (option.answer, option.feedback) == (choice.text, choice.explanation)
                assert (option.score_fraction > 0) is choice.correct
