"""`offload-quiz certificate init | rotate | refresh | revoke`, and `keygen`: the issuer's side of a registry."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from quizzes.certificates import credential, keys, names, strict_json, text
from quizzes.certificates.cli_common import KeyFile, PassphraseFile, RegistryFolder, open_key, passphrase, say, stop
from quizzes.certificates.parts import CredentialError, parse_time
from quizzes.certificates.published import LONGEST_REASON, public_name
from quizzes.certificates.registry import Registry, RegistryError
from quizzes.certificates.verdicts import TEST_KEYS
from quizzes.say import _


def keygen(
    out: Annotated[Path, typer.Option(help="Where the private key goes; its public name goes beside it, to OUT.pub.")],
    passphrase_file: PassphraseFile = None,
    test: Annotated[bool, typer.Option("--test", help="Write the published test key, which every verifier refuses.")] = False,
) -> None:
    """Make an issuer's key, encrypted with a passphrase. Keep it with the instructor; never overwrites one."""
    try:
        did = keys.generate(out, passphrase(passphrase_file, new=True), test=test)
    except keys.KeyFileError as error:
        stop(str(error))
    say(_("Private key: {out} (encrypted; keep it secret, and keep a copy of it and of its passphrase)").format(out=out))
    say(_("Public name: {out} (give it to everybody who verifies your certificates)").format(out=keys.public_path(out)))
    say(did)
    if test:
        say(_("This is the test key: everybody has it. Verifiers refuse its certificates unless told otherwise."), error=True)


def init(
    registry: RegistryFolder,
    key: KeyFile,
    name: Annotated[str, typer.Option(help="The issuer's name, shown on certificates.")],
    url: Annotated[str, typer.Option(help="The web address at which the folder will stand, without a slash at its end.")],
    since: Annotated[str | None, typer.Option(help="The key has signed since this day, YYYY-MM-DD; without it, now.")] = None,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Make a registry: the folder that you publish, with your key, the status list and the certificates."""
    now = datetime.now(UTC)
    begin = now
    if since is not None:
        try:
            begin = parse_time(f"{since}T00:00:00Z")
        except ValueError:
            stop(_("--since {since}: write a day as YYYY-MM-DD.").format(since=since))
    try:
        shown = names.tidy(name)
    except ValueError as error:
        stop(f"--name: {error}.")
    private = open_key(key, passphrase_file)
    try:
        Registry(registry).create(private, name=shown, url=url, begin=min(begin, now), now=now)
    except RegistryError as error:
        stop(str(error))
    say(_("{registry}: publish this folder at {url}, with directory listings off.").format(registry=registry, url=url))
    if public_name(private) in TEST_KEYS:
        say(_("Its key is a published test key: verifiers refuse its certificates."), error=True)


def rotate(
    registry: RegistryFolder,
    key: Annotated[Path, typer.Option(help="The key that signs until now.")],
    new_key: Annotated[Path, typer.Option(help="The key that signs from now on, made by `keygen`.")],
    passphrase_file: PassphraseFile = None,
    new_passphrase_file: PassphraseFile = None,
) -> None:
    """Change the issuer's key. Old certificates stay valid; the old key signs no new ones."""
    old, new = open_key(key, passphrase_file), open_key(new_key, new_passphrase_file or passphrase_file)
    try:
        Registry(registry).rotate(old, new, datetime.now(UTC))
    except RegistryError as error:
        stop(str(error))
    say(_("{registry}: {new} signs from now on. Publish the folder again.").format(registry=registry, new=public_name(new)))


def refresh(registry: RegistryFolder, key: KeyFile, passphrase_file: PassphraseFile = None) -> None:
    """Sign the status list anew: after 90 days an old one says nothing any more."""
    private = open_key(key, passphrase_file)
    try:
        Registry(registry).refresh(private, datetime.now(UTC))
    except RegistryError as error:
        stop(str(error))
    say(_("{registry}: the status list is good for 90 days from now. Publish the folder again.").format(registry=registry))


def revoke(
    identifier: Annotated[str, typer.Argument(metavar="ID", help="The id of the certificate, as printed on it.")],
    registry: RegistryFolder,
    key: KeyFile,
    reason: Annotated[str, typer.Option(help="Why, in a few words. Everybody will read it: write no names.")],
    passphrase_file: PassphraseFile = None,
) -> None:
    """Take a certificate back. Its id stays: whoever looks it up is told that it was revoked, since when and why."""
    place = Registry(registry)
    try:
        why = text.tidy(reason)
    except ValueError as error:
        stop(f"--reason: {error}.")
    if not 1 <= len(why) <= LONGEST_REASON:
        stop(
            _("--reason: it has {count} characters; give 1 to {longest_reason}. Nothing was changed.").format(
                count=len(why), longest_reason=LONGEST_REASON
            )
        )
    try:
        index = index_of(place, identifier)
        entry = place.revoke(index, why, open_key(key, passphrase_file), datetime.now(UTC))
    except RegistryError as error:
        stop(str(error))
    say(_("Revoked since {since}: {reason}").format(since=entry["since"], reason=entry["reason"]))
    say(_("Publish {registry} again; until then verifiers do not know.").format(registry=registry))


def index_of(registry: Registry, identifier: str) -> int:
    """The place in the status list of a certificate. Raises RegistryError where it has none."""
    try:
        certificate = credential.read(strict_json.loads(registry.certificate(identifier)))
        status = getattr(certificate, "credentialStatus", None)
    except (AttributeError, CredentialError, strict_json.MalformedJsonError) as error:
        raise RegistryError(
            _("{identifier}: it is damaged ({error}).").format(identifier=registry.certificate_path(identifier), error=error)
        ) from None
    if status is None:
        raise RegistryError(
            _("{identifier}: it has no entry in the status list.").format(identifier=registry.certificate_path(identifier))
        )
    return int(status.statusListIndex)
