"""QTI items as others write them, 2.1 to 3.0."""

import io
import zipfile
from xml.etree import ElementTree

import pytest

from quizzes.grading import judge
from quizzes.interchange import formats
from quizzes.interchange.qti_names import QTI3, QTI22, humped, hyphened
from quizzes.question import practice


def item(declaration, body, rest="", attributes='cardinality="single" baseType="identifier"', prefix=""):
    return (
        f'<assessmentItem xmlns="http://www.imsglobal.org/xsd/imsqti_v2p1" identifier="I-1" title="t" adaptive="false" '
        f'timeDependent="false"><responseDeclaration identifier="R" {attributes}>{declaration}</responseDeclaration>'
        f"<itemBody>{body}</itemBody>{rest}</assessmentItem>"
    )


def right(*values):
    return f"<correctResponse>{''.join(f'<value>{value}</value>' for value in values)}</correctResponse>"


def choices(*names, most=1, more=""):
    parts = "".join(f'<simpleChoice identifier="{name}"><p>text {name}</p>{more}</simpleChoice>' for name in names)
    asked = f'<p>Think.</p><choiceInteraction responseIdentifier="R" maxChoices="{most}"><prompt>Which?</prompt>'
    return f"{asked}{parts}</choiceInteraction>"


def read(text):
    found = formats.read(text.encode(), "an item.xml")
    return (found.bank.questions[0] if found.bank else None), found.report


def test_one_choice():
    told = '<feedbackInline outcomeIdentifier="F" identifier="B" showHide="show">Not <b>so</b>.</feedbackInline>'
    found, _report = read(item(right("A"), choices("A", "B", "C").replace("text B</p>", f"text B</p>{told}")))
    assert found.prompt == "Think.\nWhich?" and [c.text for c in found.choices] == ["text A", "text B", "text C"]
    assert judge(found, "a").correct and judge(found, "b").message.endswith("Not so.") and found.id == "i-1"


def test_several_by_mapping_and_without():
    mapping = (
        '<mapping defaultValue="0"><mapEntry mapKey="A" mappedValue="1"/><mapEntry mapKey="B" mappedValue="1"/>'
        '<mapEntry mapKey="C" mappedValue="-1"/></mapping>'
    )
    many = 'cardinality="multiple" baseType="identifier"'
    found, _report = read(item(right("A", "B") + mapping, choices("A", "B", "C", most=0), attributes=many))
    assert found.kind == "several" and judge(found, "a, b").correct and judge(found, "a").share == 0.5
    found, report = read(item(right("A", "B"), choices("A", "B", "C", most=0), attributes=many))
    assert judge(found, "a, b").correct and any("all or nothing" in line for line in report.lines())


@pytest.mark.parametrize(
    ("mode", "good", "bad"),
    [
        ('toleranceMode="absolute" tolerance="0.5"', ["12.5", "11.5"], ["12.6"]),
        ('toleranceMode="relative" tolerance="10 10"', ["13.2", "10.8"], ["13.3", "10.7"]),
        ('toleranceMode="exact"', ["12"], ["12.1"]),
    ],
)
def test_numbers(mode, good, bad):
    test = f'<equal {mode}><variable identifier="R"/><correct identifier="R"/></equal>'
    score = '<setOutcomeValue identifier="SCORE"><baseValue baseType="float">3</baseValue></setOutcomeValue>'
    case = f"<responseCondition><responseIf>{test}{score}</responseIf></responseCondition>"
    rest = f"<responseProcessing>{case}</responseProcessing>"
    body = '<p>How many? <textEntryInteraction responseIdentifier="R"/> pieces</p>'
    found, _report = read(item(right("12"), body, rest, 'cardinality="single" baseType="float"'))
    assert found.kind == "number" and found.prompt == "How many? pieces"
    assert all(judge(found, text).correct for text in good) and not any(judge(found, text).correct for text in bad)


