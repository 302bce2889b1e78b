"""A registry that is killed at any write: the old state or the new one, never half, and the next command mends it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from datetime import UTC, datetime

import pytest

from quizzes.certificates import keys, pending, publish
from quizzes.certificates.judge import judge
from quizzes.certificates.registry import Registry, RegistryError
from tests.certificates.issuing_place import issue, make_place, run, verdict

WRITES = ("replace", "fsync", "unlink")
"""Every change of a registry goes through these of `os`; `Path.unlink` and `open` for writing lie between two of them."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(keys.PASSPHRASE_VARIABLE, "correct horse")
        made = make_place(tmp_path_factory.mktemp("crash"))
        made.file = issue(made.path, "--name", "Ada One", "--email", "ada@example.org")
        yield made


@pytest.fixture
def place(made, tmp_path):
    shutil.copytree(made.path, tmp_path / "place")
    return tmp_path / "place"


def killed(work, count):
    """Runs `work` in a process of its own that is killed at its `count`-th write. Whether it came that far."""
    child = os.fork()
    if child == 0:
        left = [count]

        def dying(write):
            def stand_in(*arguments, **more):
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return write(*arguments, **more)

            return stand_in

        for name in WRITES:
            setattr(os, name, dying(getattr(os, name)))
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def rotate(place):
    return run("rotate", "--registry", place / "reg", "--key", place / "key", "--new-key", place / "new")


def attempts(made, tmp_path, work):
    """Does `work(place)` in one copy of the folder after another, killed a write later each time, until it runs through.

    Gives the copy and whether it was killed.
    """
    for count in range(1, 100):
        place = tmp_path / str(count)
        shutil.copytree(made.path, place)
        stopped = killed(lambda at=place: work(at), count)
        yield place, stopped
        if not stopped:
            return
    pytest.fail("it still writes after 99 writes")


def remains(place):
    return [path.name for path in (place / "reg").rglob(".*") if path.name != ".lock"]


forked = pytest.mark.skipif(not hasattr(os, "fork"), reason="a process of its own is made by fork")


@forked
@pytest.mark.timeout(300)
def test_a_rotation_killed_at_any_write_leaves_one_ring_or_the_other(made, tmp_path):
    seen, before = set(), Registry(made.path / "reg").ring()
    for place, stopped in attempts(made, tmp_path, rotate):
        ring = Registry(place / "reg").ring()
        assert len(ring.keys) in (1, 2) and ring.keys[0].did == before.current.did
        seen.add((stopped, len(ring.keys)))
        # Before anything is mended, the old certificate verifies.
        assert verdict(place, made.file)["verdict"] == "valid", place
        if len(ring.keys) == 1:
            assert rotate(place).exit_code == 0
        else:
            assert run("refresh", "--registry", place / "reg", "--key", place / "new").exit_code == 0
        assert len(Registry(place / "reg").ring().keys) == 2 and remains(place) == []
        assert verdict(place, made.file)["verdict"] == "valid"
        assert verdict(place, issue(place, key="new"))["verdict"] == "valid"
    assert seen == {(True, 1), (True, 2), (False, 2)}


@forked
@pytest.mark.timeout(300)
def test_a_replacement_killed_at_any_write_is_made_once_or_not_at_all(made, tmp_path):
    seen, again = set(), ("--name", "Ada Two", "--email", "ada@example.org", "--replaces", made.file.stem)
    for place, stopped in attempts(made, tmp_path, lambda at: issue(at, *again)):
        old = verdict(place, made.file)["verdict"]
        new = [path for path in (place / "reg" / "c").glob("[0-9A-Z]*.json") if path.name != made.file.name]
        assert old == "revoked" or not new  # never two that count
        seen.add((stopped, old))
        repeated = issue(place, *again)
        assert verdict(place, made.file)["superseded"] is True
        assert verdict(place, repeated)["verdict"] == "valid"
        all_of_them = sorted(path.stem for path in (place / "reg" / "c").iterdir())
        assert all_of_them == sorted([made.file.stem, repeated.stem]) and remains(place) == []
        assert json.loads(repeated.read_bytes())["credentialSubject"]["identifier"][0]["identityHash"] == "Ada Two"
    assert seen == {(True, "valid"), (True, "revoked"), (False, "revoked")}


def test_a_replacement_that_differs_is_refused_and_changes_nothing(place, made):
    issue(place, "--name", "Ada Two", "--replaces", made.file.stem)
    before = {path: path.read_bytes() for path in (place / "reg").rglob("*.json")}
    common = ("--key", place / "key", "--registry", place / "reg", "--out", place / "out", "--student", "ada")
    other = ("--results", place / "results.json", "--lesson", "01", "--name", "Ada Three", "--replaces", made.file.stem)
    refused = run("issue", *common, *other)
    assert refused.exit_code == 2 and "already replaced on" in refused.stderr
    assert {path: path.read_bytes() for path in (place / "reg").rglob("*.json")} == before


def test_what_was_revoked_is_not_replaced(place, made):
    why = ("--registry", place / "reg", "--key", place / "key", "--reason", "by mistake")
    assert run("revoke", made.file.stem, *why).exit_code == 0
    common = ("--key", place / "key", "--registry", place / "reg", "--out", place / "out", "--student", "ada")
    refused = run("issue", *common, "--results", place / "results.json", "--lesson", "01", "--replaces", made.file.stem)
    assert refused.exit_code == 2 and "already revoked" in refused.stderr
    assert verdict(place, made.file)["reason"] == "by mistake"


@pytest.mark.parametrize("behind_the_note", [False, True])
def test_a_full_disk_says_whether_the_change_counts(place, made, monkeypatch, behind_the_note):
    def full(self, *arguments):
        names = [path.name for path in (place / "reg").iterdir()]
        # The folder is put on the disk while the note is there and no part of a file: that still belongs to the note.
        if behind_the_note == (pending.NAME in names and any(name.endswith(".part") for name in names)):
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(publish.os, "fsync", full)
        refused = rotate(place)
    assert refused.exit_code == 2 and "No space left" in refused.stderr
    assert ("counts as made" in refused.stderr) is behind_the_note
    assert len(Registry(place / "reg").ring().keys) == (2 if behind_the_note else 1)
    assert verdict(place, made.file)["verdict"] == "valid"


@pytest.mark.parametrize(
    "note",
    [
        b"",
        b"{}",
        b"[1]",
        b'[["../x.json","{}"]]',
        b'[["c/../issuer.json","{}"]]',
        b'[["c/x.json","{}"]]',
        b'[["status.json",1]]',
        b'[["results.txt",""]]',
    ],
)
def test_a_note_that_no_change_wrote_is_not_carried_out(place, made, note):
    (place / "reg" / ".pending").write_bytes(note)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    refused = run("refresh", "--registry", place / "reg", "--key", place / "key")
    assert refused.exit_code == 2 and ".pending" in refused.stderr
    with pytest.raises(RegistryError, match="note of a change"):
        Registry(place / "reg").read()
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


def test_a_reader_never_sees_half_a_change(place, made):
    """Between any two writes of a rotation, judged by a reader that takes no lock."""
    seen = []
    real = os.replace

    def watched(source, target):
        real(source, target)
        found = judge(made.file.read_bytes(), now=datetime.now(UTC), published=Registry(place / "reg").read())
        seen.append((found.verdict, len(Registry(place / "reg").ring().keys)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", watched)
        assert rotate(place).exit_code == 0
    assert [word for word, _ in seen] == ["valid"] * len(seen) and len(seen) == 4
    assert [keys_ for _, keys_ in seen] == [2] * 4
