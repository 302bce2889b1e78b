"""An issuer's folder for the tests: keys, results, a registry, all made by the commands themselves."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

from typer.testing import CliRunner

from quizzes.certificates.cli import app

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
