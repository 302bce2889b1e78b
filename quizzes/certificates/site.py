"""A registry as a static site: a folder for any web host, with a page for each id. Built anew, it changes nothing.

Every page carries what it needs, so a build that was stopped half-way leaves old pages and new ones, each whole; the next build
makes the rest. Only files that a build makes are replaced or removed: what else lies in the folder stays.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from quizzes.certificates import build_page, did_document, faces, identifier, own_page, rdf, strict_json
from quizzes.certificates.fonts import FontError
from quizzes.certificates.judge import Judgement, judge
from quizzes.certificates.keyring import Keyring, KeyringError
from quizzes.certificates.publish import publish
from quizzes.certificates.published import Published
from quizzes.certificates.registry import Registry, RegistryError
from quizzes.certificates.verify import LARGEST_FILE, file_bytes
from quizzes.say import _

try:
    import fcntl
except ImportError:  # Windows: two builds at once are then kept apart by people only
    fcntl = None  # type: ignore[assignment]

LISTS = ("issuer", "status", "revocations")
SUFFIXES = (".json", ".wallet.json", *faces.SUFFIXES.values())
"""How the files of a certificate end; its page stands in the folder of its id."""
_PART = re.compile(r"\..+\.[0-9a-f]{32}\.part")


class SiteError(ValueError):
    """The site cannot be built; the message names the path and says what to do."""


@dataclass
class Report:
    """What a build did."""

    pages: int = 0
    written: int = 0
    """Files that are new or changed."""
    removed: int = 0
    """Files of certificates that the registry no longer has."""
    left_out: list[str] = field(default_factory=list)
    """Certificates without a page, and why, in whole sentences."""
    notes: list[str] = field(default_factory=list)
    """What else a person must know, in whole sentences."""


def build(registry: Registry, folder: Path, now: datetime) -> Report:
    """Builds the site of `registry` in `folder`, which is made if it is not there.

    Raises SiteError for a folder that is not the site of this registry, RegistryError for a registry that cannot be read, and
    OSError as the system gives it; what was written by then is whole.
    """
    published = registry.read()
    try:
        ring = published.ring()
        trusted = build_page.Trusted.of(published.issuer or b"", status=published.status, revocations=published.revocations)
    except KeyringError as error:
        raise SiteError(f"{registry.path / 'issuer.json'}: {error}. Bring it back from a copy.") from None
    except build_page.PageError as error:
        raise SiteError(f"{registry.path}: {error}") from None
    _check_apart(registry.path, folder)
    with _building(folder, ring):
        report = Report()
        names = registry.identifiers()
        common = _common(published, ring)
        # First and alone: by it the next build knows a folder, whatever stopped this one.
        _write(folder, {"issuer.json": common["issuer.json"]}, report)
        (folder / "c").mkdir(exist_ok=True)
        _write(folder, common, report)
        listed = _date_of(published.status, report)
        for name in names:
            try:
                made = _certificate(registry, name, published, trusted, listed, now, report)
            except (RegistryError, rdf.RdfMissingError) as error:
                made = None
                report.left_out.append(str(error))
            if made is not None:
                _write(folder, made, report)
                report.pages += 1
                _remove(folder, name, set(made), report)
        for name in _present(folder) - set(names):
            _remove(folder, name, set(), report)
        return report


def _common(published: Published, ring: Keyring) -> dict[str, bytes]:
    lists = {name: getattr(published, name) for name in LISTS}
    page = build_page.build(lists["issuer"], status=lists["status"], revocations=lists["revocations"], pages="c/")
    files = {f"{name}.json": data for name, data in lists.items() if data is not None}
    return files | {
        "did.json": file_bytes(did_document.build(ring)),
        "verify.html": page,
        "index.html": page,
        "404.html": own_page.missing(ring.name, f"{ring.url}/verify.html"),
    }


def _date_of(status: bytes | None, report: Report) -> str:
    document = {} if status is None else strict_json.loads(status)
    date = document.get("validFrom") if isinstance(document, dict) else None
    if isinstance(date, str):
        return date
    report.notes.append(_("The registry has no dated status list: every page says that its status is unknown."))
    return _("no date")


def _certificate(
    registry: Registry,
    name: str,
    published: Published,
    trusted: build_page.Trusted,
    listed: str,
    now: datetime,
    report: Report,
) -> dict[str, bytes] | None:
    """The files of one certificate; None, with a sentence in `report`, where it must not be shown."""
    data = registry.certificate(name)
    judged = judge(data, now=now, published=published)
    certificate = judged.certificate
    if certificate is None:  # altered, or none at all
        why = f"{judged.heading}. {judged.message}"
    elif getattr(certificate, "identifier", None) != name:
        why = _("It holds the certificate {id}.").format(id=certificate.id)
    else:
        shown = _faces(data, judged, published, now, name, report)
        files = {f"c/{name}.json": data, **{f"c/{name}{faces.SUFFIXES[face]}": made for face, made in shown.items()}}
        wallet = _wallet(registry.path / "c" / f"{name}.wallet.json", data)
        if wallet is not None:
            files[f"c/{name}.wallet.json"] = wallet
        beside = {face: f"{name}{faces.SUFFIXES[face]}" for face in shown}
        files[f"c/{name}/index.html"] = own_page.render(data, judged, trusted, faces=beside, listed=listed)
        return files
    path = registry.certificate_path(name)
    report.left_out.append(_("{path}: no page was made of it, and what was published stays. {why}").format(path=path, why=why))
    return None


def _faces(data: bytes, judged: Judgement, published: Published, now: datetime, name: str, report: Report) -> dict[str, bytes]:
    # Test keys are let through: a face says nothing about trust, and whoever tries the course out has only such a key.
    if judge(data, now=now, published=published, test_keys=True).verdict not in ("valid", "status unknown"):
        return {}
    secured, made = strict_json.loads(data), {}
    for face in faces.SUFFIXES:
        try:
            made[face] = faces.render(face, secured, now=now)
        except (FontError, faces.FaceError) as error:
            what = _("{id}: no {face} was made. {why}").format(id=identifier.shown(name), face=face.upper(), why=error)
        except ModuleNotFoundError as error:
            what = _("No {face} was made: that needs {package}. Install it: pip install 'offload-lab[certificates]'").format(
                face=face.upper(), package=error.name
            )
        else:
            continue
        if what not in report.notes:
            report.notes.append(what)
    return made


def _wallet(path: Path, data: bytes) -> bytes | None:
    """The edition for wallets, where it says the same as the certificate; its own proof is the wallet's to check."""
    try:
        with path.open("rb") as file:
            found = file.read(LARGEST_FILE + 1)
        other, own = strict_json.loads(found), strict_json.loads(data)
    except (FileNotFoundError, strict_json.MalformedJsonError):
        return None
    if not isinstance(other, dict) or {**other, "proof": None} != {**own, "proof": None}:
        return None
    return found


