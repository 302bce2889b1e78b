"""JSON read strictly, and its canonical form against RFC 8785."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quizzes.certificates.strict_json import DEEPEST, MalformedJsonError, canonical, loads

NAMES = ["arrays", "french", "structures", "unicode", "values", "weird"]


@pytest.mark.parametrize("name", NAMES)
def test_the_pairs_of_rfc_8785(vectors, name):
    folder = vectors("rfc8785-cyberphone", "testdata")
    value = loads((folder / "input" / f"{name}.json").read_bytes())
    assert canonical(value) == (folder / "output" / f"{name}.json").read_bytes()
    assert canonical(value) == bytes.fromhex((folder / "outhex" / f"{name}.txt").read_text())


def test_no_pair_is_left_out(vectors):
    folder = vectors("rfc8785-cyberphone", "testdata", "input")
    assert sorted(path.stem for path in folder.iterdir()) == NAMES


@pytest.mark.parametrize(
    ("written", "form"),
    [
        (b'{"\xef\xac\xb3":1,"\xf0\x9f\x98\x80":2}', '{"😀":2,"\ufb33":1}'),  # UTF-16 order: D83D before FB33
        (b"[10.0, 1e-7, -0.0, 1e21, 0.1]", "[10,1e-7,0,1e+21,0.1]"),
        (b'"\\u00e9\\u0007\\/"', '"é\\u0007/"'),
    ],
)
def test_canonical_where_other_systems_differ(written, form):
    assert canonical(loads(written)) == form.encode()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_canonical_bytes_are_their_own_canonical_form(value):
    form = canonical(value)
    assert canonical(json.loads(form, parse_int=float)) == form
    assert canonical(value) == canonical(loads(json.dumps(value, indent=1).encode(), number=float))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nul",
        b"{'a':1}",
        b'{"a":1,}',
        b'{"a":1}{}',
        b'{"a":1}\0',
        b"\xef\xbb\xbf{}",
        b'{"a":"\xff"}',
        b'"\xed\xa0\x80"',
        b'{"a":NaN}',
        b"[Infinity]",
        b"[-Infinity]",
        b"[1e999]",
        b"[1e99999999999999999999999]",
        b'{"a":1,"a":1}',
        b'{"a":1,"\\u0061":2}',
        b'{"b":{"a":1,"a":2}}',
        b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1),
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b"9" * 5000,
        b'"\x01"',
    ],
)
@pytest.mark.parametrize("number", [float, Decimal])
def test_what_is_not_strict_json_is_refused_in_words(data, number):
    if data == b"[1e999]" and number is Decimal:
        assert loads(data, number) == [Decimal("1e999")]
        return
    with pytest.raises(MalformedJsonError) as caught:
        loads(data, number)
    assert len(str(caught.value)) < 200


def test_depth_counts_brackets_and_not_text():
    assert loads(b"[" * DEEPEST + b"]" * DEEPEST)
    assert loads(b'["' + b"[" * 1000 + b'\\"' + b"{" * 1000 + b'"]') == ["[" * 1000 + '"' + "{" * 1000]
    assert loads(b"[" + b"[]," * 1000 + b"[]]")


@pytest.mark.parametrize("value", ["\ud800", {"\ud800": 1}, 2**53, float("nan"), float("inf"), Decimal(1), {1: 2}])
def test_what_has_no_canonical_form_is_refused(value):
    with pytest.raises(MalformedJsonError, match="canonical"):
        canonical(value)
