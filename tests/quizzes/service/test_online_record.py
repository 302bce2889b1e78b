"""The record of a graded quiz: read whatever it holds, joined with other copies of itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quizzes.online.sheet import Sheet, from_json
from quizzes.online.together import together

RUN = "0" * 32

KEYS = st.sampled_from(["nonce", "question", "answer", "at", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(KEYS, part, max_size=4),
)
NAMES = [
    "lesson",
    "version",
    "run",
    "issuers",
    "replies",
    "unsent",
    "refused",
    "last",
    "drafts",
    "questions",
    "others",
    "service",
]


@given(st.dictionaries(st.sampled_from(NAMES), JSON), JSON)
def test_whatever_a_file_holds_is_read_or_said(content, more):
    for found in (content, more, {"version": 1, "lesson": "01"} | content, together(content, content), together(more, content)):
        notes = []
        sheet = from_json(found, notes)
        assert sheet is not None or notes
        if sheet is not None:
            assert from_json(sheet.to_json(), []) == sheet


def entry(number, at="2026-12-03T00:00:00+00:00"):
    return {"question": f"q{number % 3}", "attempt": 1, "answer": "a", "nonce": f"n{number}", "locale": "en", "edition": "",
            "at": at, "run": RUN}  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["one", "two", "both"]), st.booleans()), max_size=12))
def test_copies_are_joined_and_what_is_settled_in_one_waits_in_none(given_):
    copies = {"one": Sheet("01", run=RUN), "two": Sheet("01", run=RUN)}
    every, settled = set(), set()
    for number, where, refuse in given_:
        for name in ("one", "two") if where == "both" else (where,):
            nonce = f"n{number}"
            every.add(nonce)
            if nonce not in copies[name].refused:
                copies[name].wait(entry(number))
            if refuse:
                copies[name].not_counted(nonce, "stale", "why")
                settled.add(nonce)
    for one, two in (("one", "two"), ("two", "one")):
        sheet = from_json(together(copies[one].to_json(), copies[two].to_json()), notes := [])
        assert not notes and set(sheet.refused) == settled and set(sheet.unsent) == every - settled
