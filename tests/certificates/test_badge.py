"""The picture: it shows the credential, carries it, and takes nothing from it as markup."""

from __future__ import annotations

import dataclasses
import re
import uuid
import xml.etree.ElementTree as ET

import pytest
import segno
from hypothesis import given, settings
from hypothesis import strategies as st

from quizzes.certificates import badge, credential, signing, text
from quizzes.certificates.strict_json import canonical

SVG = "{http://www.w3.org/2000/svg}"
BAKED = "{https://purl.imsglobal.org/ob/v3p0}credential"
ALLOWED = {SVG + name for name in ("svg", "title", "desc", "rect", "text", "path")} | {BAKED}


@pytest.fixture(scope="module")
def svg(secured):
    return badge.render(secured)


def test_an_xml_parser_finds_the_credential_baked_in_as_open_badges_says(svg, secured):
    root = ET.fromstring(svg)
    first = root[0]
    assert first.tag == BAKED and not first.attrib
    assert first.text.encode() == canonical(secured)


def test_our_reader_finds_the_same(svg, secured):
    assert badge.embedded(svg) == (1, canonical(secured))


def test_it_can_be_read_without_being_seen(svg, secured):
    root = ET.fromstring(svg)
    certificate = credential.read(secured)
    assert root.get("role") == "img"
    labels = [root.find(f"*[@id='{name}']") for name in root.get("aria-labelledby").split()]
    assert [label.tag for label in labels] == [SVG + "title", SVG + "desc"]
    assert certificate.learner in labels[0].text and certificate.credentialSubject.achievement.name in labels[0].text
    evidence = certificate.evidence[0]
    for said in (certificate.learner, certificate.points, evidence.narrative, evidence.description, certificate.id):
        assert said in labels[1].text


def test_the_visible_text_says_what_the_credential_says(svg, secured):
    seen = " ".join(element.text for element in ET.fromstring(svg).iter(SVG + "text"))
    certificate = credential.read(secured)
    evidence = certificate.evidence[0]
    for said in (certificate.learner, certificate.points, evidence.narrative, evidence.description, certificate.id):
        assert said in seen
    assert certificate.issuer.id in seen and certificate.validFrom[:10] in seen


names = st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=credential.LONGEST_NAME)
NASTY = [
    "]]>",
    "]]]]><![CDATA[>",
    "]]></openbadges:credential>",
    "<![CDATA[",
    "<script>alert(1)</script>",
    "</text></svg>",
    "&lt;",
    "&amp;amp;",
    "\"'`",
    "<!--",
    "-->",
    "{{7*7}}",
    "<img src=a onerror=x>",
    "김민준",
    "😀",
]
nasty = st.sampled_from(NASTY)


@settings(max_examples=60, deadline=None)
@given(st.one_of(nasty, names, st.tuples(nasty, names).map("".join).map(lambda name: name[: credential.LONGEST_NAME])))
def test_any_name_stays_a_name(award, did, issued, private, name):
    try:
        name = text.tidy(name)
    except ValueError:
        return
    if not 1 <= len(name) <= credential.LONGEST_NAME:
        return
    made = dataclasses.replace(award, learner=name, title=name, assignment=name)
    unsigned = credential.build(made, issuer=did, issued=issued, identifier=uuid.uuid4())
    secured = signing.sign(unsigned, private, "2026-03-01T12:00:00Z")
    drawn = badge.render(secured)
    root = ET.fromstring(drawn)
    assert {element.tag for element in root.iter()} <= ALLOWED
    assert not [key for element in root.iter() for key in element.attrib if key.startswith("on") or "href" in key]
    assert badge.embedded(drawn) == (1, canonical(secured))
    assert root[0].text.encode() == canonical(secured)
    assert name in root.find(SVG + "title").text


def test_the_longest_texts_stay_on_the_sheet(award, did, issued, private):
    longest = "寒" * credential.LONGEST_NAME
    made = dataclasses.replace(award, learner=longest, title=longest, assignment=longest)
    unsigned = credential.build(made, issuer=did, issued=issued, valid_until=issued, identifier=uuid.uuid4())
    root = ET.fromstring(badge.render(signing.sign(unsigned, private, "2026-03-01T12:00:00Z")))
    lines = list(root.iter(SVG + "text"))
    assert all(float(line.get("y")) < 750 for line in lines)
    for line in lines:
        if line.get("text-anchor") == "middle":
            assert float(line.get("y")) < 440 and text.width(line.text) * float(line.get("font-size")) <= 1040


def test_the_qr_code_is_the_text_with_a_quiet_zone_and_modules_large_enough(svg, secured):
    root = ET.fromstring(svg)
    path = root.find(SVG + "path")
    paper = root.findall(SVG + "rect")[-1]
    certificate = credential.read(secured)
    expected = segno.make_qr(badge.qr_text(certificate), error="m", mask=0, boost_error=False)
    side = len(expected.matrix)
    drawn = [[0] * side for _ in range(side)]
    for x, y, length in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\3z", path.get("d")):
        for column in range(int(x), int(x) + int(length)):
            drawn[int(y)][column] = 1
    assert drawn == [list(row) for row in expected.matrix]
    assert re.sub(r"M\d+ \d+h(\d+)v1h-\1z", "", path.get("d")) == ""
    left, top, scale = (float(part) for part in re.findall(r"[\d.]+", path.get("transform")))
    assert scale >= 3.9
    assert left - float(paper.get("x")) == pytest.approx(4 * scale, abs=0.01)
    assert top - float(paper.get("y")) == pytest.approx(4 * scale, abs=0.01)
    assert (side + 8) * scale == pytest.approx(float(paper.get("width")), abs=0.01)
    assert paper.get("fill") == "#ffffff" and path.get("fill") == "#000000"


def test_the_qr_code_leads_to_this_one_file(secured):
    certificate = credential.read(secured)
    said = badge.qr_text(certificate).split("\n")
    assert said[1:] == [secured["id"], secured["issuer"]["id"], secured["proof"]["proofValue"]]


@pytest.mark.parametrize("edition", [0, 4, -1, 9999])
def test_an_unknown_edition_is_said_to_be_one(secured, edition):
    with pytest.raises(badge.BadgeError, match="does not know"):
        badge.render(secured, edition)


@pytest.mark.parametrize(
    "data", [b"", b"<svg>", b"<svg/>", b'<?xml version="1.0"?>', b'<svg data-edition="01" ', b'<svg data-edition="1" />']
)
def test_another_svg_is_not_a_certificate(data):
    with pytest.raises(badge.BadgeError):
        badge.embedded(data)
