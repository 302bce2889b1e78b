"""Signed receipts of judged answers: what the judging service says, in one line of text that a notebook can carry. Pure.

A receipt is `olr1.PAYLOAD.SIGNATURE`, both parts base64url without padding. The payload is the canonical JSON (RFC 8785) of the
claims and of the issuer's did:key; the signature is Ed25519 over a prefix of its own and the payload, so that no signature made
for something else passes as a receipt. Whoever grades needs the issuer's public name and no key of any question.

There are two forms. `olr1` is of an answer without hints, byte for byte as it always was. `olr2` claims `hints` as well, at
least 1, under a prefix of its own. So one set of claims has one form: a program that knows olr1 only reads every receipt of a
learner who took no hint, and refuses the others whole instead of overlooking what they claim.

The rules by which receipts become a score are those of `tally`:

1. A receipt counts only under a trusted issuer, for this learner, this run, and a question of this assignment with its points
   and, where they are given, in its version. Its score is the one that was signed: what hints cost is taken off in it already.
2. One attempt counts once. A copy of a receipt adds nothing. Of two that differ and claim the same attempt, the lower counts.
3. An attempt beyond the limit doesn't count.
4. A question earns its best attempt.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quizzes.certificates import did_key, ed25519, strict_json
from quizzes.say import _

PREFIX = "olr1"
WITH_HINTS = "olr2"
"""The form of a receipt whose answer was given after hints."""
PREFIXES = (PREFIX, WITH_HINTS)
LONGEST = 8 * 1024
"""Characters of the longest receipt that is looked at."""

_CONTEXTS = {PREFIX: b"offload-lab receipt 1\n", WITH_HINTS: b"offload-lab receipt 2\n"}
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


class ReceiptError(ValueError):
    """A receipt is not one, is altered, or comes from an issuer that is not trusted; the message is a sentence."""


@dataclass(frozen=True)
class Claims:
    """What the service says about one judged answer."""

    learner: str
    run: str
    """The run of a lesson, 32 hexadecimal digits."""
    question: str
    variant: str
    """The recorded text of the variant that was drawn; "" where the question has none."""
    answer_hash: str
    """`answer_hash` of the answer in its recorded form."""
    score: float
    """Points earned, 0 … `max_score`, with what hints cost taken off."""
    max_score: float
    attempt: int
    """1 for the first."""
    at: str
    """UTC, as `2026-12-02T22:38:41.123456Z`."""
    nonce: str
    """What the client chose for this answer; the same nonce is never judged twice."""
    bank: str = ""
    """`quizzes.question.version` of the question by which it was judged; "" where the service does not say."""
    issuer: str = ""
    """did:key of the service. `sign` fills it in."""
    hints: int = 0
    """Hints that the learner had been sent when this was answered."""


def answer_hash(answer: Any) -> str:
    """`sha256:` and 64 hexadecimal digits of the canonical JSON of a recorded answer. Raises ReceiptError where it has none."""
    try:
        return "sha256:" + hashlib.sha256(strict_json.canonical(answer)).hexdigest()
    except strict_json.MalformedJsonError as error:
        raise ReceiptError(_("The answer cannot be hashed: {error}.").format(error=error)) from None


def sign(claims: Claims, private_key: Ed25519PrivateKey, issuer: str | None = None) -> str:
    """The receipt of `claims`, without blanks or line ends. `issuer` saves deriving the did:key of the key each time.

    Raises ReceiptError for claims that `check` would refuse.
    """
    issuer = issuer or did_key.did_of(ed25519.public_key(private_key))
    content = vars(claims) | {"issuer": issuer}
    form = PREFIX
    if claims.hints == 0:
        del content["hints"]
    else:
        form = WITH_HINTS
    _checked(content, form)
    try:
        payload = strict_json.canonical(content)
    except strict_json.MalformedJsonError as error:
        raise ReceiptError(_("The receipt cannot be written: {error}.").format(error=error)) from None
    receipt = f"{form}.{_text(payload)}.{_text(private_key.sign(_CONTEXTS[form] + payload))}"
    if len(receipt) > LONGEST:
        raise ReceiptError(
            _("The receipt has {count} characters; {most} are allowed.").format(count=len(receipt), most=LONGEST)
        )
    return receipt


def check(receipt: str, trusted: Set[str]) -> Claims:
    """The claims of a receipt that one of the `trusted` did:keys signed. Raises ReceiptError for anything else.

    One set of claims under one key has exactly one text that passes: a receipt altered in any character is refused.
    """
    if not isinstance(receipt, str) or len(receipt) > LONGEST:
        raise ReceiptError(_("This is not a receipt: a receipt is a text of at most {most} characters.").format(most=LONGEST))
    parts = receipt.split(".")
    if len(parts) != 3 or parts[0] not in PREFIXES:
        said = _("This is not a receipt: a receipt has the form {forms}.PAYLOAD.SIGNATURE.")
        raise ReceiptError(said.format(forms=_(" or ").join(PREFIXES)))
    payload, signature = _bytes(parts[1], "payload"), _bytes(parts[2], "signature")
    try:
        content = strict_json.loads(payload)
        canonical = strict_json.canonical(content)
    except strict_json.MalformedJsonError as error:
        raise ReceiptError(_("The receipt cannot be read: {error}.").format(error=error)) from None
    claims = _checked(content, parts[0])
    if canonical != payload:
        raise ReceiptError(_("The receipt is altered: its claims are not in canonical form."))
    if claims.issuer not in trusted:
        raise ReceiptError(
            _("The receipt is signed by {issuer}, which is not an issuer that you trust.").format(issuer=claims.issuer)
        )
    try:
        ed25519.verify(did_key.key_of(claims.issuer), signature, _CONTEXTS[parts[0]] + payload)
    except ValueError as error:
        raise ReceiptError(_("The receipt is altered or forged: {error}.").format(error=error)) from None
    return claims


def _checked(content: Any, form: str) -> Claims:
    names = {field.name for field in fields(Claims)}
    if form == PREFIX:
        names -= {"hints"}
    if not isinstance(content, dict) or set(content) != names:
        raise ReceiptError(_("The receipt must claim {names}, and nothing else.").format(names=", ".join(sorted(names))))
    for name in names - {"score", "max_score", "attempt", "hints"}:
        if not isinstance(content[name], str):
            raise ReceiptError(_("The receipt's {name} is not text.").format(name=name))
    for name in ("score", "max_score"):
        number = content[name]
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
            raise ReceiptError(_("The receipt's {name} is not a finite number.").format(name=name))
    if not 0 <= content["score"] <= content["max_score"]:
        raise ReceiptError(_("The receipt's score is not between 0 and max_score."))
    for name in names & {"attempt", "hints"}:
        number = content[name]
        # JSON has one kind of number: an attempt of 1.0 is written `1`.
        if isinstance(number, bool) or not isinstance(number, (int, float)) or number != number // 1 or number < 1:
            raise ReceiptError(_("The receipt's {name} is not a whole number from 1 on.").format(name=name))
    if not _HASH.fullmatch(content["answer_hash"]):
        raise ReceiptError(_("The receipt's answer_hash is not sha256: and 64 hexadecimal digits."))
    try:
        datetime.strptime(content["at"], _TIME)
    except ValueError:
        raise ReceiptError(_("The receipt's time is not of the form 2026-12-02T22:38:41.123456Z.")) from None
    return Claims(**(content | {name: int(content[name]) for name in names & {"attempt", "hints"}}))


def time_text(moment: datetime) -> str:
    """A moment with a time zone in the form of `Claims.at`."""
    return moment.astimezone(UTC).strftime(_TIME)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str, what: str) -> bytes:
    try:
        data = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise ReceiptError(_("The receipt's {what} is not base64url text.").format(what=what)) from None
    if _text(data) != text:  # spare bits of the last symbol, `+` or `/`
        raise ReceiptError(_("The receipt's {what} is not written in its one form.").format(what=what))
    return data


@dataclass(frozen=True)
class Tally:
    """What a list of receipts is worth."""

    best: dict[str, Claims]
    """By question id, the attempt that counts."""
    refused: tuple[tuple[int, str], ...]
    """(place in the list from 0, why in a sentence) of each receipt that doesn't count."""

    @property
    def score(self) -> float:
        return math.fsum(claims.score for claims in self.best.values())


