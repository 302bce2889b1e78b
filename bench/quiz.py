"""From click to verdict: `python -m bench.quiz [--json]`.

Every practice question of the bank is answered through its widgets, rightly and wrongly, as a click does it: judge, record,
keep in the progress file (written and flushed to disk), show the verdict, put the record into the notebook. What is left out
is the way between browser and kernel. Times are in milliseconds, by kind of question.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

from bench.machine import describe
from quizzes.question import BANK, every
from quizzes.quiz import Quiz
from quizzes.widgets import Board, Card

LIMIT_MS = 100.0


def given(card: Card, turn: int) -> None:
    """Set a card's controls to some answer; another one in each turn."""
    question = card._question
    if question.choices:
        card.controls[turn % len(card.controls)].value = True
    elif question.kind == "order":
        for place, control in enumerate(card.controls):
            control.value = (place + turn) % len(card.controls) + 1
    elif question.kind == "match":
        for place, control in enumerate(card.controls):
            values = [value for _, value in control.options][1:]
            control.value = values[(place + turn) % len(values)]
    else:
        unit = {"bytes": " GB", "seconds": " s", "bytes_per_second": " GB/s", "percent": " %"}.get(question.unit or "", "")
        card.controls[0].value = f"{turn + 1}{unit}"


def measure(rounds: int, folder: Path) -> dict[str, list[float]]:
    """Seconds from click to verdict, kind -> one for each answer. The progress file and the record fill up as in a course."""
    found: dict[str, list[float]] = defaultdict(list)
    os.environ["OFFLOAD_LAB_PROGRESS"] = str(folder / "progress.json")
    with ExitStack() as stack:
        # As in a kernel: the record is made and handed to the display; here the display drops it.
        stack.enter_context(mock.patch("quizzes.quiz.shell", lambda: object()))
        stack.enter_context(mock.patch("IPython.display.display"))
        stack.enter_context(mock.patch("IPython.display.update_display"))
        for bank in every(BANK).values():
            quiz = Quiz(bank.lesson)
            board = quiz._board = Board(quiz)
            for turn in range(rounds):
                for card in board.cards.values():
                    given(card, turn)
                    start = time.perf_counter()
                    card.button.click()
                    found[card._question.kind].append(time.perf_counter() - start)
                    if not card.verdict.value:
                        raise RuntimeError(f"{card._question.id} showed no verdict")
    return found


def percentile(times: list[float], share: float) -> float:
    """The smallest time that `share` of all are not above."""
    return sorted(times)[max(0, -(-int(len(times) * share * 1000) // 1000) - 1)]


def report(found: dict[str, list[float]]) -> dict[str, Any]:
    kinds = {
        kind: {
            "answers": len(times),
            "median_ms": round(statistics.median(times) * 1e3, 2),
            "p99_ms": round(percentile(times, 0.99) * 1e3, 2),
        }
        for kind, times in sorted(found.items())
    }
    every_one = [one for times in found.values() for one in times]
    p99 = round(percentile(every_one, 0.99) * 1e3, 2)
    median = round(statistics.median(every_one) * 1e3, 2)
    return {"kinds": kinds, "median_ms": median, "p99_ms": p99, "limit_ms": LIMIT_MS, "within": p99 <= LIMIT_MS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6, help="answers to each question")
    parser.add_argument("--json", action="store_true")
    told = parser.parse_args()
    if told.rounds < 1:
        parser.error(f"--rounds {told.rounds}: 1 or more is needed")
    with tempfile.TemporaryDirectory() as folder:
        result = report(measure(told.rounds, Path(folder))) | {"machine": describe()}
    if told.json:
        print(json.dumps(result, ensure_ascii=False))
        return
    print(f"{'kind':10s} {'answers':>8s} {'median':>10s} {'p99':>10s}")
    for kind, row in result["kinds"].items():
        print(f"{kind:10s} {row['answers']:8d} {row['median_ms']:7.2f} ms {row['p99_ms']:7.2f} ms")
    print(f"all: median {result['median_ms']} ms, p99 {result['p99_ms']} ms, limit {LIMIT_MS:g} ms")


if __name__ == "__main__":
    main()
