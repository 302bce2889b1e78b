"""The service in a process of its own, over a small bank, for several learners."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from cryptography.hazmat.primitives import serialization

from tests.quizzes.service.small import BANK, KEY

PATIENCE = 120.0
ROOT = Path(__file__).resolve().parents[3]


def prepare(folder: Path, learners: list[str]) -> dict[str, str]:
    """Bank, key and tokens in `folder`. Returns learner -> token."""
    (folder / "keys").mkdir()
    (folder / "keys" / "01_small.yaml").write_text(BANK, encoding="utf-8")
    private = KEY.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    tokens = {learner: f"token-of-{learner}-long-enough" for learner in learners}
    for name, data in {
        "receipts.key": private,
        "tokens": "".join(f"{token} {learner}\n" for learner, token in tokens.items()).encode(),
    }.items():
        with open(os.open(folder / name, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(data)
    return tokens


class Running:
    """A service that was told where to keep its answers; `kill` ends it as a power cut would."""

    def __init__(self, folder: Path, port: int = 0, *more: str) -> None:
        command = [sys.executable, "-m", "quizzes.cli", "serve", "--port", str(port), "--rate", "100000", *more]
        command += ["--key", str(folder / "receipts.key"), "--keys", str(folder / "keys")]
        command += ["--db-url", f"sqlite:///{folder / 'answers.db'}"]
        if "--connection" not in more:
            command += ["--tokens", str(folder / "tokens")]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        until = time.monotonic() + PATIENCE
        while True:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
            )
            line = self.process.stdout.readline()
            if line.startswith("Judging on "):
                break
            said = line + self.process.communicate(timeout=PATIENCE)[0]
            # A client that tries a port on which nobody listens can, rarely, be given that port itself, for a moment.
            if not port or "cannot be used" not in said or time.monotonic() > until:
                raise RuntimeError(said)
        self.url = line.split()[2].rstrip(";")
        self.port = int(self.url.rsplit(":", 1)[1])
        self._wait()

    def _wait(self) -> None:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                if ask(self.url, "GET", "/health")[0] == 200:
                    return
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        self.process.stdout.close()

    def stop(self, number: int = signal.SIGTERM) -> str:
        """What it said besides its address."""
        self.process.send_signal(number)
        said = self.process.communicate(timeout=PATIENCE)[0]
        return said


def ask(url: str, method: str, path: str, token: str = "", content: object = None) -> tuple[int, bytes]:
    """(status, body) of one request. Raises OSError where no whole answer came."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)
    try:
        body = None if content is None else json.dumps(content)
        connection.request(method, path, body, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except http.client.HTTPException as error:
        raise OSError(f"no whole answer: {error!r}") from None
    finally:
        connection.close()
