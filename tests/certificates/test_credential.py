"""The credential: Open Badges 3.0 as 1EdTech's schema has it, closed against anything else."""

from __future__ import annotations

import copy
import dataclasses
import json
import uuid
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quizzes.certificates import credential, text
from quizzes.certificates.credential import CredentialError, read


def test_it_fits_the_official_open_badges_schema(vectors, secured):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema comes with nbformat")
    schema = json.loads(vectors("1edtech-ob3", "ob_v3p0_achievementcredential_schema.json").read_text())
    jsonschema.Draft201909Validator(schema).validate(secured)
    broken = copy.deepcopy(secured)
    del broken["credentialSubject"]["achievement"]["criteria"]
    assert list(jsonschema.Draft201909Validator(schema).iter_errors(broken))


def test_it_says_what_was_reached_how_it_was_assessed_and_what_is_not_claimed(secured):
    certificate = read(secured)
    assert certificate.points == "2.5 of 3 points (2.4 needed)"
    assert certificate.learner == "Zoë ]]> <b>O'Neil</b> & “김민준”"
    assert certificate.credentialSubject.achievement.name == "Lesson 01: Where did the memory go?"
    narrative = certificate.evidence[0].narrative
    assert "offline with nbgrader" in narrative and "lesson-01" in narrative and "2.5 of 3" in narrative
    assert "identity of the learner was not checked" in certificate.evidence[0].description
    assert certificate.credentialSubject.achievement.criteria.narrative.startswith("At least 80 %")


def test_the_same_lesson_is_the_same_achievement_and_another_is_not(award, did, issued):
    def achievement(**changes):
        made = credential.build(dataclasses.replace(award, **changes), issuer=did, issued=issued, identifier=uuid.uuid4())
        return made["credentialSubject"]["achievement"]["id"]

    assert achievement() == achievement(learner="Bob", score=Decimal(3))
    assert achievement() != achievement(lesson="02")


def parts_of(value, path=()):
    """Every object and every leaf of a JSON value, by path."""
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from parts_of(inner, (*path, key))
    if isinstance(value, list):
        for place, inner in enumerate(value):
            yield from parts_of(inner, (*path, place))


def with_change(value, path, change):
    value = copy.deepcopy(value)
    inner = value
    for step in path[:-1]:
        inner = inner[step]
    change(inner, path[-1])
    return value


def test_every_key_is_needed_and_no_other_is_taken(secured):
    for path, value in parts_of(secured):
        if isinstance(value, dict):
            extra = with_change({"root": secured}, ("root", *path), lambda inner, step: inner[step].update({"x": "y"}))
            with pytest.raises(CredentialError, match="x"):
                read(extra["root"])
        if path:
            less = with_change(secured, path, lambda inner, step: inner.pop(step))
            with pytest.raises(CredentialError):
                read(less)


FREE = {("proof", "proofValue"), ("proof", "verificationMethod")}
"""Text of any kind as far as the shape goes; the signature speaks about these."""


@pytest.mark.parametrize("wrong", [None, True, 0, 1.5, "", [], {}, ["x"], {"x": "y"}, "\ud800", "a\u202eb", "x" * 500])
def test_every_value_has_its_type(secured, wrong):
    for path, value in parts_of(secured):
        if path and path not in FREE and json.dumps(value) != json.dumps(wrong):

            def put(inner, step):
                inner[step] = wrong

            with pytest.raises(CredentialError):
                read(with_change(secured, path, put))


def test_an_end_of_validity_is_optional(award, did, issued):
    made = credential.build(award, issuer=did, issued=issued, valid_until=issued + timedelta(days=1), identifier=uuid.uuid4())
    assert made["validUntil"] == "2026-03-02T12:00:00Z"


@pytest.mark.parametrize(
    "stamp",
    [
        "2026-3-1T12:00:00Z",
        "2026-03-01T12:00:00",
        "2026-03-01t12:00:00z",
        "2026-02-30T12:00:00Z",
        "2026-03-01T24:00:00Z",
        "2026-03-01T12:00:00+00:00",
        "2026-03-01T12:00:00.0Z",
        "２０２６-03-01T12:00:00Z",
        "2026-03-01T12:00:00Z\n",
        "",
    ],
)
def test_a_time_has_one_way_to_be_written(stamp):
    with pytest.raises(ValueError):
        credential.parse_time(stamp)


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(9999, 1, 1)), st.integers(-14, 14))
def test_times_there_and_back(moment, hours):
    moment = moment.replace(microsecond=0)
    local = moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=hours)))
    assert credential.parse_time(credential.format_time(local)) == local


@pytest.mark.parametrize(
    ("points", "written"),
    [
        ("3.000000", "3"),
        ("0", "0"),
        ("0.500000", "0.5"),
        ("100", "100"),
        ("1E+2", "100"),
        ("2.333333", "2.333333"),
        ("10.0", "10"),
    ],
)
def test_points_are_written_plainly(points, written):
    assert credential.format_points(Decimal(points)) == written


@pytest.mark.parametrize(
    "symbol", ["\0", "\n", "\x1b", "\x7f", "\x85", "\u2028", "\u202e", "\u2066", "\ufeff", "\ud800", "\ufffe", "\U0010ffff"]
)
def test_hidden_characters_are_refused_and_made_visible(symbol):
    with pytest.raises(ValueError, match=f"U\\+{ord(symbol):04X}"):
        text.check(f"a{symbol}b")
    shown = text.printable(f"a{symbol}b")
    assert symbol not in shown and shown.startswith("a\\") and shown.endswith("b")


def test_names_are_tidied_and_scripts_left_alone():
    assert text.tidy("  Zoe\u0308 \u00a0 Smith\t") == "Zoë Smith"
    for name in ("김민준", "نور‌الدین", "José Ñandú", "O'Neil-Łukasz", "👩‍💻"):
        assert text.check(name) == name


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=120), st.integers(5, 60))
def test_wrapping_loses_nothing_and_keeps_the_limit(content, limit):
    content = " ".join(content.split(" "))
    lines = text.wrap(content, limit)
    assert "".join(lines).replace(" ", "") == content.replace(" ", "")
    assert all(text.width(line) <= limit for line in lines)
