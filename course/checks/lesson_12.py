"""Lesson 12: the 64 bytes that a certificate's signature is over. What is expected comes from the issuer's own code."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from course.contract import Case, Contract, Idea
from quizzes.certificates import signing
from quizzes.certificates.strict_json import canonical
from quizzes.say import N_

_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))  # of the exercise alone: it signs nothing that means anything
_WHEN = "2026-01-02T03:04:05Z"


class Shown(dict[str, Any]):
    """A signed document that shows itself by its name, for it is long."""

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.name = name

    def __repr__(self) -> str:
        return self.name


class Digest(bytes):
    """Bytes that show themselves by their first ones and their number."""

    def __repr__(self) -> str:
        return f"{self[:4].hex(' ')} … ({len(self)} bytes)"


class _Kept(Contract):
    """Each call gets a copy of the document, so that a function which takes it apart breaks no later case."""

    def check(self, function: Callable[..., Any]) -> bool:
        def called(*arguments: Any) -> Any:
            given = function(*copy.deepcopy(arguments))
            return Digest(given) if isinstance(given, bytes | bytearray) else given

        return super().check(called)


def signed(name: str, document: dict[str, Any]) -> Shown:
    """`document` signed with the key of the exercise."""
    return Shown(name, signing.sign(document, _KEY, _WHEN))


def parts(secured: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document without its proof, and the proof's options: the proof without its value."""
    document = {key: value for key, value in secured.items() if key != "proof"}
    return document, {key: value for key, value in secured["proof"].items() if key != "proofValue"}


def expected(secured: dict[str, Any]) -> bytes:
    """What the issuer's own code hashes."""
    return Digest(signing.hash_data(*parts(secured)))


def _two(first: bytes, second: bytes) -> bytes:
    return hashlib.sha256(first).digest() + hashlib.sha256(second).digest()


def _written(**how: Any) -> Callable[[dict[str, Any]], bytes]:
    """Everything right but the way in which JSON is written."""

    def wrong(secured: dict[str, Any]) -> bytes:
        document, options = parts(secured)
        plain = {"sort_keys": True, "separators": (",", ":"), "ensure_ascii": False} | how
        return _two(*(json.dumps(part, **plain).encode() for part in (options, document)))

    return wrong


def _swapped(secured: dict[str, Any]) -> bytes:
    document, options = parts(secured)
    return _two(canonical(document), canonical(options))


def _with_value(secured: dict[str, Any]) -> bytes:
    return _two(canonical(secured["proof"]), canonical(parts(secured)[0]))


def _with_proof(secured: dict[str, Any]) -> bytes:
    return _two(canonical(parts(secured)[1]), canonical(secured))


def _whole(secured: dict[str, Any]) -> bytes:
    return hashlib.sha256(canonical(secured)).digest()


def _document_alone(secured: dict[str, Any]) -> bytes:
    return hashlib.sha256(canonical(parts(secured)[0])).digest()


def _hashed_once(secured: dict[str, Any]) -> bytes:
    document, options = parts(secured)
    return hashlib.sha256(canonical(options) + canonical(document)).digest()


def _not_hashed(secured: dict[str, Any]) -> bytes:
    document, options = parts(secured)
    return canonical(options) + canonical(document)


def _digits(secured: dict[str, Any]) -> str:
    return expected(secured).hex()


_ORDER = N_("First the hash of the proof's options, then that of the document, 32 bytes each.")
_JSON = N_("Canonical JSON has sorted keys, no space between its parts, and letters as they are, in UTF-8.")

signed_bytes = _Kept(
    "signed_bytes",
    [
        *(
            Case((secured,), expected(secured), hint)
            for secured, hint in (
                (signed("two keys in order", {"a": "1", "b": "2"}), _ORDER),
                (signed("keys out of order", {"b": "2", "a": {"d": ["4", "3"], "c": False}}), _JSON),
                (signed("a name with an accent", {"name": "Zoé 김", "id": "x"}), _JSON),
                (signed("a name with spaces: and, commas", {"name": "a: b, c", "list": []}), _JSON),
                (
                    signed("a document with a context", {"@context": ["u", "v"], "name": "n"}),
                    N_("The context stands in the document and in the proof. It stays in both."),
                ),
            )
        ),
        Case(({"name": "n"},), ValueError, N_("What carries no proof is not signed: a ValueError.")),
    ],
    [
        Idea(N_("You hash the document first. The options of the proof come first, and then the document."), _swapped),
        Idea(
            N_("You leave proofValue in the options. It is the signature itself, which cannot be among what it signs."),
            _with_value,
        ),
        Idea(N_("You leave the proof in the document. It was not there yet when the document was signed."), _with_proof),
        Idea(
            N_("You hash the file as it is, with its signature in it. No signature can be over itself: take the proof apart."),
            _whole,
        ),
        Idea(
            N_(
                "You hash the document alone. Then anybody could change the date and the purpose of the proof, and it would "
                "still be whole."
            ),
            _document_alone,
        ),
        Idea(
            N_("You hash once, over both. Each has a hash of its own, and the 64 bytes are the one behind the other."),
            _hashed_once,
        ),
        Idea(N_("You join the texts themselves. What is signed is their hashes, 32 bytes each."), _not_hashed),
        Idea(N_("You return hexadecimal digits. A hash is 32 bytes: digest(), not hexdigest()."), _digits),
        Idea(
            N_("You return hexadecimal digits. A hash is 32 bytes: digest(), not hexdigest()."),
            lambda secured: _digits(secured).encode(),
        ),
        Idea(
            N_("You write spaces between the parts of the JSON. One space more is another hash."),
            _written(separators=(", ", ": ")),
        ),
        Idea(
            N_("You keep the order of the keys. Two programs write one object in two orders; canonical JSON sorts them."),
            _written(sort_keys=False),
        ),
        Idea(
            N_("You write é as \\u00e9. Canonical JSON has the letter itself, in UTF-8."),
            _written(ensure_ascii=True),
        ),
        Idea(
            N_(
                "This is the JSON that Python writes by itself: with spaces, in the order of the keys, é as \\u00e9. None of "
                "it is canonical."
            ),
            _written(sort_keys=False, separators=None, ensure_ascii=True),
        ),
    ],
    N_(
        "Take the proof out of the document, and proofValue out of the proof. Write both as canonical JSON, hash each, join "
        "the two."
    ),
)
