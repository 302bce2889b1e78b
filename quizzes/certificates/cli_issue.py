"""Issuing a certificate into a registry: results files in, one signed file per certificate out."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime
from importlib import metadata, resources
from pathlib import Path
from typing import Any, NoReturn

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quizzes.certificates import identifier, issuing, names, rdf, signing, strict_json
from quizzes.certificates.cli_common import say, stop
from quizzes.certificates.cli_registry import index_of
from quizzes.certificates.issuing import Achieved, Place
from quizzes.certificates.keyring import Keyring
from quizzes.certificates.parts import format_time, parse_time
from quizzes.certificates.published import public_name
from quizzes.certificates.registry import Registry, RegistryError
from quizzes.certificates.verify import file_bytes
from quizzes.certificates.verify import verify as verify_bytes
from quizzes.say import _


def course_version() -> str:
    """The version of the installed course, or of the checkout where it is not installed."""
    try:
        return metadata.version("offload-lab")
    except metadata.PackageNotFoundError:
        from offload_lab import __version__

        return __version__


def bank_version() -> str:
    """Twelve hex digits of a SHA-256 over the names and contents of all files of the question bank."""
    digest = hashlib.sha256()
    files = (entry for entry in resources.files("quizzes").joinpath("bank").iterdir() if entry.name.endswith(".yaml"))
    for entry in sorted(files, key=lambda entry: entry.name):
        digest.update(entry.name.encode() + b"\0" + hashlib.sha256(entry.read_bytes()).digest())
    return "sha256-" + digest.hexdigest()[:12]


def tidy_name(value: str, where: str, longest: int) -> str:
    """`value` as it may stand on a certificate; look-alikes are said on the error stream. Stops where it may not."""
    try:
        tidy = names.tidy(value)
    except ValueError as error:
        stop(_("{where}: {error} on a certificate. Nothing was written.").format(where=where, error=error))
    if not 1 <= len(tidy) <= longest:
        stop(
            _("{where}: it has {count} characters; a certificate takes 1 to {longest}. Nothing was written.").format(
                where=where, count=len(tidy), longest=longest
            )
        )
    for remark in names.lookalikes(tidy):
        say(_("{where}: look twice. {remark}").format(where=where, remark=remark), error=True)
    return tidy


def issue_into(
    folder: Path,
    achieved: Achieved,
    private: Ed25519PrivateKey,
    *,
    now: datetime,
    valid_until: datetime | None,
    replaces: str | None,
) -> tuple[str, dict[str, Any], bytes]:
    """Issues a certificate into the registry in `folder`; the one with the id `replaces` is marked as superseded.

    Returns the id, the signed credential and its file's bytes: of the one that stands there already where this very replacement
    was made before. Stops, with nothing issued, where something is wrong.
    """
    registry = Registry(folder)
    try:
        ring = registry.ring()
        did = public_name(private)
        if ring.current.did != did:
            stop(
                _("{folder}: its current key is {did}, the key given is {did2}. Nothing was written.").format(
                    folder=folder, did=ring.current.did, did2=did
                )
            )
        old_index = None if replaces is None else index_of(registry, replaces)

        def make(index: int) -> tuple[str, bytes]:
            place = Place(did, identifier.new(), ring.url, ring.name, index)
            salt = None if achieved.email is None else secrets.token_hex(16)
            unsigned = issuing.build(achieved, place, issued=now, valid_until=valid_until, salt=salt)
            data = file_bytes(signing.sign(unsigned, private, format_time(now)))
            verdict = verify_bytes(data, issuer=did, now=now)
            if not verdict.valid:
                _broken(verdict.message)
            return place.identifier, data

        def same(document: dict[str, Any]) -> bool:
            return _is_of(document, achieved, did, ring, valid_until)

        made, data = registry.add(make, private, now, replaces=old_index, same=same)
    except RegistryError as error:
        stop(str(error))
    return made, strict_json.loads(data), data


def _is_of(document: dict[str, Any], achieved: Achieved, did: str, ring: Keyring, valid_until: datetime | None) -> bool:
    """Whether a signed certificate is what `achieved` would make, but for what is drawn at random."""
    try:
        index = int(document["credentialStatus"]["statusListIndex"])
        place = Place(did, document["id"].rpartition("/")[2], ring.url, ring.name, index)
        salt = next((one["salt"] for one in document["credentialSubject"]["identifier"] if one["hashed"]), None)
        issued = parse_time(document["validFrom"])
        built = issuing.build(achieved, place, issued=issued, valid_until=valid_until, salt=salt)
    except (KeyError, TypeError, ValueError):  # another shape, or no e-mail in one of the two
        return False
    return built == {part: value for part, value in document.items() if part != "proof"}


def _broken(message: str) -> NoReturn:
    stop(_("The new certificate does not verify: {message} Nothing was written; please report this.").format(message=message))


def require_rdf() -> None:
    """Stops where the extra `rdf` is not installed: before anything is issued."""
    try:
        rdf.canonical({})
    except rdf.RdfMissingError as error:
        stop(_("--wallet: {error} Nothing was written.").format(error=error))
