"""Files made to do harm, and files that are broken: refused with name, line and what to do; nothing read, nothing written."""

import io
import stat
import zipfile

import pytest

from quizzes.interchange import files, formats, qti_package, safe_xml
from quizzes.interchange.files import InterchangeError
from quizzes.interchange.safe_xml import DEEPEST

GOOD = (
    b'<question type="truefalse"><questiontext><text>Yes?</text></questiontext>'
    b'<answer fraction="100"><text>true</text></answer><answer fraction="0"><text>false</text></answer></question>'
)


def refused(data, *said, name="an upload.xml", form=None):
    with pytest.raises(InterchangeError) as error:
        formats.read(data, name, form)
    for part in (name, *said):
        assert part in str(error.value), str(error.value)
    assert "\n" not in str(error.value) and len(str(error.value)) < 500


LAUGHS = (
    b"<?xml version='1.0'?>\n<!DOCTYPE quiz [<!ENTITY a 'ha'>"
    + b"".join(b"<!ENTITY %c '%s'>" % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(20))
    + b"]>\n<quiz>&t;</quiz>"
)


@pytest.mark.parametrize(
    "data",
    [
        b'<?xml version="1.0"?>\n<!DOCTYPE quiz [<!ENTITY x SYSTEM "file:///etc/passwd">]>\n<quiz>&x;</quiz>',
        b'<?xml version="1.0"?>\n<!DOCTYPE quiz [<!ENTITY % x SYSTEM "http://127.0.0.1:9/x.dtd">%x;]>\n<quiz/>',
        b'<?xml version="1.0"?>\n<!DOCTYPE quiz SYSTEM "http://127.0.0.1:9/x.dtd">\n<quiz/>',
        b'<?xml version="1.0"?>\n<!DOCTYPE quiz PUBLIC "-//X" "x.dtd">\n<quiz/>',
        b"<?xml version='1.0'?>\n<!DOCTYPE html>\n<quiz/>",
        LAUGHS,
    ],
    ids=["file", "parameter", "external", "public", "harmless", "laughs"],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_document_types_are_refused(data, encoding):
    text = data.decode()
    for quote in "'\"":
        text = text.replace(f"version={quote}1.0{quote}", f"version={quote}1.0{quote} encoding={quote}{encoding}{quote}")
    refused(text.encode(encoding), "line 2", "take the declaration out")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"<quiz>" + b"<a>" * 5000, "deep"),
        (b"<quiz>\n" + GOOD + b"\n<question", "line 3"),
        (b"<quiz>\n" + GOOD, "too early"),
        (b"<quiz>&nbsp;</quiz>", "undefined entity"),
        (b"<quiz>\n\n<a></b></quiz>", "line 3"),
        (b"<quiz>a\0b</quiz>", "line 1"),
        (b"<?xml version='1.0' encoding='klingon'?><quiz/>", "UTF-8"),
        (b"<?xml version='1.0' encoding='utf-7'?><quiz/>", "UTF-8"),
        (b"<?xml version='1.0' encoding='shift_jis'?><quiz/>", "UTF-8"),
        (b"<?xml version='1.0' encoding='utf-8'?>\n<quiz>\xff\xfe</quiz>", "line 2"),
        (b"<html><body>Log in</body></html>", "neither Moodle XML"),
        (b"<questestinterop/>", "export it as one of these"),
        (b"<quiz/>", "no question"),
        (b"<quiz>" + b"<question/>" * 5001 + b"</quiz>", "5,000"),
    ],
    ids="deep cut ends entity tags nul klingon utf7 sjis bytes html qti1 none many".split(),  # noqa: SIM905
)
def test_broken_xml_is_named(data, said):
    refused(data, said)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"One?{=a ~b}\n\nTwo\0?{=a ~b}", "line 3"),
        (b"One?{=a ~b}\n\nCaf\xe9?{=a ~b}", "line 3"),
        (b"\xff\xfe" + "Yes?{T}".encode("utf-16-le") + b"\0", "UTF-8"),
        (b"// nothing\n", "no question"),
        (b"One?{=a ~b}\n\n" * 5001, "5,000"),
    ],
    ids=["nul", "latin", "half", "empty", "many"],
)
def test_broken_text_is_named(data, said):
    refused(data, said, name="an upload.gift")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_what_says_its_encoding_is_read(encoding):
    found = formats.read("한국어 − é?{=a ~b}".encode(encoding), "x.gift")
    assert found.bank.questions[0].prompt == "한국어 − é?"
    if encoding != "utf-32":
        good = GOOD.decode().replace("Yes", "한국어")
        text = f"<?xml version='1.0' encoding='{encoding.removesuffix('-sig')}'?><quiz>{good}</quiz>"
        assert formats.read(text.encode(encoding), "x.xml").bank.questions[0].prompt == "한국어?"


