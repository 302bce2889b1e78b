"""Run a learner's function in a child process behind walls, and read what comes back as data.

The parent holds the cases and compares. Into the child go the text of a cell and, one at a time, arguments; out of it comes
one line of JSON a case, of limited size. The child ends when the last line is there, when a limit is passed, or at the latest
by the wall clock, and everything that it started ends with it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from quizzes.say import N_, _

JAIL = Path(__file__).with_name("jail.py")
MEGABYTE = 1 << 20
_SHORT = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)  # what a machine lacks for a moment
Level = Literal["namespaces", "user", "none"]
LEVELS: dict[str, str] = {
    "namespaces": N_("namespaces of its own (user, processes, network, mounts, IPC), no capabilities, filtered system calls"),
    "user": N_("another user and filtered system calls; files that every user may read could be read"),
    "none": N_("NO ISOLATION: same user, same files; only limits and filtered system calls"),
}


class NoIsolation(RuntimeError):
    """This system has no walls that a learner's code could be put behind; the message says what was tried."""


@dataclass(frozen=True)
class Limits:
    """Of one exercise of one submission. Bytes, seconds and counts; `wall` ends what sleeps, `cpu` what computes."""

    wall: float = 10.0
    cpu: int = 5
    memory: int = 256 * MEGABYTE
    processes: int = 8
    file: int = 8 * MEGABYTE
    disk: int = 16 * MEGABYTE
    open: int = 64
    line: int = MEGABYTE
    """Bytes of one result."""
    output: int = 16_384
    """Bytes of print that are kept; more is read and dropped."""


LIMITS = Limits()


@dataclass(frozen=True)
class Reply:
    """What one case gave: a value, or an error of the learner's code in its own words."""

    value: Any = None
    error: str | None = None


@dataclass
class Outcome:
    """Replies in the order of the cases; fewer than cases where `ended` says why it stopped."""

    level: str
    replies: list[Reply] = field(default_factory=list)
    ended: str = ""
    output: bytes = b""
    printed: int = 0
    """Bytes printed in all, kept or not."""
    kind: str = ""
    """Why it ended, for code to read: "time", "size", "isolation", "machine" (it had no process or
    memory to give, which says nothing of the learner's code), or "" for all else. `ended` is for people."""


def isolation(accept_none: bool = False) -> Level:
    """The strongest level that works on this system, tried for real. Raises NoIsolation where none does, unless accepted."""
    tried = []
    for level in ("namespaces", "user") if sys.platform == "linux" else ():
        if level == "user" and os.getuid() != 0:
            tried.append(_("user: only root can start a process as another user"))
            continue
        refused = _probe(level)
        if not refused:
            return level  # type: ignore[return-value]
        tried.append(f"{level}: {refused}")
    if accept_none and os.name == "posix":
        return "none"
    why = "; ".join(tried) or _("{system} has none of those that are known").format(system=sys.platform)
    said = _(
        "No isolation for code exercises on this system ({why}). Grade on a Linux system that allows user namespaces, or as "
        "root; or, where nothing of worth is on this machine, say --i-accept-no-isolation"
    )
    raise NoIsolation(said.format(why=why))


@cache
def _probe(level: str) -> str:
    done = run("def probe():\n    return 1", "probe", [[]], level)  # type: ignore[arg-type]
    if done.replies == [Reply(1)]:
        return ""
    return done.ended or str(done.replies)


def run(
    source: str,
    function: str,
    cases: Sequence[list[Any]],
    level: Level,
    limits: Limits = LIMITS,
    private: Sequence[Path] = (),
) -> Outcome:
    """Run `source`, then `function` on the arguments of each case; what a learner's code does ends in the outcome, never here.

    `private` are folders that must not be seen: hidden where the level has mounts of its own, and at level "user" the run is
    refused (`ended` says so) where every user may read one.
    """
    outcome = Outcome(level)
    try:
        root = tempfile.mkdtemp(prefix="exercise-")
    except OSError as error:
        return _not_started(outcome, error)
    config = {
        "level": level,
        "root": root,
        "uid": 0x70000000 + secrets.randbelow(0x0FFFFFFF),  # one that no other process has, so that all of it can be ended
        "limits": asdict(limits),
        "private": [str(path.resolve()) for path in private],
    }
    try:
        os.chmod(root, 0o755)
        try:
            child = _started([sys.executable, "-I", "-S", "-B", str(JAIL), json.dumps(config)])
        except OSError as error:
            return _not_started(outcome, error)
        try:
            _Talk(child, outcome, limits).all(source, function, cases)
        finally:
            _end(child)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return outcome


def _started(command: list[str]) -> subprocess.Popen[bytes]:
    """Raises OSError where the system gives no process, also after waiting for others to end."""
    pipe = subprocess.PIPE
    waits = [0.2, 0.8]
    while True:
        try:
            return subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=pipe, env={}, close_fds=True, start_new_session=True, cwd="/"
            )
        except OSError as error:
            if not waits or error.errno not in _SHORT:
                raise
            time.sleep(waits.pop(0))


def _not_started(outcome: Outcome, error: OSError) -> Outcome:
    outcome.kind = "machine"
    outcome.ended = _("no process could be started on this machine ({why})").format(why=error.strerror or error)
    return outcome


