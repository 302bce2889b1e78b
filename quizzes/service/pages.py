"""For a browser behind JupyterHub: log in with the Hub, and see what is recorded of oneself. Reads only.

A cookie opens these pages and nothing else. Answers are taken with a token alone, so that no other site can make a browser
that is logged in send one.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from html import escape
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from quizzes.certificates import page
from quizzes.question import Bank
from quizzes.say import _
from quizzes.service.errors import ServiceError
from quizzes.service.hub import Hub

SESSION, STATE = "offload-quiz-session", "offload-quiz-state"
_SESSION_SECONDS, _STATE_SECONDS = 8 * 3600, 600
_STYLE = (
    "body{font:1rem/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "td,th{padding:.2rem 1rem .2rem 0;text-align:left}"
)


class Sessions:
    """Who logged in, in a signed cookie. The key is this process's own: after a restart the browser logs in again, unseen."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._key, self._clock = secrets.token_bytes(32), clock

    def seal(self, learner: str) -> str:
        content = base64.urlsafe_b64encode(json.dumps([learner, int(self._clock()) + _SESSION_SECONDS]).encode()).decode()
        return f"{content}.{self._signature(content)}"

    def learner(self, cookie: str) -> str | None:
        """None for a cookie that is not whole, not ours or too old."""
        content, _dot, signature = cookie.partition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(content).encode()):
            return None
        learner, until = json.loads(base64.urlsafe_b64decode(content))
        return learner if self._clock() < until else None

    def _signature(self, content: str) -> str:
        return hmac.new(self._key, content.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def router(service: Any, hub: Hub) -> APIRouter:
    """Routes over a `quizzes.service.app.Service`."""
    made, sessions = APIRouter(include_in_schema=False), Sessions()
    home = f"{service.settings.prefix}/"

    @made.get("/")
    async def mine(request: Request) -> Response:
        learner = sessions.learner(request.cookies.get(SESSION, ""))
        if learner is None:
            state = secrets.token_urlsafe(24)
            away = RedirectResponse(hub.login_url(state), 302)
            away.set_cookie(
                STATE, state, max_age=_STATE_SECONDS, path=home, httponly=True, samesite="lax", secure=_secure(request)
            )
            return away
        tables = []
        for lesson, bank in sorted(service.judge.banks.items()):
            replies = [json.loads(reply) for *_, reply in await service.answered(service.store.run(learner, lesson))]
            if replies:
                tables.append(_table(bank, replies))
        return _html(learner, "".join(tables) or f"<p>{escape(_('No answers are recorded yet.'))}</p>")

    @made.get("/oauth_callback")
    async def back(request: Request, code: str = "", state: str = "") -> Response:
        asked = request.cookies.get(STATE, "")
        if not asked or not code or not hmac.compare_digest(asked.encode(), state.encode("utf-8", "surrogatepass")):
            raise ServiceError(403, "no-login", _("This is not the login that was begun here. Open the page again."))
        learner = await hub.logged_in(code)
        opened = RedirectResponse(home, 302)
        opened.delete_cookie(STATE, path=home)
        opened.set_cookie(
            SESSION,
            sessions.seal(learner),
            max_age=_SESSION_SECONDS,
            path=home,
            httponly=True,
            samesite="lax",
            secure=_secure(request),
        )
        return opened

    return made


def _secure(request: Request) -> bool:
    return request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "").split(",")[0].strip() == "https"


def _table(bank: Bank, replies: list[dict[str, Any]]) -> str:
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td>{escape(str(cell))}</td>"
            for cell in (reply["question"], reply["attempt"], f"{reply['score']:g} / {reply['max_score']:g}", reply["at"])
        )
        + "</tr>"
        for reply in replies
    )
    heads = (_("Question"), _("Attempt"), _("Points"), _("Recorded (UTC)"))
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in heads)
    return f"<h2>{escape(bank.lesson)}. {escape(bank.title)}</h2><table><tr>{head}</tr>{rows}</table>"


def _html(learner: str, body: str) -> Response:
    style = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{style}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    title = escape(_("What is recorded of {learner}").format(learner=learner))
    text = (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style></head>'
        f"<body><main><h1>{title}</h1>{body}</main></body></html>\n"
    )
    return Response(text, media_type="text/html; charset=utf-8", headers=page.HEADERS | {"Content-Security-Policy": policy})
