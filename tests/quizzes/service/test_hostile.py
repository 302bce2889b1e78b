"""Whatever is sent, the service answers with a status below 500, in JSON, and records nothing that was not an answer."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quizzes.service.body import LARGEST


def raw(ada, data, kind="application/json"):
    headers = ada.headers | {"Content-Type": kind}
    return ada.client.post("/lessons/01/answers", headers=headers, content=data)


def answer(value: str, **more: str) -> bytes:
    """An answer whose `answer` is this JSON text."""
    fields = {"question": '"q1"', "attempt": "1", "nonce": '"nonce-0001"', "answer": value} | more
    return ("{" + ",".join(f'"{name}":{text}' for name, text in fields.items()) + "}").encode("utf-8", "surrogatepass")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"", 400),
        (b"\xff\xfe", 400),
        (b"[" * 5000, 400),
        (answer("[" * 200 + "]" * 200), 400),
        (answer("NaN"), 400),
        (answer("-Infinity"), 400),
        (answer("1e999"), 400),
        (answer(r'"\ud800"'), 400),
        (answer(r'{"\udfff": "1"}'), 400),
        (answer('"\ud800"'), 400),
        (answer(str(2**53 + 1)), 400),
        (answer(str(2**63)), 400),
        (answer("9" * 5000), 400),
        (answer('"a"') + b"x", 400),
        (answer('"a"', answer2='"b"').replace(b"answer2", b"answer"), 400),
        (b"null", 422),
        (b"[]", 422),
        (b"{}", 422),
        (answer("null"), 422),
        (answer("[[1]]"), 422),
        (answer('{"a": {"b": 1}}'), 422),
        (answer(json.dumps("x" * 2001)), 422),
        (answer(json.dumps(["a"] * 201)), 422),
        (answer('"a"', extra="1"), 422),
        (answer('"a"', attempt="true"), 422),
        (answer('"a"', attempt="1.5"), 422),
        (answer('"a"', attempt=str(2**40)), 422),
        (answer('"a"', attempt="0"), 422),
        (answer('"a"', nonce='"short"'), 422),
        (answer('"a"', nonce=r'"nonce\u00000001"'), 422),
        (answer('"a"', nonce='"nonce-٣٣٣"'), 422),
        (answer('"a"', locale='"../../etc"'), 422),
        (answer('"a"', locale='["en"]'), 422),
        (answer('"a"', question='"q1\\n"'), 422),
        (answer('"a"', question='"q99"'), 404),
        (b" " * (LARGEST + 1), 413),
    ],
)
def test_what_is_no_answer_is_refused_in_words(ada, data, status):
    reply = raw(ada, data)
    assert reply.status_code == status, reply.text
    assert set(reply.json()) == {"error", "message"} and reply.json()["message"].endswith((".", ")"))
    assert ada.lesson().json()["answers"] == []


@pytest.mark.parametrize(
    "value", ['"\\u0000"', '"a\\u0000"', "true", "[true]", '"\\ud83d\\ude00"', "1e308", "-0.0", '{"": ""}']
)
@pytest.mark.parametrize("name", ["q1", "q2", "q3", "q4"])
def test_odd_answers_are_judged_or_asked_again(ada, name, value):
    reply = raw(ada, answer(value, question=f'"{name}"'))
    assert reply.status_code == 200 and reply.json().get("share", 0) < 1
    assert raw(ada, answer(value, question=f'"{name}"')).content == reply.content


def test_a_body_without_a_length_is_stopped_too(ada):
    def endless():
        for _ in range(1000):
            yield b" " * 1000

    assert raw(ada, endless()).status_code == 413


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_a_form_of_another_site_is_no_answer(ada, kind):
    assert raw(ada, answer('"c"'), kind).status_code == 415


texts = st.text(max_size=30) | st.sampled_from(["a", "c", "1,234 GB", "1/0", "u: 1", "\0"])
values = st.none() | st.booleans() | st.integers() | st.floats() | texts
anything = st.recursive(values, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["q1", "q2", "q3", "q4", "q9", "", "\0"]), anything, anything)
def test_any_value_in_any_place(ada, question, value, attempt):
    content = {"question": question, "attempt": attempt, "answer": value, "nonce": "nonce-0001"}
    data = json.dumps(content).encode("utf-8", "surrogatepass")  # writes NaN and Infinity, as Python does
    assert raw(ada, data).status_code < 500
    assert raw(ada, json.dumps(content | {"attempt": 1}).encode()).status_code < 500


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_any_bytes(ada, data):
    assert 400 <= raw(ada, data).status_code < 500