def _check_apart(registry: Path, folder: Path) -> None:
    source, target = registry.resolve(), folder.resolve()
    if source == target or source in target.parents or target in source.parents:
        raise SiteError(_("{folder}: the site and the registry must lie apart. Choose another folder.").format(folder=folder))


@contextmanager
def _building(folder: Path, ring: Keyring) -> Iterator[None]:
    """Holds `folder`, made if need be, for one build. Raises SiteError where it is not the site of this issuer."""
    if folder.exists() and not folder.is_dir():
        raise SiteError(_("{folder}: this is a file. Choose a folder.").format(folder=folder))
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY) if fcntl is not None else None
    try:
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        _check_ours(folder, ring)
        for place in (folder, folder / "c", *(folder / "c" / name for name in _present(folder))):
            for path in place.glob(".*.part"):
                if _PART.fullmatch(path.name):
                    path.unlink(missing_ok=True)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _check_ours(folder: Path, ring: Keyring) -> None:
    links = [path for path in (folder / "c", *(folder / "c" / name for name in _present(folder))) if path.is_symlink()]
    if links:
        raise SiteError(_("{path}: this is a link, and a build would write where it leads. Remove it.").format(path=links[0]))
    if not any(path for path in folder.iterdir() if not path.name.startswith(".")):
        return
    try:
        found = strict_json.loads((folder / "issuer.json").read_bytes())
        url = found.get("url") if isinstance(found, dict) else None
    except FileNotFoundError:
        url = None
    except strict_json.MalformedJsonError as error:
        raise SiteError(
            _("{folder}: {error}. Remove it, or choose an empty folder.").format(folder=folder / "issuer.json", error=error)
        ) from None
    if url is None:
        raise SiteError(_("{folder}: other files lie in it, and no site. Choose an empty folder.").format(folder=folder))
    if url != ring.url:
        message = _("{folder}: this is the site of {other}, not of {url}. Choose another folder.")
        raise SiteError(message.format(folder=folder, other=url, url=ring.url))


def _present(folder: Path) -> set[str]:
    """The ids of which `folder` has a file or a page."""
    found = set()
    if (folder / "c").is_dir():
        for path in (folder / "c").iterdir():
            name = path.name.partition(".")[0]
            if identifier.is_canonical(name) and path.name.removeprefix(name) in ("", *SUFFIXES):
                found.add(name)
    return found


def _write(folder: Path, files: dict[str, bytes], report: Report) -> None:
    """Publishes those of `files` (path within `folder` -> bytes) that are not there already, all of them or none."""
    changed = {}
    for name, data in files.items():
        path = folder / name
        if not path.is_file() or path.is_symlink() or path.read_bytes() != data:
            path.parent.mkdir(exist_ok=True)
            changed[path] = data
    if changed:
        publish(changed)
        report.written += len(changed)


def _remove(folder: Path, name: str, keep: set[str], report: Report) -> None:
    """Removes what a build made of the certificate `name`, but for `keep`."""
    for path in (f"c/{name}/index.html", *(f"c/{name}{suffix}" for suffix in SUFFIXES)):
        if path not in keep and os.path.lexists(folder / path):
            (folder / path).unlink()
            report.removed += 1
    own = folder / "c" / name
    if f"c/{name}/index.html" not in keep and own.is_dir() and not any(own.iterdir()):
        own.rmdir()
