"""Damaged files: read as far as they can be, or refused with a message; never a traceback, never a bank that is none."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interchange_making import EVIL

from quizzes.interchange import formats
from quizzes.interchange.files import InterchangeError
from quizzes.question import practice

KINDS = {question.kind: question for question in practice("05").questions}
HELD = practice("05").model_copy(update={"questions": tuple(KINDS.values())})
WHOLE = {form: formats.export([HELD], form)[0] for form in formats.FORMS}
PIECES = [
    b"{", b"}", b"=", b"~", b"#", b"->", b"\n\n", b"\0", b"\xff", b"<", b">", b"&", b"]]>", b"<!--", b"<!DOCTYPE a>", b"%",
    b"1e999", b"-1", b"nan", b'"version":1,', b'"kind":"match"', b'"choices":[{"of":1}]', b"fraction=\"\"", b"RESPONSE",
    *(text.encode() for text in EVIL[:8]),
]  # fmt: skip


def harmless(data, form=None):
    try:
        found = formats.read(data, "a file", form)
    except InterchangeError as error:
        assert str(error) and len(str(error)) < 600
        return
    assert found.report.lines() is not None and found.report.to_json()
    if found.bank is not None:
        assert formats.checked(found.bank)


@pytest.mark.parametrize("form", list(formats.FORMS))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damage(form, data):
    whole = WHOLE[form]
    for _turn in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(whole)))
        end = min(len(whole), place + data.draw(st.integers(0, 40)))
        whole = whole[:place] + data.draw(st.sampled_from([*PIECES, b"", whole[place:end] * 2])) + whole[end:]
    harmless(whole[: data.draw(st.sampled_from([len(whole), len(whole) // 2]))])


@pytest.mark.parametrize("form", ["qti22", "qti3"])
def test_a_header_that_is_not_what_the_directory_says_is_not_quoted_whole(form):
    """zipfile quotes the name that stands there, and a damaged length makes everything after it the name."""
    whole = bytearray(WHOLE[form])
    whole[26:28] = b"\xff\x7f"  # length of the first entry's name
    with pytest.raises(InterchangeError, match="damaged") as caught:
        formats.read(bytes(whole) + bytes(40_000), "a file")
    assert len(str(caught.value)) < 600


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(parts=st.lists(st.sampled_from([*PIECES, b"a", b" ", b"\n", b"::t::", b"// [id:x]\n", b"T", b"5:1"]), max_size=20))
def test_text_of_signs(parts):
    harmless(b"".join(parts) or b"x", "gift")


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.binary(min_size=1, max_size=200), st.sampled_from([b"", b"<", b"PK\x03\x04", b"<quiz>", b"\xff\xfe", b"\xef\xbb\xbf"])
)
def test_anything(data, start):
    harmless(start + data)


ATOMS = [*EVIL, "1/3", "1/0", "a", "b", "one", "x" * 6000]
JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(ATOMS)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["of", "id", "text", "value", "order", "source"]), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = [
    *("name", "level", "kind", "points", "reread", "hints", "hint_cost", "unit", "figure", "several_right", "prompt"),
    *("explanation", "accepted", "right", "choices", "traps", "wrong", "steps", "pairs", "extra", "mistakes"),
]
ASKED = ["Which?{=a ~b}", "Words?{=a =%0%b}", "How many?{#5:1 =%0%6}", "Order{>3\na\nb\nc\n}", "Pairs{=a -> b =c -> d}"]


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(field=st.sampled_from(FIELDS), value=JUNK)
def test_notes_of_any_content(field, value):
    """A note is a stranger's word as well: it may add nothing that a question can't have."""
    line = "// offload-quiz: " + json.dumps({"version": 1, field: value})
    found = formats.read("\n\n".join(f"{line}\n{question}" for question in ASKED).encode(), "a file", "gift")
    assert found.bank is not None and len(found.bank.questions) == len(ASKED), found.report.lines()
    assert formats.checked(found.bank)