class _Stop(Exception):
    def __init__(self, said: str, kind: str = "") -> None:
        super().__init__(said)
        self.kind = kind


class _Talk:
    """One question, one answer, over pipes that are never waited on without a clock."""

    def __init__(self, child: subprocess.Popen[bytes], outcome: Outcome, limits: Limits) -> None:
        self.child, self.outcome, self.limits = child, outcome, limits
        self.until = time.monotonic() + limits.wall
        self.waiting = b""
        self.selector = selectors.DefaultSelector()
        for stream in (child.stdin, child.stdout, child.stderr):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
        self.selector.register(child.stdout, selectors.EVENT_READ)  # type: ignore[arg-type]
        self.selector.register(child.stderr, selectors.EVENT_READ)  # type: ignore[arg-type]

    def all(self, source: str, function: str, cases: Sequence[list[Any]]) -> None:
        """Ask for everything; where it stops, `ended` says why."""
        try:
            started = self.ask({"source": source, "function": function})
            if started.error is not None:
                # The worker has the standard library only, and so no catalogue.
                missing = started.error == f"there is no function {function}"
                said = _("there is no function {name}").format(name=function)
                self.outcome.ended = said if missing else started.error
                return
            for arguments in cases:
                self.outcome.replies.append(self.ask({"arguments": arguments}))
        except _Stop as stop:
            self.outcome.ended, self.outcome.kind = str(stop), stop.kind
        finally:
            self.selector.close()

    def ask(self, message: dict[str, Any]) -> Reply:
        # A line that was written ahead of its question can't carry the question's token.
        token = secrets.token_hex(16)
        self._send(json.dumps({**message, "token": token}).encode() + b"\n")
        line = self._line()
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            raise _Stop(_("what came back is not JSON of a size that can be read")) from None
        if not isinstance(said, dict) or said.get("token") != token or not said.keys() <= {"token", "value", "error"}:
            raise _Stop(_("something other than results was written where results go"))
        if "error" in said:
            return Reply(error=str(said["error"])[:500])
        return Reply(said.get("value"))

    def _send(self, data: bytes) -> None:
        stdin = self.child.stdin
        self.selector.register(stdin, selectors.EVENT_WRITE)  # type: ignore[arg-type]
        try:
            while data:
                for key in self._ready():
                    if key.fileobj is stdin:
                        data = data[os.write(key.fd, data[:65536]) :]
                    elif key.fileobj is self.child.stdout and self._take(key.fd) and not self.waiting:
                        raise self._died()
                    elif key.fileobj is self.child.stderr:
                        self._print(key)
        except BrokenPipeError:
            raise self._died() from None
        finally:
            self.selector.unregister(stdin)  # type: ignore[arg-type]

    def _line(self) -> bytes:
        while b"\n" not in self.waiting:
            for key in self._ready():
                if key.fileobj is self.child.stderr:
                    self._print(key)
                elif self._take(key.fd):
                    raise self._died()
        line, self.waiting = self.waiting.split(b"\n", 1)
        return line

    def _ready(self) -> list[selectors.SelectorKey]:
        left = self.until - time.monotonic()
        if left <= 0:
            said = _("stopped after {seconds:g} s, which is the time for one exercise")
            raise _Stop(said.format(seconds=self.limits.wall), "time")
        return [key for key, _ in self.selector.select(left)]

    def _take(self, descriptor: int) -> bool:
        """Read results; True at their end."""
        data = os.read(descriptor, 65536)
        self.waiting += data
        if len(self.waiting) > self.limits.line:
            raise _Stop(_("a result is larger than {most} bytes").format(most=self.limits.line), "size")
        return not data

    def _print(self, key: selectors.SelectorKey) -> None:
        data = os.read(key.fd, 65536)
        if not data:
            self.selector.unregister(key.fileobj)
        self.outcome.printed += len(data)
        self.outcome.output += data[: self.limits.output - len(self.outcome.output)]

    def _died(self) -> _Stop:
        try:
            status = self.child.wait(timeout=max(0.1, min(2.0, self.until - time.monotonic())))
        except subprocess.TimeoutExpired:
            return _Stop(_("the function closed the way for results"))
        rest = os.read(self.child.stderr.fileno(), 4096) if self.outcome.printed < MEGABYTE else b""  # type: ignore[union-attr]
        if status == 97:
            said = (self.outcome.output + rest).decode(errors="replace").strip().removeprefix("jail: ")
            kind = "machine" if any(os.strerror(number) in said for number in _SHORT) else "isolation"
            return _Stop(_("the isolation could not be set up: {why}").format(why=said), kind)
        names = {
            128 + signal.SIGXCPU: _("it used all its CPU time"),
            128 + signal.SIGKILL: _("it was killed (CPU time or memory)"),
        }
        why = names.get(status, _("exit status {status}").format(status=status))
        kind = "time" if status == 128 + signal.SIGXCPU else ""
        return _Stop(_("the process ended in the middle: {why}").format(why=why), kind)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the launcher, politely first: it ends all that a learner's code started, under whatever session or name."""
    child.terminate()
    try:
        child.wait(timeout=5)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    for stream in (child.stdin, child.stdout, child.stderr):
        assert stream is not None
        with contextlib.suppress(BrokenPipeError):
            stream.close()
