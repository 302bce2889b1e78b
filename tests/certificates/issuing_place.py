"""An issuer's folder for the tests: keys, results, a registry, all made by the commands themselves."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

from typer.testing import CliRunner

from quizzes.certificates import identifier, issuing, signing
from quizzes.certificates.cli import app
from quizzes.certificates.parts import format_time
from quizzes.certificates.published import public_name

URL = "https://example.org/certificates"


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def make_place(path):
    """`path` with the keys `key` and `new`, `results.json` and the registry `reg`. The passphrase stands in the environment."""
    for name in ("key", "new"):
        made = run("keygen", "--out", path / name)
        assert made.exit_code == 0, made.output
    entry = {"student": "ada", "score": 2.6, "max_score": 3.0, "notes": []}
    (path / "results.json").write_text(json.dumps({"assignment": "lesson-01", "results": [entry]}))
    made = run("init", "--registry", path / "reg", "--key", path / "key", "--name", "A School", "--url", URL)
    assert made.exit_code == 0, made.output
    return SimpleNamespace(path=path)


def issue(path, *more, key="key"):
    common = ("--key", path / key, "--registry", path / "reg", "--out", path / "out", "--student", "ada")
    result = run("issue", *common, "--results", path / "results.json", "--lesson", "01", *more)
    assert result.exit_code == 0, result.output
    return Path(result.stdout.splitlines()[0])


def verdict(path, what, *more):
    result = run("verify", what, "--registry", path / "reg", "--json", *more)
    report = json.loads(result.stdout)
    assert result.exit_code == (0 if report["verdict"] == "valid" else 1)
    return report


def unsigned(did, index, issued, *, name="Ada One", until=None, title="Where did the memory go?", base=URL, school="A School"):
    """A certificate of today's shape before it is signed, with the place `index` in the status list (None: no registry)."""
    achieved = issuing.Achieved(
        name, "name", (issuing.Passed("01", title, Decimal(3), Decimal(3)),), Decimal("0.8"), "instructor",
        "1.0", "1.0", (issuing.File.of("results.json", b"{}"),),
    )  # fmt: skip
    return issuing.build(achieved, issuing.Place(did, identifier.new(), base, school, index), issued=issued, valid_until=until)


def signed(private, index, issued, **more):
    """The same, signed at `issued`."""
    return signing.sign(unsigned(public_name(private), index, issued, **more), private, format_time(issued))
