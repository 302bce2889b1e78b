"""The service: questions without their key, answers judged and recorded, receipts. FastAPI comes with the extra `service`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from quizzes.certificates import page
from quizzes.receipts import time_text
from quizzes.say import _
from quizzes.service import body, openapi, pages
from quizzes.service.errors import ServiceError, encode
from quizzes.service.hints import Paid, Wanted
from quizzes.service.hub import Hub
from quizzes.service.judging import Judge
from quizzes.service.limits import Limits
from quizzes.service.settings import LOCALES, Settings
from quizzes.service.store import Store
from quizzes.service.writer import Entry, Outcome, Writer

HEADERS = [(name.lower().encode(), value.encode()) for name, value in page.HEADERS.items()] + [(b"cache-control", b"no-store")]
_CODES = {404: "no-page", 405: "no-method"}


class Service:
    """What the routes share. One event loop, one writer."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.judge = Judge(settings.keys, settings.private_key, settings.attempts)
        self.store = Store(settings.db_url)
        self.limits = Limits(settings.rate, settings.burst)
        self.writer = Writer(self.store, settings.attempts, self._deliver)
        self._loop: asyncio.AbstractEventLoop | None = None

    @asynccontextmanager
    async def running(self, _app: Any = None) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        self.writer.start()
        try:
            yield
        finally:
            await run_in_threadpool(self.writer.stop)
            await self.settings.people.close()
            self.store.close()

    def _deliver(self, outcomes: Sequence[tuple[asyncio.Future[Outcome], Outcome]]) -> None:
        assert self._loop is not None  # the writer starts after it is known
        self._loop.call_soon_threadsafe(_resolve, outcomes)

    async def record(self, entry: Entry | Wanted) -> bytes | Paid:
        """The reply, or what is paid for, once it is on the disk. Raises ServiceError."""
        ticket: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.writer.put(ticket, entry)
        try:
            # Whoever gives up waiting leaves the entry with the writer: a repeat with its nonce finds it.
            outcome = await asyncio.wait_for(ticket, self.settings.patience)
        except TimeoutError:
            raise _away() from None
        if isinstance(outcome, ServiceError):
            raise outcome
        return outcome

    async def answered(self, run: str) -> list[tuple[str, int, float, bytes]]:
        """As `Store.replies`. Raises ServiceError 503."""
        try:
            return await run_in_threadpool(self.store.replies, run)
        except SQLAlchemyError:
            raise _away() from None

    async def standing(self, run: str) -> tuple[list[tuple[str, int, float, bytes]], dict[str, tuple[float, ...]]]:
        """As `Store.replies` and `Store.hints`. Raises ServiceError 503."""
        try:
            return await run_in_threadpool(lambda: (self.store.replies(run), self.store.hints(run)))
        except SQLAlchemyError:
            raise _away() from None


def _resolve(outcomes: Sequence[tuple[asyncio.Future[Outcome], Outcome]]) -> None:
    for ticket, outcome in outcomes:
        if not ticket.done():  # cancelled where the client has gone or waited long enough
            ticket.set_result(outcome)


def _away() -> ServiceError:
    said = _("The database does not answer in time. Send the same again with the same nonce; it is counted once.")
    return ServiceError(503, "not-recorded", said, 2.0)


def create_app(settings: Settings, extra_routers: Iterable[APIRouter] = ()) -> FastAPI:
    """The application. Raises StartError for questions or a database that cannot be used.

    `extra_routers` are mounted beside the service's own routes, below `settings.prefix`.
    """
    service = Service(settings)
    app = FastAPI(
        title="Offload Lab quiz service",
        version="1",
        lifespan=service.running,
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        openapi_url=f"{settings.prefix}/openapi.json",
    )
    app.state.service = service
    app.include_router(_routes(service), prefix=settings.prefix)
    if isinstance(settings.people, Hub):
        app.include_router(pages.router(service, settings.people), prefix=settings.prefix)
    for router in extra_routers:
        app.include_router(router, prefix=settings.prefix)
    app.add_exception_handler(ServiceError, _refuse)
    app.add_exception_handler(HTTPException, _plain)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_middleware(SecurityHeaders)
    return app