def test_words_pairs_and_order():
    mapping = '<mapping><mapEntry mapKey="York" mappedValue="1"/><mapEntry mapKey="york city" mappedValue="0.5"/></mapping>'
    body = '<p>Where? <textEntryInteraction responseIdentifier="R"/></p>'
    words, report = read(item(right("York") + mapping, body, attributes='cardinality="single" baseType="string"'))
    assert judge(words, "york").correct and not judge(words, "york city").correct
    assert any("a part of the points" in line for line in report.lines())

    sides = ""
    for names in ("AB", "XYZ"):
        parts = (f'<simpleAssociableChoice identifier="{n}" matchMax="1">{n}</simpleAssociableChoice>' for n in names)
        sides += f"<simpleMatchSet>{''.join(parts)}</simpleMatchSet>"
    body = f'<matchInteraction responseIdentifier="R">{sides}</matchInteraction>'
    match, _report = read(item(right("A X", "Y B"), body, attributes='cardinality="multiple" baseType="directedPair"'))
    assert match is None or [(p.left, p.right) for p in match.pairs] == [("A", "X"), ("B", "Y")]
    assert match.prompt == "(no text)" and [part.text for part in match.extra] == ["Z"]

    body = choices("A", "B", "C").replace("choiceInteraction", "orderInteraction")
    order, _report = read(item(right("B", "C", "A"), body, attributes='cardinality="ordered" baseType="identifier"'))
    assert [step.text for step in order.steps] == ["text B", "text C", "text A"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (item(right("A"), "<p>no interaction</p>"), "0 interactions"),
        (item(right("A"), choices("A", "B") * 2), "2 interactions"),
        (item(right("A"), '<extendedTextInteraction responseIdentifier="R"/>'), "extendedTextInteraction"),
        (item("", choices("A", "B")), "no choice"),
        (item(right("Q"), choices("A", "B")), "no choice"),
        (item(right("A"), choices("A", "A")), "same id"),
        (item(right("A"), choices("A", "B").replace('responseIdentifier="R"', 'responseIdentifier="Q"')), "not declared"),
        (item(right("x"), '<textEntryInteraction responseIdentifier="R"/>', attributes='baseType="float"'), "not a number"),
        ('<assessmentItem identifier="x"/>', "no body"),
    ],
)
def test_what_cannot_be_taken_over_is_said(text, said):
    found, report = read(text)
    assert found is None and said in report.lines()[0]


def test_scripts_and_pictures_stay_away():
    body = '<p>See <img src="x.png" alt="a plot"/> <script>alert(1)</script><object data="y"/>it.</p>' + choices("A", "B")
    found, report = read(item(right("A"), body))
    assert found.prompt.startswith("See [a plot] it.") and "alert" not in found.prompt
    assert any("pictures" in line for line in report.lines())


def test_an_indented_line_stays_indented():
    (held,) = [held for held in practice("07").questions if "\n    bench" in held.prompt][:1]
    with zipfile.ZipFile(io.BytesIO(formats.export([practice("07")], "qti22")[0])) as package:
        root = ElementTree.fromstring(package.read(f"items/{held.id}.xml"))
    lines = [node.tail for node in root.iter(f"{{{QTI22.items}}}br") if node.tail]
    assert any(line.startswith("\u00a0" * 4 + "bench") for line in lines)


def test_names_of_the_two_editions():
    for one, other in (("simpleChoice", "simple-choice"), ("matchMax", "match-max"), ("prompt", "prompt")):
        assert hyphened(one) == other and humped(f"qti-{other}") == one


@pytest.mark.parametrize("edition", [QTI22, QTI3], ids=lambda edition: edition.name)
def test_every_item_holds_together(edition):
    """What the standard asks of an item: names used are declared, identifiers are unique names, files are in the manifest."""
    data, report = formats.export([practice("05")], edition.name)
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        manifest = ElementTree.fromstring(package.read("imsmanifest.xml"))
        listed = {node.get("href") for node in manifest.iter(f"{{{edition.package}}}resource")}
        assert listed == set(package.namelist()) - {"imsmanifest.xml"} and len(listed) == report.questions
        for name in sorted(listed):
            root = ElementTree.fromstring(package.read(name))
            _holds_together(root, edition)


def _holds_together(root, edition):
    found = {}
    for node in root.iter():
        space, _brace, tag = node.tag.rpartition("}")
        assert space == "{" + edition.items and (tag in ("p", "br") or tag.startswith("qti-") is (edition is QTI3))
        plain = {humped(name) if edition is QTI3 else name: value for name, value in node.attrib.items()}
        found.setdefault(humped(tag), []).append((plain, node))
    declared = {plain["identifier"] for kind in ("responseDeclaration", "outcomeDeclaration") for plain, _ in found[kind]}
    for nodes in found.values():
        for plain, _node in nodes:
            assert {plain[key] for key in ("responseIdentifier", "outcomeIdentifier") if key in plain} <= declared
    for kind in ("variable", "correct", "mapResponse", "setOutcomeValue"):
        assert {plain["identifier"] for plain, _ in found.get(kind, ())} <= declared
    offered = [plain["identifier"] for kind in ("simpleChoice", "simpleAssociableChoice") for plain, _ in found.get(kind, ())]
    assert len(set(offered)) == len(offered)
    assert all(name[0].isalpha() or name[0] == "_" for name in (*offered, *declared))
    keys = [part for plain, _ in found.get("mapEntry", ()) for part in plain["mapKey"].split()]
    if offered:
        assert set(keys) <= set(offered)
        values = [part for _, node in found["value"] for part in (node.text or "").split()]
        assert set(values) - {"0"} <= set(offered)
    bodies = [node for _, node in found.get("modalFeedback", ())]
    wanted = "qti-content-body" if edition is QTI3 else "p"
    assert all(child.tag.endswith("}" + wanted) for node in bodies for child in node)
