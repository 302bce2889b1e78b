"""`offload-quiz serve`: the service that judges graded answers online."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from quizzes.certificates import keys as key_files
from quizzes.certificates.cli_common import PassphraseFile, open_key, say, stop
from quizzes.question import KEYS
from quizzes.say import _


def serve(
    key: Annotated[Path | None, typer.Option(help="The private key that signs receipts, made by `keygen`.")] = None,
    db_url: Annotated[str | None, typer.Option(help="sqlite:///PATH or postgresql+…://…; else a file of this user.")] = None,
    host: Annotated[str, typer.Option(help="The address to listen on; others than 127.0.0.1 need TLS in front.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 0,
    hub: Annotated[bool, typer.Option("--hub", help="Run as a service of JupyterHub, with its login.")] = False,
    tokens: Annotated[Path | None, typer.Option(help="A class without a Hub: a file of lines `token learner`.")] = None,
    learner: Annotated[str, typer.Option(help="Neither: the one learner of this machine.")] = "me",
    connection: Annotated[Path | None, typer.Option(help="Neither: write address and token to this file.")] = None,
    keys: Annotated[Path, typer.Option(help="The folder of the graded questions.")] = KEYS,
    attempts: Annotated[int, typer.Option(help="Attempts at each question; the best counts.")] = 2,
    rate: Annotated[float, typer.Option(help="Answers a minute that one learner may send.")] = 30.0,
    registry: Annotated[Path | None, typer.Option(help="Also serve the certificates of this registry.")] = None,
    passphrase_file: PassphraseFile = None,
    allow_test_keys: Annotated[bool, typer.Option("--allow-test-keys", help="Sign with the published test key.")] = False,
    lab: Annotated[bool, typer.Option("--lab", hidden=True)] = False,
) -> None:
    """Judge graded answers online: at once, without giving the key away, with a signed receipt for each."""
    try:
        from quizzes.service import server
        from quizzes.service.app import create_app
        from quizzes.service.certificates import router as certificates
    except ImportError as error:
        stop(
            _("The service needs packages that are not installed ({error}): pip install 'offload-lab[service]'").format(
                error=error.name
            )
        )
    from quizzes.service import connection as connections
    from quizzes.service.errors import StartError
    from quizzes.service.identity import People, Tokens, new_token, read_tokens
    from quizzes.service.settings import Settings, default_db_url, folder

    if hub and tokens is not None:
        stop(_("--hub and --tokens are two ways to know the learners; give one of them."))
    if registry is not None and not registry.is_dir():
        stop(
            _("--registry {registry}: there is no such folder. Make one with `offload-quiz certificate init`.").format(
                registry=registry
            )
        )
    if key is None:
        if not lab:
            stop(_("--key is missing: each answer gets a signed receipt. Make a key with `offload-quiz keygen --out FILE`."))
        key = _own_key(folder() / "receipts.key")
    private = open_key(key, passphrase_file)
    prefix, token = "", new_token()
    try:
        if hub:
            from quizzes.service.hub import Hub, from_environment

            found = from_environment(os.environ)
            people: People = Hub(found)
            prefix = found.prefix
            told = urlsplit(found.service_url)
            host, port = told.hostname or host, told.port or port
        else:
            people = read_tokens(tokens) if tokens is not None else Tokens({token: learner})
        settings = Settings(
            private_key=private,
            people=people,
            db_url=db_url or default_db_url(),
            keys=keys,
            attempts=attempts,
            rate=rate,
            prefix=prefix,
            allow_test_keys=allow_test_keys,
        )
        app = create_app(settings, [certificates(registry)] if registry is not None else [])
        listening = server.bind(host, port)
    except StartError as error:
        stop(str(error))
    url = server.address(listening) + prefix
    local = not hub and tokens is None
    place = connection or folder() / "connection.json"
    if local:
        try:
            connections.write(place, connections.Connection(url, token))
        except OSError as error:
            stop(
                _("--connection {place}: it cannot be written ({strerror}). Name another file.").format(
                    place=place, strerror=error.strerror
                )
            )
    say(
        _("Judging on {url}; stop it with Ctrl-C. Receipts are signed by {issuer}").format(
            url=url, issuer=app.state.service.judge.issuer
        )
    )
    if local:
        say(_("Address and token of {learner}: {place}").format(learner=learner, place=place))
    if not server.is_loopback(host):
        say(
            _("{host} can be reached from other machines, and tokens travel unencrypted: put TLS in front of it.").format(
                host=host
            ),
            error=True,
        )
    try:
        server.run(app, listening, parent=os.getppid() if lab else None)
    finally:
        if local and connections.read(place) == connections.Connection(url, token):
            place.unlink(missing_ok=True)


def _own_key(path: Path) -> Path:
    """A key of this machine's own, made where there is none: its receipts are good for whoever chooses to trust it."""
    if not path.exists():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            key_files.public_path(path).unlink(missing_ok=True)
            key_files.generate(path)
        except (OSError, key_files.KeyFileError) as error:
            stop(_("{path}: no key for receipts can be made here ({error}).").format(path=path, error=error))
    return path


def register(app: typer.Typer) -> None:
    app.command()(serve)
