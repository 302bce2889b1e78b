"""The walls: what a child can see and do behind each level, and that a learner's end is never the parent's."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from quizzes.exercises import sandbox
from quizzes.exercises.sandbox import Limits, NoIsolation, Reply, isolation, run

QUICK = Limits(wall=3.0, cpu=1)


def _level():
    try:
        return isolation()
    except NoIsolation as error:
        pytest.skip(str(error))


@pytest.fixture
def inside():
    """Run one expression of the learner's; give the reply or why it ended."""
    level = _level()

    def evaluate(code, limits=QUICK, private=(), before=""):
        done = run(f"{before}\ndef f():\n    return {code}", "f", [[]], level, limits, private)
        return done.replies[0] if done.replies else done.ended

    return evaluate


def test_values_keep_their_types_across_the_pipes():
    values = [True, 1, 1.0, "ü\n😀", None, [[], [0.1]], {"a": [1]}, 2**70, float("inf")]
    done = run("def f(x):\n    return x", "f", [[value] for value in values], _level())
    assert done.ended == ""
    for reply, value in zip(done.replies, values, strict=True):
        assert repr(reply.value) == repr(value)


def test_an_error_is_told_with_its_line_and_the_next_case_runs():
    done = run("def f(x):\n    return 1 // x", "f", [[0], [1]], _level())
    assert "ZeroDivisionError" in done.replies[0].error and "line 2" in done.replies[0].error
    assert done.replies[1] == Reply(1)


@pytest.mark.parametrize(
    "source", ["def f(:", "f = 3", "import sys\nsys.exit()", "raise KeyboardInterrupt", "\0", "def g(): pass"]
)
def test_a_cell_that_does_not_load_says_so(source):
    done = run(source, "f", [[]], _level())
    assert done.replies == [] and done.ended


def test_nothing_of_the_machine_is_seen(inside, tmp_path, monkeypatch):
    secret = tmp_path / "key.yaml"
    secret.write_text("expected: 42")
    monkeypatch.setenv("TOKEN", "s3cret")
    if _level() != "namespaces":
        pytest.skip("only namespaces have files of their own")
    here = str(Path(__file__).resolve().parents[2])
    assert inside(
        f"[os.path.exists(p) for p in ({str(secret)!r}, {here!r}, '/proc', '/home', '/tmp', '/sys')]", before="import os"
    ) == (Reply([False] * 6))
    assert inside("list(os.environ.values())", before="import os") in (Reply([]), Reply(["C.UTF-8"]))
    assert inside("os.getppid()", before="import os") == Reply(1)
    assert inside("[os.path.exists('/dev/null'), os.listdir('/scratch')]", before="import os") == Reply([True, []])


def test_a_private_folder_inside_what_is_shown_is_hidden(inside):
    if _level() != "namespaces":
        pytest.skip("only namespaces have files of their own")
    inner = Path(os.__file__).parent / "json"
    code = f"os.access({str(inner)!r}, os.R_OK)"
    assert inside(code, before="import os") == Reply(True)
    assert inside(code, private=[inner], before="import os") == Reply(False)


def test_no_privilege_is_left(inside):
    status = inside("[os.getresuid(), os.getgroups()]", before="import os").value
    assert 0 not in status[0]
    assert inside("os.setuid(0)", before="import os").error.startswith("PermissionError")
    assert inside("os.open('/scratch/../lib/x', os.O_CREAT | os.O_WRONLY)", before="import os").error
    calls = {"ptrace": (0, 0, 0, 0), "unshare": (0x10000000,), "mount": (b"a", b"/scratch", b"tmpfs", 0, 0), "chroot": (b"/",)}
    for name, arguments in calls.items():
        code = f"(c.{name}(*{arguments!r}), ctypes.get_errno())"
        assert inside(code, before="import ctypes\nc = ctypes.CDLL(None, use_errno=True)") == Reply([-1, 1]), name


def test_no_network_not_even_to_the_machine_itself(inside):
    listener = socket.create_server(("127.0.0.1", 0))
    with listener:
        said = inside(f"socket.create_connection(('127.0.0.1', {listener.getsockname()[1]}), 1)", before="import socket")
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert "PermissionError" in said.error


@pytest.mark.parametrize(
    "code",
    ["bytearray(2 << 30)", "[x for x in iter(lambda: bytearray(1 << 20), 0)]"],
    ids=["at once", "bit by bit"],
)
def test_memory_ends_as_an_error_of_that_case(inside, code):
    assert inside(code).error.startswith("MemoryError")


def test_files_end_at_their_limit(inside):
    assert "OSError" in inside("open('x', 'wb').write(bytes(9 << 20))").error
    before = "def fill():\n    for i in range(99):\n        open(str(i), 'wb').write(bytes(1 << 20))"
    said = inside("fill()", before=before)
    assert said.error and "OSError" in said.error
    many = "def many():\n    return [open('/dev/null') for _ in range(500)]"
    assert "Too many open files" in inside("many()", before=many).error


