"""The progress file taken to another machine, and what is left of it when its writer is killed."""

import json
import os
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from quizzes.cli import app
from quizzes.progress import Progress

KILLED = """
import os, sys
from quizzes.progress import Progress
where, path = sys.argv[1:]
real = getattr(os, where)
def killed(*given):
    if where == "fsync":
        os.truncate(given[0], os.fstat(given[0]).st_size // 2)  # the worst that a half-written file can be
    os.kill(os.getpid(), 9)
setattr(os, where, killed)
Progress(path).note("01", "new", {"answer": "a", "share": 0.0, "at": "2026-01-02"})
"""
LOOP = """
import sys
from quizzes.progress import Progress
progress = Progress(sys.argv[1])
print("begun", flush=True)
for number in range(100_000):
    progress.note("01", f"q{number}", {"answer": "a" * 500, "share": 0.0, "at": "2026-01-02"})
"""


def entry(answer, day):
    return {"answer": answer, "share": 0.0, "at": f"2026-01-{day:02d}T00:00:00+00:00"}


def run(*words):
    done = CliRunner().invoke(app, ["progress", *map(str, words)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


@pytest.fixture
def machines(tmp_path):
    """Two folders, each a machine with its progress: x differs, y and z are on one of them only."""
    for name, answers in {"a": {"x": entry("a", 1), "y": entry("c", 1)}, "b": {"x": entry("b", 2), "z": entry("d", 1)}}.items():
        (tmp_path / name).mkdir()
        for question, held in answers.items():
            Progress(tmp_path / name / "progress.json").note("01", question, held)
    return tmp_path


def test_two_machines_are_merged_and_a_conflict_keeps_both(machines):
    a, b, file = machines / "a", machines / "b", machines / "out.json"
    assert run("export", file, "--course", b)[0] == 0
    code, said = run("import", file, "--course", a)
    assert code == 1 and "2 answers were added; there are 3 questions" in said
    assert "1) b, 2026-01-02" in said and "2) a, 2026-01-01" in said and str(file) in said and str(a) in said
    record = Progress(a / "progress.json").record("01")
    assert {name: [e["answer"] for e in record.held(name)] for name in "xyz"} == {"x": ["b", "a"], "y": ["c"], "z": ["d"]}
    before = (a / "progress.json").read_text()
    assert run("import", file, "--course", a)[0] == 1 and json.loads((a / "progress.json").read_text()) == json.loads(before)
    code, said = run("show", "--course", a)
    assert code == 0 and "Lesson 01: 3 answered, 0% right" in said and "Two copies differ in x: 'b', 'a'" in said


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 100_000,
        '{"version": 9, "answers": {}, "cards": {}}',
        '{"version": 2, "answers": {}, "cards": {}}',
        '{"format": "other", "version": 1, "answers": {}, "cards": {}}',
        '{"cells": [], "nbformat": 4}',
        '{"version": 1, "answers": {"x": {"answer": "a", "at": "2026", "share": NaN}}, "cards": {}}',
        '{"version": true, "answers": {}, "cards": {}}',
    ],
)
def test_what_is_no_progress_file_is_refused_and_nothing_changes(machines, text):
    file, held = machines / "bad.json", machines / "a" / "progress.json"
    file.write_text(text)
    before = held.read_bytes()
    code, said = run("import", file, "--course", machines / "a")
    assert code == 2 and str(file) in said and held.read_bytes() == before and file.read_text() == text
    assert not list(machines.glob("**/*.damaged*"))


def test_a_bad_place_is_said(machines):
    held = machines / "a" / "progress.json"
    assert run("export", held, "--course", machines / "a")[0] == 2 and Progress(held).read()["answers"]
    assert run("export", machines / "none" / "x.json", "--course", machines / "a")[0] == 2
    assert run("import", machines / "none.json", "--course", machines / "a")[0] == 2
    assert "is not a folder" in run("show", "--course", machines / "none")[1]


@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_killed_while_it_writes_the_old_file_is_whole(tmp_path, where):
    path = tmp_path / "progress.json"
    Progress(path).note("01", "old", entry("a", 1))
    before = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", KILLED, where, str(path)], timeout=120)
    assert done.returncode == -signal.SIGKILL and path.read_bytes() == before
    Progress(path).note("01", "after", entry("a", 2))  # the lock of a dead process holds nobody up
    assert set(Progress(path).read()["answers"]) == {"old", "after"}


def test_killed_at_any_moment_no_noted_answer_is_lost(tmp_path):
    path = tmp_path / "progress.json"
    held = set()
    for _ in range(4):
        writer = subprocess.Popen([sys.executable, "-c", LOOP, str(path)], stdout=subprocess.PIPE)
        writer.stdout.readline()
        while not held < set(Progress(path).read()["answers"]):  # at least one more is written
            assert writer.poll() is None
        os.kill(writer.pid, signal.SIGKILL)
        writer.communicate(timeout=60)
        now = set(Progress(path).read()["answers"])
        assert held <= now
        held = now
        # The next begins anew: its first questions are there already, so that it has to come further.
