"""A key that shows in any encoding is found; the bank's own lint."""

import base64
import codecs
import gzip
import html
import io
import json
import quopri
import struct
import tarfile
import unicodedata
import zipfile
from urllib.parse import quote, quote_plus

import pytest
from typer.testing import CliRunner

from quizzes.canary import encodings, flags, private, search
from quizzes.cli import app
from quizzes.lint import check_question
from quizzes.question import Question, graded

SECRET = 'A private "explanation": 4 + 4, é'
TEXTS = {SECRET: "the secret"}


def zipped(data):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner.bin", data)
    return held.getvalue()


def tarred(data):
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        entry = tarfile.TarInfo("inner.bin")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return held.getvalue()


PLAIN = b"before " + SECRET.encode() + b" after"
PLANTED = {
    "plain": PLAIN,
    "broken line": PLAIN.replace(b" 4 +", b"\n    4 +"),
    "json": json.dumps({"a": SECRET}).encode(),
    "json in json": json.dumps({"a": json.dumps(SECRET)}).encode(),
    "notebook lines": json.dumps({"cells": [{"source": ["A private ", SECRET[10:]]}]}).encode(),
    **{f"base64 {n}": b"x = '" + base64.b64encode(b"?" * n + PLAIN) + b"'" for n in range(3)},
    "base64 url": base64.urlsafe_b64encode(PLAIN),
    "base64 lines": base64.encodebytes(PLAIN * 4),
    "hex": PLAIN.hex().encode(),
    "HEX": PLAIN.hex().upper().encode(),
    "utf-16": SECRET.encode("utf-16"),
    "utf-16 be": SECRET.encode("utf-16-be"),
    "utf-32": SECRET.encode("utf-32"),
    "utf-7": SECRET.encode("utf-7"),
    "decomposed": unicodedata.normalize("NFD", SECRET).encode(),
    "backwards": SECRET[::-1].encode(),
    "rot13": codecs.encode(SECRET, "rot13").encode(),
    "base32": b"x = '" + base64.b32encode(PLAIN) + b"'",
    "every letter as \\u": "".join(f"\\u{ord(letter):04x}" for letter in SECRET).encode(),
    "every letter as \\U": "".join(f"\\U{ord(letter):08X}" for letter in SECRET).encode(),
    "every letter as \\u{}": "".join(f"\\u{{{ord(letter):x}}}" for letter in SECRET).encode(),
    "every byte as \\x": "".join(f"\\x{byte:02x}" for byte in PLAIN).encode(),
    "every byte in octal": "".join(f"\\{byte:03o}" for byte in PLAIN).encode(),
    "\\u in JSON in JSON": json.dumps("".join(f"\\u{ord(letter):04x}" for letter in SECRET)).encode(),
    "per cent": quote(SECRET).encode(),
    "per cent, form": quote_plus(SECRET).encode(),
    "every byte as per cent": "".join(f"%{byte:02X}" for byte in PLAIN).encode(),
    "entities": html.escape(SECRET).encode("ascii", "xmlcharrefreplace"),
    "every letter as an entity": "".join(f"&#{ord(letter)};" for letter in SECRET).encode(),
    "every letter as a hex entity": "".join(f"&#x{ord(letter):x};" for letter in SECRET).encode(),
    "quoted-printable": quopri.encodestring(PLAIN * 4),
    "a list of bytes": str(list(PLAIN)).encode(),
    "other quotes and markup": SECRET.replace('"', "«").replace("private", "*private*").encode(),
    "capitals": SECRET.upper().encode(),
    "gzip": gzip.compress(PLAIN),
    "zip": zipped(PLAIN),
    "tar.gz": tarred(PLAIN),
    "zip in tar": tarred(zipped(PLAIN)),
    "gzip in base64 in json": json.dumps({"a": base64.b64encode(gzip.compress(PLAIN)).decode()}).encode(),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_canary_is_found(name):
    assert search(name, PLANTED[name], TEXTS)
    assert not search(name, PLANTED[name], {"a text that was never there": "other"})


def test_the_command_exits_1_and_names_where(tmp_path):
    explanation = graded("01").questions[0].choices[-1].explanation
    path = tmp_path / "release.zip"
    path.write_bytes(zipped(base64.b64encode(explanation.encode())))
    done = CliRunner().invoke(app, ["canary", str(path)])
    assert done.exit_code == 1 and "release.zip > inner.bin" in done.output and explanation not in done.output
    path.write_bytes(zipped(b"nothing of it"))
    assert CliRunner().invoke(app, ["canary", str(path)]).exit_code == 0


def one(*texts, **more):
    choices = [
        {"id": "abc"[n], "text": text, "correct": n == 0, "explanation": "why", "misconception": "gib-for-gb"} | more
        for n, text in enumerate(texts)
    ]
    return Question.model_validate({"id": "t", "name": "q1", "kind": "one", "prompt": "?", "choices": choices})


def test_lint_finds_what_gives_an_answer_away():
    assert "longest" in check_question(one("a right choice that says far more than the others", "short", "brief"))[0]
    assert "stays_last" in check_question(one("all of the above", "none of them at all", "x"))[0]
    assert not check_question(one("eight", "all of the above", "sixteen", stays_last=True))
    steps = [{"id": name, "text": name} for name in "abc"]
    order = {"id": "t", "name": "q1", "kind": "order", "prompt": "?", "steps": steps, "explanation": "so"}
    assert "give it away" in check_question(Question.model_validate(order))[0]


@pytest.mark.parametrize("values, well", [([1, 2, 100], True), ([1, 101], False), ([0, 5], False), (["1e9", "3e9"], True)])
def test_lint_bounds_the_difficulty_of_variants(values, well):
    fields = {"id": "t", "name": "q1", "kind": "number", "prompt": "{n}?", "unit": "count", "explanation": "so"}
    question = Question.model_validate(fields | {"value": {"formula": "n * 2"}, "variants": {"n": values}})
    assert (check_question(question) == []) == well


def test_flags_and_values_of_the_key_are_private():
    texts = private(graded("01").questions)
    assert "48000000000" in texts  # 8 bytes for each of 6 billion parameters
    planted = base64.b64encode(b'"choices": [{"id": "a", "correct": true}] and more of it')
    assert search("quiz-01.ipynb", planted, flags())


def test_a_letter_beyond_four_digits_is_found_as_two_surrogates():
    secret = "a private explanation with a 𝛽 in it"
    everything = "".join(f"\\u{half:04x}" for half in struct.unpack(f"<{len(secret) + 1}H", secret.encode("utf-16-le")))
    assert search("x", everything.encode(), {secret: "the secret"})


@pytest.mark.parametrize("before", range(3))
@pytest.mark.parametrize("after", range(3))
@pytest.mark.parametrize("text", [SECRET, SECRET + "x", SECRET + "xy"])
def test_every_alignment_of_base64_is_looked_for_undecoded(before, after, text):
    coded = base64.b64encode(b"?" * before + text.encode() + b"!" * after)
    assert any(form in coded for how, form in encodings(text).items() if how.startswith("base64"))
