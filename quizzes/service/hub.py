"""Behind JupyterHub: who asks is what the Hub says of the token that was sent, or of the person who logged in with it.

A token must have been given the right to use this service (`access:services!service=NAME`), as JupyterHub's own services ask
for: otherwise a token that a learner gave to another service would open this one too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import httpx

from quizzes.nbgrader.roster import is_safe
from quizzes.say import _
from quizzes.service.errors import ServiceError, StartError
from quizzes.service.identity import digest, token_of, unknown

if TYPE_CHECKING:
    from starlette.requests import Request

_SECONDS = 10.0
_MOST = 10_000
_LARGEST = 1 << 20


@dataclass(frozen=True)
class HubSettings:
    """What the Hub tells a service that it knows, in its environment."""

    api_url: str
    """JUPYTERHUB_API_URL, `http://…/hub/api`."""
    api_token: str
    """JUPYTERHUB_API_TOKEN, the service's own."""
    name: str
    """JUPYTERHUB_SERVICE_NAME."""
    prefix: str
    """JUPYTERHUB_SERVICE_PREFIX without the slash at its end."""
    scopes: frozenset[str]
    """One of them a token must have."""
    client_id: str
    authorize_url: str
    """Where a browser is sent to log in."""
    callback: str
    """The path or address to which the Hub sends it back."""
    service_url: str = ""
    """JUPYTERHUB_SERVICE_URL: the address on which the Hub expects the service."""


def from_environment(environ: Mapping[str, str]) -> HubSettings:
    """Raises StartError naming what is missing."""
    needed = ("JUPYTERHUB_API_URL", "JUPYTERHUB_API_TOKEN", "JUPYTERHUB_SERVICE_PREFIX")
    missing = [name for name in needed if not environ.get(name)]
    if missing:
        raise StartError(
            f"--hub: {', '.join(missing)} is not set. JupyterHub sets it for a service in its configuration "
            "(c.JupyterHub.services); start the service there."
        )
    api_url = environ["JUPYTERHUB_API_URL"].rstrip("/")
    if not api_url.startswith(("http://", "https://")):
        raise StartError(f"--hub: JUPYTERHUB_API_URL={api_url!r} is not an http address.")
    prefix = environ["JUPYTERHUB_SERVICE_PREFIX"].rstrip("/")
    name = environ.get("JUPYTERHUB_SERVICE_NAME") or prefix.rsplit("/", 1)[-1]
    scopes = frozenset({"access:services", f"access:services!service={name}"})
    if told := environ.get("JUPYTERHUB_OAUTH_ACCESS_SCOPES"):
        try:
            scopes = frozenset(str(scope) for scope in json.loads(told))
        except (ValueError, TypeError):
            raise StartError("--hub: JUPYTERHUB_OAUTH_ACCESS_SCOPES is not a JSON list of scopes.") from None
    base = environ.get("JUPYTERHUB_HOST", "") + environ.get("JUPYTERHUB_BASE_URL", "/").rstrip("/")
    return HubSettings(
        api_url=api_url,
        api_token=environ["JUPYTERHUB_API_TOKEN"],
        name=name,
        prefix=prefix,
        scopes=scopes,
        client_id=environ.get("JUPYTERHUB_CLIENT_ID") or f"service-{name}",
        authorize_url=f"{base}/hub/api/oauth2/authorize",
        callback=environ.get("JUPYTERHUB_OAUTH_CALLBACK_URL") or f"{prefix}/oauth_callback",
        service_url=environ.get("JUPYTERHUB_SERVICE_URL", ""),
    )


class Hub:
    """`seconds`: for how long what the Hub said of a token is believed; a token taken back works no longer than that."""

    def __init__(self, settings: HubSettings, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self._seconds, self._clock = seconds, clock
        self._known: dict[str, tuple[float, str]] = {}
        # Nothing of this machine's proxies: the Hub is asked directly.
        self._client = httpx.AsyncClient(timeout=_SECONDS, trust_env=False, follow_redirects=False)

    async def who(self, request: Request) -> str:
        return await self.learner(token_of(request))

    async def learner(self, token: str) -> str:
        """The learner of a token. Raises ServiceError 401 for a token that the Hub does not know, 403 for one that may not be
        used here or is no person's, 503 where the Hub does not answer."""
        name, now = digest(token), self._clock()
        held = self._known.get(name)
        if held is not None and now < held[0]:
            return held[1]
        if not token.isascii() or not token.isprintable():
            raise unknown()
        learner = self._checked(await self._ask("GET", "/user", headers={"Authorization": f"token {token}"}))
        if len(self._known) >= _MOST:
            self._known = {key: value for key, value in self._known.items() if now < value[0]}
        if len(self._known) < _MOST:
            self._known[name] = (now + self._seconds, learner)
        return learner

    def login_url(self, state: str) -> str:
        """Where a browser logs in with the Hub."""
        settings = self.settings
        asked = {"client_id": settings.client_id, "redirect_uri": settings.callback, "response_type": "code", "state": state}
        return f"{settings.authorize_url}?{urlencode(asked)}"

    async def logged_in(self, code: str) -> str:
        """The learner whom the Hub sent back with `code`. Raises ServiceError as `learner` does."""
        settings = self.settings
        form = {
            "client_id": settings.client_id,
            "client_secret": settings.api_token,
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": settings.callback,
        }
        content = await self._ask("POST", "/oauth2/token", data=form)
        token = content.get("access_token")
        if not isinstance(token, str) or not token:
            raise _down()
        return await self.learner(token)

    async def close(self) -> None:
        await self._client.aclose()

    async def _ask(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        try:
            reply = await self._client.request(method, self.settings.api_url + path, **more)
            if 400 <= reply.status_code < 500 and reply.status_code != 429:
                raise unknown()
            content = json.loads(reply.content) if reply.status_code == 200 and len(reply.content) <= _LARGEST else None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
            raise _down() from None
        if not isinstance(content, dict):
            raise _down()
        return content

    def _checked(self, model: dict[str, Any]) -> str:
        name, scopes = model.get("name"), model.get("scopes")
        if model.get("kind", "user") != "user" or not isinstance(name, str) or not is_safe(name):
            raise ServiceError(403, "no-learner", _("This token is not of a person who can be graded."))
        if not isinstance(scopes, list) or self.settings.scopes.isdisjoint(str(scope) for scope in scopes):
            raise ServiceError(
                403,
                "no-scope",
                _(
                    "This token may not use the quiz service. Ask whoever runs the Hub to add {scope} to the server's role."
                ).format(scope=f"access:services!service={self.settings.name}"),
            )
        return name


def _down() -> ServiceError:
    return ServiceError(503, "no-hub", _("JupyterHub does not say who you are at the moment. Nothing was recorded."), 5.0)
