"""Each limit and each wall by itself: what is tried succeeds where that one thing is taken away, and only then."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from quizzes.exercises import sandbox
from quizzes.exercises.sandbox import MEGABYTE, Limits, NoIsolation, isolation, run

HERE = Path(sandbox.__file__).parent
MODULES = ("__init__", "sandbox", "jail", "kernel", "worker")


@pytest.fixture
def level():
    try:
        return isolation()
    except NoIsolation as error:
        pytest.skip(str(error))


FORKS = """
import os, signal
def f():
    children = []
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                signal.pause()
            children.append(child)
    finally:
        for child in children: os.kill(child, 9)
    return "done"
"""
DISK = "def f():\n    for n in range(4): open(str(n), 'wb').write(bytes(1 << 20))\n    return 'done'"
# field of Limits: (what is tried, a limit that stops it, one that does not)
TRIED = {
    "cpu": ("import time\ndef f():\n    while time.process_time() < 1.6: pass\n    return 'done'", 1, 30),
    "memory": ("def f():\n    held = bytearray(200 << 20)\n    return 'done'", 100 * MEGABYTE, 1024 * MEGABYTE),
    "processes": (FORKS, 8, 64),
    "file": ("def f():\n    open('x', 'wb').write(bytes(4 << 20))\n    return 'done'", MEGABYTE, 8 * MEGABYTE),
    "disk": (DISK, 2 * MEGABYTE, 16 * MEGABYTE),
    "open": ("def f():\n    held = [open('/dev/null') for _ in range(100)]\n    return 'done'", 64, 256),
    "wall": ("import time\ndef f():\n    time.sleep(1.5)\n    return 'done'", 1.0, 60.0),
    "line": ("def f():\n    return 'done' + 'x' * 100_000", 10_000, MEGABYTE),
}  # fmt: skip


@pytest.mark.parametrize("limit", TRIED)
def test_a_limit_stops_what_runs_without_it(level, limit):
    if limit == "disk" and level != "namespaces":
        pytest.skip("only namespaces have files of their own")
    source, low, high = TRIED[limit]
    generous = {"wall": 60.0, "cpu": 30, "memory": 512 * MEGABYTE, "processes": 64}
    done = run(source, "f", [[]], level, Limits(**{**generous, limit: high}))
    assert [str(reply.value)[:4] for reply in done.replies] == ["done"], done.ended
    stopped = run(source, "f", [[]], level, Limits(**{**generous, limit: low}))
    assert not stopped.replies or stopped.replies[0].error, limit


def test_what_is_printed_is_kept_up_to_its_limit_only(level):
    source = "def f():\n    print('9' * 5000)\n    return 1"
    assert len(run(source, "f", [[]], level, Limits(wall=60.0, output=1000)).output) == 1000
    assert len(run(source, "f", [[]], level, Limits(wall=60.0, output=9000)).output) == 5001


@pytest.fixture
def without(tmp_path, monkeypatch):
    """Take walls away: `without("network", "filter")` has the sandbox start an altered copy of the jail."""
    cuts = {
        "network": ("jail", " | kernel.NEWNET", ""),
        "processes": ("jail", " | kernel.NEWPID", ""),
        "filter": ("jail", "if not kernel.filter_calls()", "if not True"),
        "user": ("jail", "        _become(config)\n", ""),
        "capabilities": ("jail", "        kernel.drop_capabilities()\n", "        pass\n"),
    }

    def take(*walls):
        for name in ("jail", "kernel", "worker"):
            text = (HERE / f"{name}.py").read_text()
            for module, old, new in (cuts[wall] for wall in walls):
                if module == name:
                    assert old in text, "the jail has changed; change what this test takes away"
                    text = text.replace(old, new)
            (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.setattr(sandbox, "JAIL", tmp_path / "jail.py")

    return take


def _connect(level):
    """(what a learner's code saw, whether anything arrived)."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        source = (
            f"import socket\ndef f():\n    socket.create_connection(('127.0.0.1', {port}), 20).close()\n    return 'connected'"
        )
        done = run(source, "f", [[]], level, Limits(wall=60.0))
        listener.settimeout(0 if done.replies[0].error else 60)
        try:
            listener.accept()[0].close()
            arrived = True
        except BlockingIOError:
            arrived = False
    return done.replies[0].value or done.replies[0].error, arrived