def _routes(service: Service) -> APIRouter:
    routes = APIRouter()
    people, judge = service.settings.people, service.judge

    @routes.get("/health", responses=openapi.whole("The service runs.") | openapi.refused(503))
    async def health() -> Response:
        if not service.writer.alive:
            raise _away()
        # The name of the key is public; whoever grades asks for it here.
        return _json({"status": "ok", "issuer": judge.issuer, "attempts": judge.attempts, "lessons": sorted(judge.banks)})

    @routes.get(
        "/lessons/{lesson}",
        responses=openapi.whole("Its questions, and what you answered.") | openapi.refused(401, 403, 404, 422, 503),
    )
    async def lesson(request: Request, lesson: str, locale: str = "en") -> Response:
        learner = await people.who(request)
        bank = judge.lesson(lesson)
        if locale not in LOCALES:
            raise ServiceError(422, "no-locale", _("locale: en, fr or ko is needed."))
        run = service.store.run(learner, lesson)
        replies, costs = await service.standing(run)
        used: dict[str, tuple[int, float]] = {}
        for question, attempt, share, _reply in replies:
            count, best = used.get(question, (0, 0.0))
            used[question] = (max(count, attempt), max(best, share))
        content = {
            "lesson": lesson,
            "title": bank.title,
            "learner": learner,
            "run": run,
            "issuer": judge.issuer,
            "questions": judge.shown(lesson, learner, locale, used, costs),
            "answers": [json.loads(reply) for *_, reply in replies],
        }
        return _json(content)

    @routes.post(
        "/lessons/{lesson}/answers",
        openapi_extra=openapi.ANSWER,
        responses=openapi.whole("Judged and recorded; or understood is false, and nothing is.")
        | openapi.refused(400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 503),
    )
    async def answer(request: Request, lesson: str) -> Response:
        learner = await people.who(request)
        judge.lesson(lesson)
        sent = body.parse(await body.read(request))
        service.limits.take(learner)
        run = service.store.run(learner, lesson)
        judged = judge.judge(learner, run, lesson, sent)
        if not judged.recorded:
            return Response(judged.reply, media_type="application/json")
        entry = Entry(
            run=run,
            learner=learner,
            lesson=lesson,
            question=judged.question,
            attempt=sent.attempt,
            nonce=sent.nonce,
            fingerprint=sent.fingerprint,
            share=judged.share,
            at=judged.at,
            reply=judged.reply,
            after=judged.after,
        )
        return Response(await service.record(entry), media_type="application/json")

    @routes.post(
        "/lessons/{lesson}/hints",
        openapi_extra=openapi.HINT,
        responses=openapi.whole("The hint. It was recorded before; asked for again, it costs nothing more.")
        | openapi.refused(400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 503),
    )
    async def hint(request: Request, lesson: str) -> Response:
        learner = await people.who(request)
        judge.lesson(lesson)
        sent = body.parse_hint(await body.read(request))
        service.limits.take(learner)
        question = judge.asked_for(learner, lesson, sent)
        wanted = Wanted(
            run=service.store.run(learner, lesson),
            learner=learner,
            lesson=lesson,
            question=question.id,
            number=sent.hint,
            cost=question.hint_cost,
            at=time_text(datetime.now(UTC)),
            attempt=sent.attempt,
            told=sent.cost,
        )
        bought = await service.record(wanted)
        assert isinstance(bought, Paid)  # the outcome of a Wanted
        return Response(judge.hint(learner, lesson, sent, bought), media_type="application/json")

    return routes


def _json(content: Any) -> Response:
    return Response(encode(content), media_type="application/json")


async def _refuse(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)
    return Response(error.body(), error.status, error.headers(), media_type="application/json")


async def _plain(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "refused")
    return Response(
        encode({"error": code, "message": str(error.detail)}), error.status_code, error.headers, media_type="application/json"
    )


async def _invalid(request: Request, _error: Exception) -> Response:
    # FastAPI's own answer repeats what was sent, and may fail on it.
    return await _refuse(request, ServiceError(422, "invalid", _("A parameter of this address is not valid.")))


class SecurityHeaders:
    """Sends HEADERS with every answer that has not said otherwise: no page stands in a frame of another site."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                said = {name.lower() for name, _value in message["headers"]}
                message["headers"] = [*message["headers"], *(header for header in HEADERS if header[0] not in said)]
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)
