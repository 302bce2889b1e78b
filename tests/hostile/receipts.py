"""What learners hand in where the class is graded by receipts of the judging service: honest, and not."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quizzes.certificates import did_key, ed25519
from quizzes.question import graded, version
from quizzes.receipts import Claims, answer_hash, sign
from quizzes.variants import draw

KEY, OLD, OWN = (Ed25519PrivateKey.from_private_bytes(bytes(range(start, start + 32))) for start in (3, 4, 5))
DID, OLD_DID = (did_key.did_of(ed25519.public_key(key)) for key in (KEY, OLD))
RETIRED = "2026-06-01T00:00:00.000000Z"
BANK = graded("01")
Q1, Q2, Q3 = BANK.questions
CORRECT = {"q1": "c", "q2": ["a", "c", "e"], "q3": "48 GB"}


def claims(learner: str, question=Q1, **changes) -> Claims:
    """A receipt's claims for the right answer at the first attempt."""
    made = Claims(
        learner=learner,
        run="0" * 32,
        question=question.id,
        variant=draw(question, learner).variant,
        answer_hash=answer_hash(CORRECT[question.name]),
        score=question.points,
        max_score=question.points,
        attempt=1,
        at="2026-05-01T10:00:00.000000Z",
        nonce=f"nonce-{question.name}",
        bank=version(question),
    )
    return replace(made, **changes)


def receipt(learner: str, question=Q1, key=KEY, issuer=None, **changes) -> str:
    return sign(claims(learner, question, **changes), key, issuer)


def _text(*receipts: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "receipts.txt").write_text("\n".join(receipts), encoding="utf-8")


def _link(folder: Path) -> None:
    (folder / "receipts.txt").symlink_to(folder.parent.parent / "honest" / "quiz-01" / "receipts.txt")


def _altered(text: str) -> str:
    place = text.index(".") + 60
    return text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]


def _in_the_notebook(folder: Path) -> None:
    """As an answer record's output, and as the line of a cell."""
    path = folder / "quiz-01.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    data = {"application/vnd.offload-lab.answers+json": {"answers": {Q1.id: {"receipt": receipt("in the notebook")}}}}
    notebook["cells"][1]["outputs"] = [{"output_type": "display_data", "metadata": {}, "data": data}]
    lines = [f"# {receipt('in the notebook', Q2)}\n", "1\n"]
    notebook["cells"].append({"cell_type": "code", "source": lines, "metadata": {}, "outputs": [], "execution_count": None})
    path.write_text(json.dumps(notebook), encoding="utf-8")


def _folder(folder: Path) -> None:
    (folder / "receipts").mkdir()
    for question in BANK.questions:
        (folder / "receipts" / f"{question.name}.txt").write_text(receipt("a folder", question), encoding="utf-8")


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "receipts.txt")


def _large(folder: Path) -> None:
    (folder / "receipts.txt").write_bytes(b"olr1." + b"A" * 6_000_000)


def _many(folder: Path) -> None:
    (folder / "receipts.txt").write_text(receipt("many") + "\n" + "\n".join(f"olr1.{n}.AAAA" for n in range(20_000)))


# name: (answers typed, what else is in the folder, the score, a part of a note or None where there is none)
CASES: dict[str, tuple[dict[str, str], Callable[[Path], object], float, str | None]] = {
    "honest": ({}, _text(*(receipt("honest", question) for question in BANK.questions)), 3, None),
    "typed as well": (
        {"q1": "c", "q2": "e, c, a", "q3": "48 GB"},
        _text(*(receipt("typed as well", question) for question in BANK.questions)),
        3,
        None,
    ),
    "in the notebook": ({}, _in_the_notebook, 2, "neither a receipt that counts nor an answer for q3"),
    "a folder": ({}, _folder, 3, None),
    "a json file": (
        {},
        lambda folder: (folder / "receipts.json").write_text(json.dumps([receipt("a json file")])),
        1,
        "neither a receipt that counts",
    ),
    "best attempt": (
        {},
        _text(receipt("best attempt", score=0.5), receipt("best attempt", attempt=2, nonce="second-nonce")),
        1,
        "neither",
    ),
    "an old key in time": ({}, _text(receipt("an old key in time", key=OLD)), 1, "neither"),
    "an old key late": ({}, _text(receipt("an old key late", key=OLD, at="2026-06-02T00:00:00.000000Z")), 0, "in use until"),
    "own service": ({}, _text(receipt("own service", key=OWN)), 0, "not an issuer that you trust"),
    "forged": ({}, _text(receipt("forged", key=OWN, issuer=DID)), 0, "altered or forged"),
    "altered": ({}, _text(_altered(receipt("altered"))), 0, "receipt 1 of receipts.txt: The receipt"),
    "cut off": ({}, _text(receipt("cut off")[:-9]), 0, "receipt 1 of receipts.txt"),
    "of another": ({}, _text(receipt("honest")), 0, "of another learner"),
    "of another lesson": ({}, _text(sign(replace(claims("of another lesson"), question="g02-1"), KEY)), 0, "not part of this"),
    "another bank": ({}, _text(receipt("another bank", bank="0" * 16)), 0, "another version"),
    "no bank": ({}, _text(receipt("no bank", bank="")), 0, "none is named"),
    "more points": ({}, _text(receipt("more points", score=100.0, max_score=100.0)), 0, "100 points"),
    "a third attempt": ({}, _text(receipt("a third attempt", attempt=3)), 0, "2 count"),
    "another run": (
        {},
        _text(receipt("another run", score=0.0), receipt("another run", run="1" * 32, at="2026-05-02T10:00:00.000000Z")),
        0,
        "another run",
    ),
    "one attempt twice": (
        {},
        _text(receipt("one attempt twice", score=0.0), receipt("one attempt twice", nonce="another-nonce")),
        0,
        "the lower counts",
    ),
    "twice": ({}, _text(receipt("twice"), receipt("twice")), 1, "is there twice"),
    "typed beside a wrong one": (
        {"q1": "c"},
        _text(receipt("typed beside a wrong one", score=0.0, answer_hash=answer_hash("a"))),
        0,
        "another answer than the judged one is typed for q1",
    ),
    "receipts thrown away": (CORRECT, lambda folder: None, 0, "no receipt counts for it"),
    "a link": ({}, _link, 0, "receipts.txt was not read"),
    "a pipe": ({}, _pipe, 0, "receipts.txt was not read"),
    "a folder by the name": ({}, lambda folder: (folder / "receipts.txt").mkdir(), 0, None),
    "too large": ({}, _large, 0, "more than 5,000,000 bytes"),
    "many": ({}, _many, 1, "the first 500"),
    "bytes": ({}, lambda folder: (folder / "receipts.txt").write_bytes(b"olr1.\xff\x00\xfe.\x80 olr1. olr1.."), 0, "form olr1"),
    "words": ({}, _text("olr1.\x1b[2J\x07honest:\u202e3.A"), 0, "receipt 1"),
}  # fmt: skip