def test_xinclude_is_not_followed(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    ask = f'<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="{tmp_path}/secret.txt" parse="text"/>'.encode()
    found = formats.read(b"<quiz>\n" + GOOD.replace(b"Yes?", b"Yes?" + ask) + b"</quiz>", "x.xml")
    assert found.bank.questions[0].prompt == "Yes?" and "secret" not in formats.as_yaml(found.bank)
    assert any("line 2" in line and "xi:include" in line for line in found.report.lines())


def test_limits_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST", 1000)
    (tmp_path / "large é.gift").write_bytes(b"x" * 1001)
    with pytest.raises(InterchangeError, match=r"large é\.gift has more than 1,000 bytes"):
        files.read_bytes(tmp_path / "large é.gift")
    (tmp_path / "empty").write_bytes(b" \n")
    for path, said in ((tmp_path / "empty", "is empty"), (tmp_path, "is a folder"), (tmp_path / "none", "is not there")):
        with pytest.raises(InterchangeError, match=said):
            files.read_bytes(path)


def package(*entries, manifest=True):
    made = io.BytesIO()
    listed = "".join(
        f'<resource type="imsqti_item_xmlv2p2" href="{name}"/>' for name, _data in entries if isinstance(name, str)
    )
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        if manifest:
            archive.writestr("imsmanifest.xml", f"<manifest><resources>{listed}</resources></manifest>")
        for name, data in entries:
            archive.writestr(name, data)
    return made.getvalue()


def item(text="Yes?"):
    return (
        '<assessmentItem identifier="x" title="t">'
        '<responseDeclaration identifier="R" cardinality="single" baseType="identifier">'
        "<correctResponse><value>A</value></correctResponse></responseDeclaration><itemBody>"
        f'<choiceInteraction responseIdentifier="R" maxChoices="1"><prompt>{text}</prompt><simpleChoice identifier="A">a'
        '</simpleChoice><simpleChoice identifier="B">b</simpleChoice></choiceInteraction></itemBody></assessmentItem>'
    )


def link(name):
    entry = zipfile.ZipInfo(name)
    entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return entry


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([("../../evil.xml", item())], "leads out"),
        ([("/etc/evil.xml", item())], "leads out"),
        ([("a/../../evil.xml", item())], "leads out"),
        ([("..\\evil.xml", item())], "leads out"),
        ([("C:\\evil.xml", item())], "leads out"),
        ([(link("items/x.xml"), "/etc/passwd")], "is a link"),
        ([("x.xml", "<a" + " " * 30_000_000 + "/>")], "20,000,000"),
        ([(f"{n}.xml", b" " * 9_000_000) for n in range(4)], "20,000,000"),
    ],
    ids=["up", "absolute", "hidden", "backslash", "drive", "link", "bomb", "bombs"],
)
def test_archives_that_do_harm_are_refused(entries, said):
    refused(package(*entries), said, name="a package.zip")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_archives_that_are_damaged_are_refused():
    refused(package(("readme.txt", "no item"), manifest=False), "no item", name="p.zip")
    refused(package(("x.xml", item()), ("x.xml", item("No?"))), "there twice", name="p.zip")
    whole = package(("x.xml", item()))
    refused(whole[: len(whole) // 2], "damaged", name="p.zip")
    refused(b"PK\x03\x04" + b"\0" * 50, "damaged", name="p.zip")
    spoiled = bytearray(package(("x.xml", item("word " * 50)), manifest=False))
    spoiled[60] ^= 255
    refused(bytes(spoiled), "damaged", name="p.zip")
    locked = bytearray(whole)
    for place in (whole.index(b"PK\x01\x02") + 8, 6):
        locked[place] |= 1
    refused(bytes(locked), "encrypted", name="p.zip")


def test_too_many_elements(monkeypatch):
    monkeypatch.setattr(safe_xml, "MOST_ELEMENTS", 1000)
    refused(b"<quiz>" + b"<a/>" * 1001 + b"</quiz>", "1,000", "line 1")


def test_too_many_files(monkeypatch):
    monkeypatch.setattr(qti_package, "MOST_FILES", 3)
    refused(package(*((f"{n}.xml", "<a/>") for n in range(4))), "more than 3 files", name="p.zip")


def test_one_bad_item_never_loses_the_others():
    laugh = "<!DOCTYPE x [<!ENTITY a 'b'>]><assessmentItem/>"
    entries = [
        ("a.xml", item()),
        ("b.xml", laugh),
        ("c.xml", "<assessmentItem"),
        ("d.xml", "<assessmentItem/>"),
        ("e.xml", item("Two?")),
    ]
    data = package(*entries)
    found = formats.read(data, "p.zip")
    assert [q.prompt for q in found.bank.questions] == ["Yes?", "Two?"]
    assert len({entry.question for entry in found.report.skipped()}) == 3
    assert any("b.xml" in entry.said and "line 1" in entry.said for entry in found.report.skipped())


def test_a_manifest_may_name_what_is_not_there():
    made = io.BytesIO(package(("a.xml", item())))
    with zipfile.ZipFile(made, "a") as archive:
        archive.writestr("b/imsmanifest.xml", "<manifest/>")
    assert formats.read(made.getvalue(), "p.zip").bank.questions
    listed = '<manifest><resources><resource type="imsqti_item_xmlv2p2" href="../../etc/passwd"/></resources></manifest>'
    found = formats.read(package(("imsmanifest.xml", listed), manifest=False), "p.zip")
    assert found.bank is None and "has no XML file" in found.report.lines()[0]


def test_depth_just_within_the_limit_is_read():
    inside = b"<b>" * (DEEPEST - 4) + b"deep" + b"</b>" * (DEEPEST - 4)
    found = formats.read(b"<quiz>" + GOOD.replace(b"Yes?", inside) + b"</quiz>", "x.xml")
    assert found.bank.questions[0].prompt == "deep"