def tally(
    receipts: Iterable[str],
    trusted: Set[str],
    learner: str,
    points: Mapping[str, float],
    *,
    run: str | None = None,
    attempts: int | None = None,
    versions: Mapping[str, str] | None = None,
    until: Mapping[str, str] | None = None,
) -> Tally:
    """The score of `learner` by the rules at the top of this module; nothing is raised for a bad receipt, it is refused.

    `points` are those of each question of the assignment by id. `run` is the run to grade; None: that of the learner's earliest
    acceptable receipt. `attempts` is the limit of attempts a question. `versions`: by question id, the version of the bank's
    question (see `Claims.bank`). `until`: by issuer, the time (as in `Claims.at`) from which its key is not in use any more.
    """
    read: list[tuple[int, Claims]] = []
    refused: list[tuple[int, str]] = []
    for place, receipt in enumerate(receipts):
        try:
            claims = check(receipt, trusted)
        except ReceiptError as error:
            refused.append((place, str(error)))
            continue
        why = _foreign(claims, learner, points, attempts) or _outdated(claims, versions, until or {})
        if why:
            refused.append((place, why))
        else:
            read.append((place, claims))
    if run is None and read:
        run = min((claims.at, claims.run) for _place, claims in read)[1]
    counted: dict[tuple[str, int], tuple[int, Claims]] = {}
    for place, claims in read:
        if claims.run != run:
            refused.append(
                (place, _("The receipt is of another run ({run}) of the lesson.").format(run=ascii(claims.run)[1:-1]))
            )
            continue
        slot = (claims.question, claims.attempt)
        if slot not in counted:
            counted[slot] = (place, claims)
            continue
        first, held = counted[slot]
        if claims == held:
            told = _("Attempt {attempt} of {question} is there twice; it counts once.")
            refused.append((place, told.format(attempt=claims.attempt, question=claims.question)))
            continue
        lower, other = ((place, claims), first) if claims.score < held.score else ((first, held), place)
        counted[slot] = lower
        told = _("Two receipts claim attempt {attempt} of {question}; the lower counts.")
        refused.append((other, told.format(attempt=claims.attempt, question=claims.question)))
    best: dict[str, Claims] = {}
    for _place, claims in sorted(counted.values(), key=lambda entry: entry[1].attempt):
        held = best.get(claims.question)
        if held is None or claims.score > held.score:
            best[claims.question] = claims
    return Tally(best, tuple(sorted(refused)))


