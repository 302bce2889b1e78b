"""An issuer's registry as a folder: what it publishes, changed whole or not at all, one writer at a time."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quizzes.certificates import identifier, keyring, pending, published, signing, status_list, strict_json
from quizzes.certificates.keyring import Keyring, KeyringError
from quizzes.certificates.parts import format_time
from quizzes.certificates.published import Published, StatusUnknownError
from quizzes.certificates.verify import LARGEST_FILE, file_bytes
from quizzes.say import _

try:
    import fcntl
except ImportError:  # Windows: two issuers at once are then kept apart by people only
    fcntl = None  # type: ignore[assignment]

_LARGEST_LIST = 8 * 1024 * 1024
_TRIES = 100


class RegistryError(ValueError):
    """A registry cannot be used or changed; the message names the file and says what to do."""


def _as_files(documents: dict[str, dict[str, Any]]) -> dict[str, bytes]:
    return {f"{name}.json": file_bytes(document) for name, document in documents.items()}


class Registry:
    """The registry in the folder `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Published:
        """The bytes of its files. Raises RegistryError where it is no folder or a file cannot be read."""
        if not self.path.is_dir():
            raise RegistryError(
                _("{path}: there is no such folder. Write the folder that has issuer.json in it.").format(path=self.path)
            )
        for _again in range(_TRIES):
            found = self._snapshot()
            # What two readings in a row agree on stood there at one moment, between them.
            if found == self._snapshot():
                return found
        raise RegistryError(_("{path}: it is being changed all the time. Try again in a moment.").format(path=self.path))

    def _snapshot(self) -> Published:
        noted = self._noted()
        names = (f"{name}.json" for name in ("issuer", "status", "revocations"))
        return Published(*(noted.get(name, self._bytes(self.path / name)) for name in names))

    def _noted(self) -> dict[str, bytes]:
        try:
            return pending.noted(self.path)
        except (OSError, pending.PendingError) as error:
            why = getattr(error, "strerror", None) or error
            raise RegistryError(
                _("{path}: the note of a change cannot be used ({why}).").format(path=self.path / pending.NAME, why=why)
            ) from None

    def ring(self) -> Keyring:
        """The issuer's keys. Raises RegistryError where they cannot be relied on."""
        try:
            return self.read().ring()
        except KeyringError as error:
            raise RegistryError(
                _("{path}: {error}. Make a registry with `certificate init`.").format(
                    path=self.path / "issuer.json", error=error
                )
            ) from None

    def certificate_path(self, name: str) -> Path:
        """Where the certificate with the id `name`, as people write it, stands. Raises RegistryError for what is no id."""
        try:
            return self.path / "c" / f"{identifier.parse(name)}.json"
        except identifier.IdentifierError as error:
            raise RegistryError(
                _("{name!a}: this is not the id of a certificate: {error}.").format(name=name[:60], error=error)
            ) from None

    def certificate(self, name: str) -> bytes:
        """The bytes of the certificate with the id `name`. Raises RegistryError where there is none."""
        path = self.certificate_path(name)
        data = self._noted().get(f"c/{path.name}", self._bytes(path, LARGEST_FILE))
        if data is None:
            raise RegistryError(
                _("{path}: there is no certificate with the id {stem} here.").format(
                    path=self.path, stem=identifier.shown(path.stem)
                )
            )
        return data

    def identifiers(self) -> list[str]:
        """The ids of all certificates here, in order; of a change that is written down, too."""
        names = {path.name for path in (self.path / "c").glob("*.json")}
        names |= {name.removeprefix("c/") for name in self._noted() if name.startswith("c/")}
        return sorted(found for name in names if identifier.is_canonical(found := name.removesuffix(".json")))

    def create(self, private: Ed25519PrivateKey, *, name: str, url: str, begin: datetime, now: datetime) -> None:
        """Makes the registry; `begin` is from when on its key signs. Raises RegistryError where there is one already."""
        with self._writing(create=True):
            if (self.path / "issuer.json").exists():
                raise RegistryError(
                    _("{path}: there is a registry already. To change the key, use `certificate rotate`.").format(
                        path=self.path
                    )
                )
            try:
                document = keyring.first(private, name=name, url=url, begin=begin, now=now)
            except KeyringError as error:
                raise RegistryError(_("{path}: {error}. Nothing was made.").format(path=self.path, error=error)) from None
            lists = self._lists(keyring.read(document), private, status_list.empty(), [], now)
            self._change(_as_files({**lists, "issuer": document}))

    def rotate(self, old: Ed25519PrivateKey, new: Ed25519PrivateKey, now: datetime) -> None:
        """`new` signs from `now` on; the lists are signed with it anew. Raises RegistryError where `old` is not current."""
        with self._writing():
            document, _ring, bits, entries = self._state()
            try:
                document = keyring.rotated(document, old, new, now=now)
            except KeyringError as error:
                raise RegistryError(f"{self.path}: {error}.") from None
            lists = self._lists(keyring.read(document), new, bits, entries, now)
            self._change(_as_files({**lists, "issuer": document}))

    def refresh(self, private: Ed25519PrivateKey, now: datetime) -> None:
        """Signs both lists anew, so that they are good for another time."""
        with self._writing():
            _document, ring, bits, entries = self._state()
            self._change(_as_files(self._lists(ring, private, bits, entries, now)))

    def free_index(self) -> int:
        """A random index of the status list that no certificate here has. Raises RegistryError where half are taken."""
        used = set()
        for path in sorted((self.path / "c").glob("*.json")):
            document = self._loads(path)
            status = document.get("credentialStatus") if isinstance(document, dict) else None
            used.add(status.get("statusListIndex") if isinstance(status, dict) else None)
        if len(used) >= status_list.ENTRIES // 2:
            raise RegistryError(
                _("{path}: half of the status list is taken. Make another registry for new certificates.").format(
                    path=self.path
                )
            )
        while True:
            index = secrets.randbelow(status_list.ENTRIES)
            if str(index) not in used:
                return index

    def add(
        self,
        make: Callable[[int], tuple[str, bytes]],
        private: Ed25519PrivateKey,
        now: datetime,
        *,
        replaces: int | None = None,
        same: Callable[[Any], bool] = lambda document: False,
    ) -> tuple[str, bytes]:
        """Adds the certificate that `make` gives for a free index: its id and the bytes of its file, which are returned.

        The certificate with the index `replaces` is marked as superseded in the same change: both are done, or neither. Where
        that was done before, by the same order as `same` tells from a certificate, nothing is changed and what that order made
        is returned. Raises RegistryError where the old one was revoked or replaced otherwise; `make` may raise what it likes.
        """
        with self._writing():
            if replaces is None:
                name, data = make(self.free_index())
                self._change({f"c/{name}.json": data})
                return name, data
            _document, ring, bits, entries = self._state()
            earlier = next((entry for entry in entries if entry["index"] == str(replaces)), None)
            if earlier is not None or status_list.is_set(bits, replaces):
                return self._made_before(earlier or {}, same)
            name, data = make(self.free_index())
            lists = self._superseding(ring, bits, entries, replaces, private, now)
            self._change({**lists, f"c/{name}.json": data})
            return name, data

    def _made_before(self, entry: dict[str, Any], same: Callable[[Any], bool]) -> tuple[str, bytes]:
        if entry.get("superseded") is True:
            for path in sorted((self.path / "c").glob("*.json")):
                document = self._loads(path)
                # Both were dated by one clock in one change.
                if isinstance(document, dict) and document.get("validFrom") == entry["since"] and same(document):
                    return path.stem, self._bytes(path) or b""
            what = _("replaced on {since}, by another order than this one. Name the newer certificate in --replaces").format(
                since=entry["since"]
            )
        else:
            what = _("revoked {since}. Issue the new one without --replaces").format(since=entry.get("since", _("before")))
        raise RegistryError(
            _("{path}: the certificate to replace was already {what}. Nothing was written.").format(path=self.path, what=what)
        )

    def _superseding(
        self,
        ring: Keyring,
        bits: bytearray,
        entries: list[dict[str, Any]],
        index: int,
        private: Ed25519PrivateKey,
        now: datetime,
    ) -> dict[str, bytes]:
        status_list.set_bit(bits, index)
        why = "replaced by a newer certificate"
        entry = {"index": str(index), "since": format_time(now), "reason": why, "superseded": True}
        return _as_files(self._lists(ring, private, bits, [*entries, entry], now))

    def revoke(self, index: int, reason: str, private: Ed25519PrivateKey, now: datetime) -> dict[str, Any]:
        """Sets entry `index` and notes since when and why; an entry that is set already stays as it is. Returns the entry."""
        with self._writing():
            _document, ring, bits, entries = self._state()
            entry: dict[str, Any] = {"index": str(index), "since": format_time(now), "reason": reason}
            entry = next((old for old in entries if old["index"] == str(index)), entry)
            status_list.set_bit(bits, index)
            entries = [*(old for old in entries if old["index"] != str(index)), entry]
            self._change(_as_files(self._lists(ring, private, bits, entries, now)))
            return entry

    def _lists(
        self, ring: Keyring, private: Ed25519PrivateKey, bits: bytearray, entries: list[dict[str, Any]], now: datetime
    ) -> dict[str, dict[str, Any]]:
        did = published.public_name(private)
        if did != ring.current.did:
            raise RegistryError(
                _("{path}: its current key is {did}, the key given is {did2}.").format(
                    path=self.path, did=ring.current.did, did2=did
                )
            )
        status = status_list.build(bits, url=f"{ring.url}/status.json", issuer=did, now=now)
        revocations = published.build_revocations(entries, base=ring.url, issuer=did, now=now)
        stamp = format_time(now)
        return {"revocations": signing.sign(revocations, private, stamp), "status": signing.sign(status, private, stamp)}

    def _state(self) -> tuple[dict[str, Any], Keyring, bytearray, list[dict[str, Any]]]:
        """What the registry says now. A list that was altered is an error here, whatever its age."""
        ring = self.ring()
        documents = self.read()
        try:
            if documents.status is None or documents.revocations is None:
                raise StatusUnknownError(_("status.json or revocations.json is missing; bring it back from a copy"))
            entries = published.entries_of(documents.revocations, ring)
            bits = bytearray(published.bits_of(documents.status, ring, None))
        except StatusUnknownError as error:
            raise RegistryError(_("{path}: {error}. Nothing was changed.").format(path=self.path, error=error)) from None
        return self._loads(self.path / "issuer.json"), ring, bits, entries

    def _change(self, files: dict[str, bytes]) -> None:
        try:
            pending.change(self.path, files)
        except OSError as error:
            where = _("{path}: cannot be written ({strerror}).").format(
                path=error.filename or self.path, strerror=error.strerror
            )
            if self._noted():
                raise RegistryError(
                    _(
                        "{where} The change is written down in {path} and counts as made. Mend the cause, then run "
                        "`certificate refresh`, which completes it."
                    ).format(where=where, path=self.path / pending.NAME)
                ) from None
            raise RegistryError(_("{where} Nothing was changed.").format(where=where)) from None

    def _loads(self, path: Path) -> Any:
        try:
            return strict_json.loads(self._bytes(path) or b"")
        except strict_json.MalformedJsonError as error:
            raise RegistryError(_("{path}: {error}. Bring it back from a copy.").format(path=path, error=error)) from None

    def _bytes(self, path: Path, limit: int = _LARGEST_LIST) -> bytes | None:
        try:
            with path.open("rb") as file:
                return file.read(limit + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RegistryError(
                _("{path}: the file cannot be read ({strerror}).").format(path=path, strerror=error.strerror)
            ) from None

    @contextmanager
    def _writing(self, *, create: bool = False) -> Iterator[None]:
        try:
            if create:
                (self.path / "c").mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise RegistryError(
                _("{path}: the registry cannot be changed ({strerror}).").format(path=self.path, strerror=error.strerror)
            ) from None
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._noted()
            pending.finish(self.path)
            yield
        except OSError as error:
            raise RegistryError(
                _("{path}: cannot be written ({strerror}).").format(path=error.filename or self.path, strerror=error.strerror)
            ) from None
        finally:
            os.close(descriptor)