def test_the_network_is_closed_twice(level, without):
    if level != "namespaces":
        pytest.skip("at level user the filter is the only wall before the network")
    without("filter")  # the namespace alone: sockets can be made and lead nowhere
    said, arrived = _connect(level)
    assert not arrived and said.startswith("OSError") and "unreachable" in said
    without("network")  # the filter alone: no socket can be made
    said, arrived = _connect(level)
    assert not arrived and said.startswith("PermissionError")
    without("network", "filter")
    assert _connect(level) == ("connected", True)


def test_a_namespace_of_processes_hides_those_outside(level, without):
    if level != "namespaces":
        pytest.skip("only namespaces have processes of their own")
    source = "import os\ndef f():\n    return os.getpid()"
    assert run(source, "f", [[]], level).replies[0].value < 10
    without("processes")
    assert run(source, "f", [[]], level).ended or run(source, "f", [[]], level).replies[0].value >= 10


def test_the_user_is_another_one_only_by_its_own_wall(level, without):
    if os.geteuid() != 0 or level != "namespaces":
        pytest.skip("root becomes another user")
    source = "import os\ndef f():\n    return os.getuid()"
    assert run(source, "f", [[]], level).replies[0].value >= 0x70000000
    without("user")
    assert run(source, "f", [[]], level).replies[0].value == 0


USER = """
import json, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from quizzes.exercises.sandbox import Limits, _probe, run
refused = _probe("user")
if refused:
    print(json.dumps({"refused": refused}))
    sys.exit()
secret, shared, port = sys.argv[2], sys.argv[3], int(sys.argv[4])
def said(code, before="", **more):
    source = f"import os, socket, time\\n{before}\\ndef f():\\n    return {code}"
    done = run(source, "f", [[]], "user", Limits(wall=60.0), **more)
    return (done.replies[0].error or done.replies[0].value) if done.replies else done.ended
daemon = '''
def start():
    child = os.fork()
    if child == 0:
        os.setsid()
        time.sleep(600)
    return child
'''
started = said("start()", daemon)
print(json.dumps({
    "uid": said("os.getresuid()"),
    "root": said("os.setuid(0)"),
    "secret": said(f"open({secret!r}).read()"),
    "write": said("open('/etc/written by an exercise', 'w')"),
    "network": said(f"socket.create_connection(('127.0.0.1', {port}), 9)"),
    "parent": said("os.kill(os.getppid(), 9)"),
    "memory": said("open(f'/proc/{os.getppid()}/mem', 'rb').read(1)"),
    "environment": said("dict(os.environ)"),
    "private": said("1", private=[Path(shared)]),
    "started": started,
    "left": os.path.exists(f"/proc/{started}"),
}))
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can start a process as another user")
def test_the_level_of_another_user_holds_with_a_python_that_others_can_read():
    """The parent is root and the system's Python; level "user" is tried also where namespaces would be taken."""
    python = "/usr/bin/python3"
    if not os.access(python, os.X_OK):
        pytest.skip("no Python that every user can run")
    with tempfile.TemporaryDirectory() as name, socket.create_server(("127.0.0.1", 0)) as listener:
        folder = Path(name)
        folder.chmod(0o755)
        package = folder / "quizzes" / "exercises"
        package.mkdir(parents=True)
        for module in MODULES:
            shutil.copy(HERE / f"{module}.py", package)
        (folder / "quizzes" / "__init__.py").touch()
        for module in ("say", "languages", "fields"):  # what the parent's sentences go through
            shutil.copy(Path(sandbox.__file__).parents[1] / f"{module}.py", folder / "quizzes")
        secret, shared = folder / "gradebook.db", folder / "keys"
        secret.write_text("the gradebook")
        secret.chmod(0o600)
        shared.mkdir(mode=0o755)
        arguments = [python, "-c", USER, name, str(secret), str(shared), str(listener.getsockname()[1])]
        done = subprocess.run(arguments, capture_output=True, text=True, cwd="/", timeout=300)
        assert done.returncode == 0, done.stderr
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    said = json.loads(done.stdout)
    if "refused" in said:
        pytest.skip(said["refused"])
    assert min(said["uid"]) >= 0x70000000
    for tried in ("root", "secret", "write", "network", "parent", "memory"):
        assert str(said[tried]).startswith("PermissionError"), (tried, said[tried])
    assert os.environ["PATH"] not in said["environment"].values()
    assert "chmod o-rwx" in said["private"]
    assert said["started"] > 1 and not said["left"]
