"""What the certificate commands share: saying, stopping, reading files, passphrases."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quizzes.certificates import keys
from quizzes.say import _

PassphraseFile = Annotated[
    Path | None,
    typer.Option(help=f"A file whose first line is the key's passphrase; or set {keys.PASSPHRASE_VARIABLE}; or type it."),
]
KeyFile = Annotated[Path, typer.Option(help="The issuer's private key, made by `keygen`.")]
RegistryFolder = Annotated[Path, typer.Option(help="The issuer's registry, made by `certificate init`.")]


def say(message: str, *, error: bool = False) -> None:
    """Prints on a terminal of any encoding: what it cannot show comes as an escape, not as a crash."""
    stream = sys.stderr if error else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    typer.echo(message.encode(encoding, "backslashreplace").decode(encoding), err=error)


def stop(message: str) -> NoReturn:
    """Says `message` on the error stream and ends with exit status 2."""
    say(message, error=True)
    raise typer.Exit(2)


def read(path: Path, what: str, limit: int | None = None) -> bytes:
    """The bytes of a file; of one larger than `limit` just enough to see that it is. Stops where it cannot be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            stop(_("{path}: this is not a file. Write the path of {what}.").format(path=path, what=what))
        with path.open("rb") as file:
            return file.read(-1 if limit is None else limit + 1)
    except FileNotFoundError:
        stop(_("{path}: there is no such file. Write the path of {what}.").format(path=path, what=what))
    except (OSError, ValueError) as error:
        stop(_("{path}: the file cannot be read ({value}).").format(path=path, value=getattr(error, "strerror", None) or error))


def passphrase(file: Path | None, *, new: bool = False) -> bytes:
    """The passphrase: from `file`, else from the environment, else typed (twice where `new`). Stops where there is none.

    There is no option that takes the passphrase itself: what stands on a command line is seen by every user of the machine.
    """
    if file is not None:
        found = read(file, _("a file with the passphrase"), 10_000).split(b"\n", 1)[0].rstrip(b"\r")
    elif keys.PASSPHRASE_VARIABLE in os.environ:
        found = os.environb[keys.PASSPHRASE_VARIABLE.encode()] if os.supports_bytes_environ else _from_environment()
    elif sys.stdin.isatty():
        found = str(typer.prompt(_("Passphrase of the key"), hide_input=True, confirmation_prompt=new)).encode()
    else:
        stop(
            _("The key needs a passphrase: give --passphrase-file, or set {variable}. Nothing was written.").format(
                variable=keys.PASSPHRASE_VARIABLE
            )
        )
    if not found:
        stop(_("The passphrase is empty. Nothing was written."))
    return found


def _from_environment() -> bytes:
    return os.environ[keys.PASSPHRASE_VARIABLE].encode()


def open_key(path: Path, file: Path | None) -> Ed25519PrivateKey:
    """The private key in `path`, asking for its passphrase only where it has one. Stops where it cannot be used."""
    try:
        if not keys.is_encrypted(path):
            return keys.load_private(path)
        return keys.load_private(path, passphrase(file))
    except keys.KeyFileError as error:
        stop(_("{error} Nothing was written.").format(error=error))
