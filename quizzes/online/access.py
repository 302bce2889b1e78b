"""Which service judges, and the learner's token for it. The token is in the environment or is asked for; it is never shown."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from quizzes.say import _
from quizzes.service.client import Away, Client, Unknown

URL, TOKEN, HUB_TOKEN = "OFFLOAD_QUIZ_URL", "OFFLOAD_QUIZ_TOKEN", "JUPYTERHUB_API_TOKEN"
_HERE = ("127.0.0.1", "localhost", "::1")


class AccessError(ValueError):
    """The address of the service cannot be used; the message says why and what to write."""


class Access:
    """Makes clients of one service. Raises AccessError for an address that cannot be used."""

    def __init__(self, service: str | None = None, environ: Mapping[str, str] = os.environ) -> None:
        self._environ, self._told = environ, ""
        given = service if service is not None else environ.get(URL, "")
        self.address = _checked(given, service is not None) if given else ""
        """"" where the service of this machine is looked for."""

    def ask(self, prompt: Callable[[str], str] | None = None) -> str:
        """Ask the person for the token where the environment has none; a sentence where nobody could be asked, else ""."""
        if not self.address or self._token():
            return ""
        return self.ask_again(prompt)

    def ask_again(self, prompt: Callable[[str], str] | None = None) -> str:
        """Ask for the token, whatever the environment has."""
        try:
            typed = (prompt or getpass.getpass)(_("Your token for {service} (it is not shown): ").format(service=self.address))
        except (EOFError, KeyboardInterrupt, NotImplementedError):
            typed = ""  # a notebook that runs without a person
        self._told = typed.strip()
        return "" if self._told else _no_token()

    def client(self) -> Client:
        """Raises Away where there is no service, or no token for it."""
        if not self.address:
            return Client.found(self._environ)
        token = self._token()
        if not token:
            raise Unknown(_no_token())
        return Client(self.address, token)

    def _token(self) -> str:
        if self._told:
            return self._told
        named = self._environ.get(URL, "").rstrip("/")
        # What was given for one service is not sent to another that a notebook names.
        if named and named != self.address:
            return ""
        hub = self._environ.get(HUB_TOKEN, "") if named else ""
        return (self._environ.get(TOKEN, "") or hub).strip()

    def __repr__(self) -> str:
        return f"Access({self.address!r})"


def _checked(service: str, typed: bool) -> str:
    try:
        parts = urlsplit(service.strip())
        host, _port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise AccessError(_("service={service!r} is no address; write https:// and what your instructor gave you.").format(
            service=_without_name(service)
        ))  # fmt: skip
    if parts.username or parts.password:
        raise AccessError(_("Write the address of the service without a name and a password before its @."))
    if typed and parts.scheme == "http" and host not in _HERE:
        said = _("Your token would travel to {host} where others can read it; write https:// before the address.")
        raise AccessError(said.format(host=host))
    return service.strip().rstrip("/")


def _without_name(service: str) -> str:
    return service.rpartition("@")[2]


def _no_token() -> str:
    return _("There is no token for the service: set OFFLOAD_QUIZ_TOKEN before the kernel starts.")


__all__ = ["Access", "AccessError", "Away"]