def _foreign(claims: Claims, learner: str, points: Mapping[str, float], attempts: int | None) -> str | None:
    if claims.learner != learner:
        told = _("The receipt is of another learner ({found}), not of {learner}.")
        return told.format(found=ascii(claims.learner), learner=ascii(learner))
    if claims.question not in points:
        told = _("The receipt is of question {question}, which is not part of this assignment.")
        return told.format(question=ascii(claims.question))
    if claims.max_score != points[claims.question]:
        told = _("The receipt is of {found:g} points for {question}, which has {points:g}.")
        return told.format(found=claims.max_score, question=claims.question, points=points[claims.question])
    if attempts is not None and claims.attempt > attempts:
        told = _("The receipt is of attempt {attempt} of {question}; {most} count.")
        return told.format(attempt=claims.attempt, question=claims.question, most=attempts)
    return None


def _outdated(claims: Claims, versions: Mapping[str, str] | None, until: Mapping[str, str]) -> str | None:
    if versions is not None and claims.bank != versions[claims.question]:
        told = _("The receipt was judged by another version of {question} ({found}) than this bank has ({here}).")
        found = ascii(claims.bank)[1:-1] or _("none is named")
        return told.format(question=claims.question, found=found, here=versions[claims.question])
    retired = until.get(claims.issuer)
    if retired is not None and claims.at >= retired:
        told = _("The receipt is of {at}, and its key was in use until {retired}.")
        return told.format(at=claims.at, retired=retired)
    return None
