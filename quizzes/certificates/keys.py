"""The files of an issuer's key: the private key, for its owner alone, and the public name beside it."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from quizzes.certificates import did_key, ed25519
from quizzes.say import _

_LARGEST_FILE = 16 * 1024
LONGEST_PASSPHRASE = 1000
"""Bytes; OpenSSL takes no more than 1,023."""
PASSPHRASE_VARIABLE = "OFFLOAD_QUIZ_PASSPHRASE"
"""The environment variable that may hold the passphrase."""


class KeyFileError(ValueError):
    """A key file cannot be used or must not be written; the message says why and what to do."""


def public_path(path: Path) -> Path:
    """Where the public name of the key in `path` stands: the same name with `.pub` added."""
    return path.with_name(path.name + ".pub")


TEST_SEED = hashlib.sha256(b"offload-lab test key").digest()
"""The seed of the test key that `keygen --test` writes: the same everywhere, so that every verifier knows and refuses it."""


def generate(path: Path, passphrase: bytes | None = None, *, test: bool = False) -> str:
    """Makes a new key, writes it to `path` (PKCS #8, readable by its owner only) and its did:key to `public_path(path)`.

    The file is encrypted with `passphrase` (UTF-8, not empty); None leaves it open. `test` writes the published test key.
    Returns the did:key. Raises KeyFileError, and leaves everything as it was, when either file exists or cannot be written.
    """
    if passphrase is not None and not 1 <= len(passphrase) <= LONGEST_PASSPHRASE:
        raise KeyFileError(
            _("The passphrase has {count} bytes; give 1 to {longest_passphrase}.").format(
                count=len(passphrase), longest_passphrase=LONGEST_PASSPHRASE
            )
        )
    private = Ed25519PrivateKey.from_private_bytes(TEST_SEED) if test else Ed25519PrivateKey.generate()
    did = did_key.did_of(ed25519.public_key(private))
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase is not None:
        encryption = serialization.BestAvailableEncryption(passphrase)
    pem = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    _write_new(path, pem, 0o600)
    try:
        _write_new(public_path(path), did.encode() + b"\n", 0o644)
    except KeyFileError:
        path.unlink()
        raise
    return did


def is_encrypted(path: Path) -> bool:
    """Whether the key file asks for a passphrase. Raises KeyFileError where it cannot be read."""
    return b"ENCRYPTED" in _read(path)


def load_private(path: Path, passphrase: bytes | None = None) -> Ed25519PrivateKey:
    """The issuer's key in `path`, opened with `passphrase` where it is encrypted.

    Raises KeyFileError for a file that others can read, a passphrase that does not open it, and anything but an Ed25519 key.
    """
    data = _read(path)
    mode = stat.S_IMODE(path.stat().st_mode)
    if os.name == "posix" and mode & 0o077:
        raise KeyFileError(
            _(
                "{path}: other users of this machine may open this private key (mode {mode:o}). Whoever has read it can "
                "issue certificates in your name. Close it with `chmod 600 {path}`, or make a new key if somebody may "
                "have read it."
            ).format(path=path, mode=mode)
        )
    encrypted = b"ENCRYPTED" in data
    if encrypted and passphrase is None:
        raise KeyFileError(
            _(
                "{path}: this private key is encrypted. Give its passphrase: --passphrase-file, or {variable}. A lost "
                "passphrase cannot be found again; then make a new key with keygen."
            ).format(path=path, variable=PASSPHRASE_VARIABLE)
        )
    try:
        private = serialization.load_pem_private_key(data, password=passphrase if encrypted else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        if encrypted:
            message = _("the passphrase does not open this private key, or the file is damaged")
            raise KeyFileError(
                _("{path}: {message}. If it is lost, make a new key with keygen.").format(path=path, message=message)
            ) from None
        raise KeyFileError(
            _("{path}: this is not a private key in PEM form. Make one with `offload-quiz certificate keygen`.").format(
                path=path
            )
        ) from None
    if not isinstance(private, Ed25519PrivateKey):
        raise KeyFileError(
            _("{path}: this key is not an Ed25519 key. Make one with `offload-quiz certificate keygen`.").format(path=path)
        )
    return private


def load_issuer(name: str) -> str:
    """The did:key that `name` stands for: a did:key itself, or the path of a file with one or with a public key in PEM form.

    Raises KeyFileError when it is neither.
    """
    if name.startswith("did:"):
        return _did(name, _("The issuer"))
    path = Path(name)
    data = _read(path)
    if b"PRIVATE KEY" in data:
        raise KeyFileError(
            _("{path}: this is a private key. Keep it secret, and give its public file, {path2}.").format(
                path=path, path2=public_path(path)
            )
        )
    if data.startswith(b"-----BEGIN PUBLIC KEY-----"):
        try:
            public = serialization.load_pem_public_key(data)
        except (ValueError, UnsupportedAlgorithm):
            raise KeyFileError(
                _("{path}: this public key is damaged. Ask the issuer for it again.").format(path=path)
            ) from None
        if not isinstance(public, Ed25519PublicKey):
            raise KeyFileError(
                _("{path}: this is not an Ed25519 key. Ask the issuer for the key that signs certificates.").format(path=path)
            )
        return _did_of(public.public_bytes_raw(), str(path))
    return _did(data.decode("utf-8", "replace").strip(), str(path))


def _did(name: str, where: str) -> str:
    try:
        did_key.key_of(name)
    except ValueError as error:
        raise KeyFileError(
            _("{where}: this does not name a key: {error}. Ask the issuer for the .pub file.").format(where=where, error=error)
        ) from None
    return name


def _did_of(key: bytes, where: str) -> str:
    try:
        return did_key.did_of(key)
    except ValueError as error:
        raise KeyFileError(_("{where}: this key must not be used: {error}.").format(where=where, error=error)) from None


def _read(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise KeyFileError(
                _("{path}: there is no such file. Write the path of a key file, or make one with `keygen`.").format(path=path)
            )
        with path.open("rb") as file:
            return file.read(_LARGEST_FILE)
    except OSError as error:
        raise KeyFileError(
            _("{path}: the key file cannot be read ({strerror}).").format(path=path, strerror=error.strerror)
        ) from None


def _write_new(path: Path, data: bytes, mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise KeyFileError(
            _(
                "{path}: there is a file already, and a key that is overwritten is gone for good. Choose another path "
                "for --out."
            ).format(path=path)
        ) from None
    except OSError as error:
        raise KeyFileError(
            _("{path}: the key file cannot be made ({strerror}). Choose another path for --out.").format(
                path=path, strerror=error.strerror
            )
        ) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink()
        raise KeyFileError(
            _("{path}: the key cannot be written ({strerror}). Choose another path for --out.").format(
                path=path, strerror=error.strerror
            )
        ) from None
