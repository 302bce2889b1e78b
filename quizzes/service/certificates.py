"""The pages of certificates, served from a registry: `GET /c/ID`. FastAPI comes with the extra `service`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from quizzes.certificates import identifier, page
from quizzes.certificates.judge import judge
from quizzes.certificates.registry import Registry, RegistryError

if TYPE_CHECKING:
    from fastapi import APIRouter


def router(folder: Path) -> APIRouter:
    """A router over the registry in `folder`. Nothing is cached: a certificate revoked now is shown so at the next request."""
    from fastapi import APIRouter, HTTPException, Response

    made = APIRouter()
    registry = Registry(folder)

    @made.get("/c/{name}", response_model=None)
    def certificate(name: str):  # a return annotation would be looked up among the globals of this module
        try:
            plain = identifier.parse(name.removesuffix(".json"))
            data = registry.certificate(plain)
            published = registry.read()
        except (identifier.IdentifierError, RegistryError):
            # One answer for all: it does not tell which ids exist, nor where the registry lies.
            raise HTTPException(404, "There is no certificate of this id. Look for a mistyped symbol.", page.HEADERS) from None
        if name.endswith(".json"):
            return Response(data, media_type="application/json", headers=page.HEADERS)
        judgement = judge(data, now=datetime.now(UTC), published=published)
        return Response(page.render(judgement), media_type="text/html; charset=utf-8", headers=page.HEADERS)

    return made