def test_what_computes_and_what_sleeps_are_stopped(inside):
    spin = "def spin():\n    while True: pass"
    assert inside("spin()", before=spin, limits=Limits(wall=20.0, cpu=1)) == (
        "the process ended in the middle: it used all its CPU time"
    )
    deaf = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\n" + spin
    assert inside("spin()", before=deaf, limits=Limits(wall=20.0, cpu=1)) == (
        "the process ended in the middle: it was killed (CPU time or memory)"
    )
    assert "stopped after 0.5 s" in inside("time.sleep(60)", before="import time", limits=Limits(wall=0.5))
    wait = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))"
    assert "stopped after 0.5 s" in inside("spin()", before=wait + "\n" + spin, limits=Limits(wall=0.5))


def test_output_is_kept_up_to_a_limit_and_counted():
    done = run("def f():\n    print('a' * 20_000_000)\n    return 1", "f", [[]], _level())
    assert done.replies == [Reply(1)]
    assert len(done.output) == sandbox.LIMITS.output and done.printed > len(done.output)


def test_a_large_or_deep_result_is_refused():
    assert "larger" in run("def f():\n    return 'x' * 2_000_000", "f", [[]], _level()).ended
    write = "try: os.write(n, b'[' * 200_000 + b'\\n')\n        except OSError: pass"
    deep = f"def f():\n    import os\n    for n in range(3, 9):\n        {write}"
    assert "not JSON" in run(deep, "f", [[]], _level()).ended


def test_what_was_started_ends_with_the_run(tmp_path):
    """A daemon in a session of its own, deaf to every signal that can be ignored."""
    mark = f"marked-{os.getpid()}-{tmp_path.name}"
    code = f"""
import os, signal, time, ctypes
def f():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for n in range(1, 32):
                try: signal.signal(n, signal.SIG_IGN)
                except (OSError, ValueError): pass
            for n in range(0, 64):
                try: os.close(n)
                except OSError: pass
            ctypes.CDLL(None).prctl(15, {mark[:15].encode()!r}, 0, 0, 0)
            time.sleep(600)
        os._exit(0)
    time.sleep(0.2)
    return 1
"""
    for level in {_level(), "none"}:
        assert run(code, "f", [[]], level).replies == [Reply(1)]
        names = [p.read_text().strip() for p in Path("/proc").glob("[0-9]*/comm") if _alive(p)]
        assert mark[:15] not in names, level


def _alive(path):
    try:
        return "\nState:\tZ" not in path.with_name("status").read_text()
    except OSError:
        return False


def test_without_isolation_it_refuses_unless_told(monkeypatch):
    monkeypatch.setattr(sandbox, "_probe", lambda level: "unshare: Operation not permitted")
    with pytest.raises(NoIsolation, match=r"Operation not permitted.*--i-accept-no-isolation"):
        isolation()
    assert isolation(accept_none=True) == "none"
    assert "NO ISOLATION" in sandbox.LEVELS["none"]


@pytest.fixture
def open_folder():
    """A folder that every user may enter, which pytest's own is not."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="root becomes an ordinary user here")
def test_an_ordinary_user_has_namespaces_or_a_refusal(open_folder):
    """The whole parent as another user, with the system's Python, which that user can read."""
    python = "/usr/bin/python3"
    if not os.access(python, os.X_OK):
        pytest.skip("no Python that every user can run")
    package = open_folder / "quizzes" / "exercises"
    package.mkdir(parents=True)
    for name in ("__init__", "sandbox", "jail", "kernel", "worker"):
        (package / f"{name}.py").write_text((Path(sandbox.__file__).with_name(f"{name}.py")).read_text())
    (open_folder / "quizzes" / "__init__.py").touch()
    for name in ("say", "languages", "fields"):  # what the parent's sentences go through
        shutil.copy(Path(sandbox.__file__).parents[1] / f"{name}.py", open_folder / "quizzes")
    code = f"""
import sys; sys.path.insert(0, {str(open_folder)!r})
from quizzes.exercises.sandbox import *
level = isolation(accept_none=True)
asked = "import os\\ndef f(): return [os.getuid() == {os.getuid()}, os.path.exists('/proc')]"
print(level, run(asked, "f", [[]], level).replies)
"""
    done = subprocess.run(
        [python, "-c", code], user=65534, group=65534, extra_groups=[], capture_output=True, text=True, cwd="/"
    )
    assert done.stdout.startswith(("namespaces [Reply(value=[False, False]", "none [Reply")), done


def test_root_without_namespaces_uses_another_user(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can start a process as another user")
    refused = sandbox._probe("user")
    if refused:
        assert "Python itself" in refused or "setresuid" in refused
        pytest.skip(refused)
    secret = tmp_path / "keys"
    secret.mkdir(mode=0o755)
    done = run("def f(): return 1", "f", [[]], "user", private=[secret])
    assert done.replies == [] and ("chmod" in done.ended or not os.access(tmp_path, os.R_OK))


def test_the_jail_imports_nothing_but_the_standard_library():
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(sandbox.JAIL.parent)!r}); import jail, kernel, worker",
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
