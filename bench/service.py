"""The judging service under load: 200 learners who answer in the same moment.

`python -m bench.service --json [--learners 200] [--rounds 20] [--db-url …]`

The service runs in a process of its own and this one is the load. The learners open the lesson. Then, in each round, every
one sends an answer over that connection in the same moment, and the next round begins when all have their replies: the
harshest of what "at once" can mean. Times are from the first byte sent to the last byte received. Both processes share the
machine's cores. Each answer is on the disk before its reply; what was recorded is counted at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from quizzes.certificates.keys import generate


def bank(folder: Path, names: list[str]) -> None:
    """Graded questions of four kinds, repeated under `names`."""
    shapes = [
        'kind: one, choices: [{id: a, text: "4", correct: false, misconception: weights-are-all, explanation: "No."},'
        ' {id: b, text: "16", correct: true, explanation: "Yes."}]',
        'kind: several, choices: [{id: a, text: "4", correct: true, explanation: "Yes."},'
        ' {id: b, text: "16", correct: true, explanation: "Yes."}]',
        "kind: number, unit: bytes, variants: {n: [3, 5, 7, 11]}, value: {formula: 8 * n * 1e9}, explanation: Eight bytes",
        "kind: text, accepted: [AdamW], explanation: Its name",
    ]
    lines = ['lesson: "01"', "title: Load", "questions:"]
    lines += [f"  - {{id: g-{name}, name: {name}, prompt: Which, {shapes[n % 4]}}}" for n, name in enumerate(names)]
    (folder / "01_load.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


class Learner:
    def __init__(self, token: str) -> None:
        self.token = token
        self.seconds: list[float] = []
        self.errors: list[str] = []

    async def connect(self, host: str, port: int) -> None:
        """Opens the connection and loads the questions, as a notebook does before anybody answers."""
        self.reader, self.writer = await asyncio.open_connection(host, port, limit=1 << 22)
        self.writer.write(f"GET /lessons/01 HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {self.token}\r\n\r\n".encode())
        told, _questions = await self.reply()
        if " 200 " not in told.split("\r\n")[0]:
            self.errors.append(told.split("\r\n")[0])

    async def reply(self) -> tuple[str, bytes]:
        """Head, in lower case, and body."""
        told = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        return told, await self.reader.readexactly(int(told.split("content-length:")[1].split("\r\n")[0]))

    async def answer(self, host: str, name: str, answer: str, number: int) -> None:
        content = {"question": name, "attempt": 1, "answer": answer, "nonce": f"nonce-{number:06}"}
        body = json.dumps(content).encode()
        head = (
            f"POST /lessons/01/answers HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {self.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        began = time.perf_counter()
        try:
            self.writer.write(head.encode() + body)
            told, reply = await self.reply()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, IndexError, ValueError) as error:
            self.errors.append(repr(error))
            return
        self.seconds.append(time.perf_counter() - began)
        if " 200 " not in told.split("\r\n")[0] or b'"receipt"' not in reply:
            self.errors.append(told.split("\r\n")[0])


async def load(url: str, tokens: list[str], rounds: int) -> list[Learner]:
    host, port = urlsplit(url).hostname or "", urlsplit(url).port or 0
    learners = [Learner(token) for token in tokens]
    await asyncio.gather(*(learner.connect(host, port) for learner in learners))
    sent = ["a", "a", "1 GB", "something"]
    for number in range(rounds):
        await asyncio.gather(*(one.answer(host, f"q{number + 1}", sent[number % 4], number) for one in learners))
    for learner in learners:
        learner.writer.close()
    return learners


def measure(learners: int, rounds: int, db_url: str | None) -> dict[str, Any]:
    """p50, p99 and the longest in ms, answers a second, errors, and how many answers are recorded."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate(folder / "receipts.key")
        bank(folder, [f"q{number + 1}" for number in range(rounds)])
        tokens = [f"token-of-learner-{number:05}" for number in range(learners)]
        with open(os.open(folder / "tokens", os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.writelines(f"{token} learner{number}\n" for number, token in enumerate(tokens))
        command = [sys.executable, "-m", "quizzes.cli", "serve", "--key", str(folder / "receipts.key"), "--rate", "100000"]
        command += [
            "--keys",
            name,
            "--tokens",
            str(folder / "tokens"),
            "--db-url",
            db_url or f"sqlite:///{folder / 'answers.db'}",
        ]
        service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert service.stdout is not None
        try:
            line = service.stdout.readline()
            if not line.startswith("Judging on "):
                raise SystemExit("The service did not start; what it said stands above.")
            url = line.split()[2].rstrip(";")
            began = time.perf_counter()
            done = asyncio.run(load(url, tokens, rounds))
            took = time.perf_counter() - began
            recorded = sum(asyncio.run(_recorded(url, tokens)))
        finally:
            service.terminate()
            service.wait(60)
    seconds = sorted(one for learner in done for one in learner.seconds)
    errors = [error for learner in done for error in learner.errors]
    return {
        "learners": learners,
        "rounds": rounds,
        "p50_ms": round(statistics.median(seconds) * 1e3, 1),
        "p99_ms": round(seconds[max(0, -(-len(seconds) * 99 // 100) - 1)] * 1e3, 1),
        "max_ms": round(seconds[-1] * 1e3, 1),
        "answers_per_second": round(len(seconds) / took),
        "errors": len(errors),
        "first_error": errors[0] if errors else "",
        "recorded": recorded,
        "cores": os.cpu_count(),
    }


async def _recorded(url: str, tokens: list[str]) -> list[int]:
    import httpx

    async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
        found = []
        for token in tokens:
            reply = await client.get(f"{url}/lessons/01", headers={"Authorization": f"Bearer {token}"})
            found.append(len(reply.json()["answers"]))
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--learners", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--db-url")
    arguments = parser.parse_args()
    figures = measure(arguments.learners, arguments.rounds, arguments.db_url)
    if arguments.json:
        print(json.dumps(figures))
        return
    print(
        f"{figures['learners']} learners at once, {figures['rounds']} times: p50 {figures['p50_ms']} ms, "
        f"p99 {figures['p99_ms']} ms, {figures['errors']} errors, {figures['recorded']} answers recorded"
    )


if __name__ == "__main__":
    main()
