"""A certificate that a learner issues to themselves, in memory, with a key of their own: what it says, and what flips it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from offload_lab.plots.shown import Shown
from quizzes.certificates import badge, identifier, issuing, names, signing, strict_json
from quizzes.certificates.cli_issue import bank_version, course_version
from quizzes.certificates.issuing import Achieved, File, Passed, Place
from quizzes.certificates.judge import Judgement, judge
from quizzes.certificates.parts import LONGEST_NAME, format_time
from quizzes.certificates.published import public_name
from quizzes.certificates.verify import file_bytes
from quizzes.say import N_, _

PASS_MARK = Decimal("0.8")
SPECIMEN = "Specimen"
_TITLE = "Final quiz and certificate"
_PATIENCE = 120
_RAN_OUT = N_("It did not answer in {seconds} s. Try it in a terminal.")


@dataclass(frozen=True)
class Own:
    """A self-issued certificate: its file's bytes, the issuer's did:key, whether the points were reached, and to whom."""

    data: bytes
    did: str
    earned: bool
    learner: str
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        made = _("Issued to {learner} by {did}, and by nobody else: {count} bytes.")
        return "\n".join([*self.notes, made.format(learner=self.learner, did=self.did, count=len(self.data))])

    __repr__ = __str__

    @property
    def place(self) -> int:
        """Where in the file the name begins."""
        before = b'"identityHash":"'
        return self.data.index(before) + len(before)

    @property
    def document(self) -> dict[str, Any]:
        """The signed credential as a fresh dict."""
        held: dict[str, Any] = strict_json.loads(self.data)
        return held


def issue(
    name: Any,
    reached: float,
    there: float,
    record: bytes,
    private: Ed25519PrivateKey | None = None,
    now: datetime | None = None,
) -> Own:
    """A certificate of the final quiz for `name`, who has `reached` of `there` points; `record` is the evidence.

    Below 80 % of the points it is made out as a specimen, and says so in what is signed. So it is for a name that may not
    stand on a certificate, which is told in `notes`. `private` is drawn at random and forgotten where it is left out.
    """
    key = private or Ed25519PrivateKey.generate()
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    did, notes = public_name(key), []
    score, most = Decimal(str(round(reached, 4))), Decimal(str(round(there, 4)))
    earned = score >= PASS_MARK * most
    learner = _tidy(name, notes)
    if not earned:
        learner = SPECIMEN
        said = _(
            "You have {reached:g} of {there:g} points, and {mark:.0%} of them are needed. So this is a specimen, and says so."
        )
        notes.append(said.format(reached=reached, there=there, mark=PASS_MARK))
    kind = "specimen, not earned" if not earned else "specimen" if learner == SPECIMEN else "self-issued"
    passed = Passed("12", f"{_TITLE} ({kind})", score, most)
    achieved = Achieved(
        learner, "name", (passed,), PASS_MARK, "self-paced", course_version(), bank_version(), (File.of("answers", record),)
    )
    unsigned = issuing.build(achieved, Place(did, identifier.new()), issued=moment)
    data = file_bytes(signing.sign(unsigned, key, format_time(moment)))
    return Own(data, did, earned, learner, tuple(notes))


def _tidy(name: Any, notes: list[str]) -> str:
    try:
        tidy = names.tidy(name) if isinstance(name, str) else ""
    except ValueError as error:
        notes.append(
            _("{name!r} may not stand on a certificate: {why}. It is made out to {other}.").format(
                name=name, why=error, other=SPECIMEN
            )
        )
        return SPECIMEN
    if not 1 <= len(tidy) <= LONGEST_NAME:
        said = _("A name is a text of 1 to {most} characters. It is made out to {other}.")
        notes.append(said.format(most=LONGEST_NAME, other=SPECIMEN))
        return SPECIMEN
    return tidy


def verdict(data: bytes, issuer: str | None = None) -> Judgement:
    """The verdict of today on a certificate's bytes, offline; `issuer` is the did:key that is trusted."""
    return judge(data, now=datetime.now(UTC), issuer=issuer)


def flipped(data: bytes, place: int, bit: int = 0) -> bytes:
    """`data` with one bit of the byte at `place` changed. Raises IndexError for a place that there is not."""
    changed = bytearray(data)
    changed[place] ^= 1 << bit
    return bytes(changed)


def refused(data: bytes, issuer: str) -> tuple[int, int]:
    """Of one changed bit in each byte of `data`, every bit in turn: how many are refused, and how many were tried."""
    kept = sum(verdict(flipped(data, place, place % 8), issuer).verdict == "valid" for place in range(len(data)))
    return len(data) - kept, len(data)


def at_the_prompt(data: bytes, issuer: str | None = None) -> str:
    """What the command says of the file in a terminal, with its exit status; the file is gone afterwards."""
    trusted = ["--issuer", issuer] if issuer else []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "certificate.json").write_bytes(data)
        command = [sys.executable, "-m", "quizzes.cli", "certificate", "verify", "certificate.json", *trusted]
        try:
            ran = subprocess.run(
                command, cwd=folder, capture_output=True, encoding="utf-8", errors="replace", timeout=_PATIENCE
            )
        except subprocess.TimeoutExpired:
            return _(_RAN_OUT).format(seconds=_PATIENCE)
    shown = " ".join(["$ offload-quiz certificate verify certificate.json", *trusted])
    return f"{shown}\n{(ran.stdout + ran.stderr).strip()}\n" + _("(exit status {code})").format(code=ran.returncode)


class Drawn(Shown):
    """A certificate as its badge: the picture that carries the credential whole."""

    def __init__(self, own: Own) -> None:
        self.title = _("The certificate, drawn")
        self._own = own

    def summary(self) -> list[str]:
        said = _("Made out to {learner}, signed with the key {did}.")
        return [said.format(learner=self._own.learner, did=self._own.did)]

    def tables(self) -> list[Any]:
        return []

    def svg(self) -> str:
        return badge.render(self._own.document).decode()


_WAYS = ("spaces", "line end", "cut off", "signed again", "another issuer")


def tampered(own: Own, way: str) -> bytes:
    """The certificate's bytes bent in one of five ways: "spaces" between its parts, another "line end", "cut off" in the
    middle, "signed again" by a new key under another name, or "another issuer" put into it, with the old signature.

    Raises ValueError for another way.
    """
    document = own.document
    if way == "spaces":
        return json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"
    if way == "line end":
        return own.data.rstrip(b"\n") + b"\r\n"
    if way == "cut off":
        return own.data[: len(own.data) // 2]
    other = Ed25519PrivateKey.generate()
    if way == "signed again":
        return issue("Somebody Else", 1, 1, b"", other).data
    if way == "another issuer":
        return own.data.replace(own.did.encode(), public_name(other).encode())
    raise ValueError(_("way={way!r}: one of {ways} is needed").format(way=way, ways=", ".join(map(repr, _WAYS))))
