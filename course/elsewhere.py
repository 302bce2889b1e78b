"""An exported plan, run by those it is for: DeepSpeed in a process of its own, and a script under `accelerate launch`.

Neither belongs to the course's environment. Where one is not there, `NotHere` says so and how it is had; nothing is installed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course import elsewhere_child
from offload_lab.plan import Plan
from quizzes.say import _

_WAIT = 600  # seconds without an answer, after which a process is given up: DeepSpeed compiles when it first starts
_LAUNCHER = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_CHILD = Path(elsewhere_child.__file__)


class NotHere(RuntimeError):
    """What is to run the plan is not installed here, or does not start; the message says which, and what to do."""


def peers() -> Path:
    """The folder of the environment that `python -m bench.peers` makes: OFFLOAD_LAB_PEERS, or one in the user's cache."""
    told = os.environ.get("OFFLOAD_LAB_PEERS", "").strip()
    return Path(told).expanduser() if told else Path.home() / ".cache" / "offload-lab" / "bench-peers"


def deepspeed_python() -> str:
    """The interpreter that has DeepSpeed: this one, or the one of `peers()`. Raises NotHere."""
    if importlib.util.find_spec("deepspeed") is not None:
        return sys.executable
    python = peers() / "bin" / "python"
    if (peers() / ".ready").is_file() and python.is_file():
        return str(python)
    said = _(
        "DeepSpeed is not installed here, so nothing of it was run. It wants a compiler and other packages than this "
        "course, so it lives in an environment of its own. In a copy of the course's repository, this makes it once (some "
        "minutes, 1 GB): {command}"
    )
    raise NotHere(said.format(command="python -m bench.peers"))


class DeepSpeed:
    """The small model of `elsewhere_child.py`, trained by DeepSpeed as `config` says, on the CPU.

    `train(steps)` returns the last loss; `disk` are the bytes of the files that it keeps. Close it, or use it in a `with`.
    Raises NotHere where DeepSpeed is not installed, does not start, or ends before it has answered.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        python = deepspeed_python()
        self.disk = 0
        self._folder = tempfile.TemporaryDirectory(prefix="deepspeed-")
        file = Path(self._folder.name) / "config.json"
        file.write_text(json.dumps(config), encoding="utf-8")
        self._errors = open(Path(self._folder.name) / "said", "w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        tools = [str(Path(found).parent) for found in (shutil.which("ninja"), shutil.which("g++")) if found]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
            "PATH": os.pathsep.join([*dict.fromkeys(tools), os.environ.get("PATH", "")]),
            "DS_ACCELERATOR": "cpu",
            "OMP_NUM_THREADS": str(os.cpu_count() or 1),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(_free_port()),
            "RANK": "0",
            "LOCAL_RANK": "0",
            "WORLD_SIZE": "1",
        }
        if python == sys.executable:
            environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [python, str(_CHILD), "deepspeed", str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=environment,
            start_new_session=True,
        )
        self._answers: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._about: dict[str, Any] | None = None

    def about(self) -> dict[str, Any]:
        """Versions, and the optimizer that DeepSpeed chose; waits until it has started."""
        if self._about is None:
            self._about = self._answer()
        return self._about

    def train(self, steps: int) -> float:
        """Train `steps` more steps; return the loss of the last one."""
        self.about()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"steps": steps}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, which the answer will tell
        told = self._answer()
        self.disk = told["disk"]
        return float(told["loss"])

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(elsewhere_child.ANSWER):
                self._answers.put(line[len(elsewhere_child.ANSWER) :])
        self._answers.put(None)

    def _answer(self) -> dict[str, Any]:
        try:
            line = self._answers.get(timeout=_WAIT)
        except queue.Empty:
            self.close()
            raise NotHere(_("DeepSpeed has not answered for {seconds} s, and was ended").format(seconds=_WAIT)) from None
        if line is not None:
            return json.loads(line)
        self._process.wait()
        self._errors.flush()
        self._errors.seek(0)
        last = " | ".join(self._errors.read().strip().splitlines()[-3:])[-400:]
        code = self._process.returncode
        self.close()
        raise NotHere(_("DeepSpeed ended with {code}: {last}").format(code=code, last=last or _("(it said nothing)")))

    def close(self) -> None:
        """End the process, and give up its files. May be called twice."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                with contextlib.suppress(BrokenPipeError):  # what was asked for has nobody to read it
                    pipe.close()
        self._errors.close()
        self._folder.cleanup()

    def __enter__(self) -> DeepSpeed:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def launch(configuration: str, plan: Plan, steps: int = 2) -> dict[str, Any]:
    """Start the small training under `accelerate launch` with `configuration`, the text of an exported file, for `steps` steps.

    Returns what the script saw: losses, device, distributed type, precision, and bytes on disk. Raises NotHere where Accelerate
    is not installed, or the script ends otherwise.
    """
    if importlib.util.find_spec("accelerate") is None:
        said = _("Accelerate is not installed here, so nothing was launched. To have it: {command}")
        raise NotHere(said.format(command="python -m pip install accelerate"))
    environment = {name: value for name, value in os.environ.items() if name not in _LAUNCHER}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    with tempfile.TemporaryDirectory(prefix="accelerate-") as folder:
        file, written = Path(folder) / "accelerate.yaml", Path(folder) / "plan.json"
        file.write_text(configuration, encoding="utf-8")
        written.write_text(plan.to_json(), encoding="utf-8")
        command = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(file)]
        command += ["--main_process_port", str(_free_port()), str(_CHILD), "accelerate", str(written), str(steps)]
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
        )
        try:
            out, err = child.communicate(timeout=_WAIT)
        except subprocess.TimeoutExpired:
            raise NotHere(_("`accelerate launch` did not end within {seconds} s").format(seconds=_WAIT)) from None
        finally:  # Ctrl-C, too
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.communicate()
    for line in out.splitlines():
        if line.startswith(elsewhere_child.ANSWER) and child.returncode == 0:
            return json.loads(line[len(elsewhere_child.ANSWER) :])
    last = " | ".join(err.strip().splitlines()[-3:])[-400:] or _("(it said nothing)")
    raise NotHere(_("`accelerate launch` ended with {code}: {last}").format(code=child.returncode, last=last))


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
