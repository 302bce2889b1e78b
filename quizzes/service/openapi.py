"""The parts of the service's OpenAPI description that FastAPI cannot see, because bodies are read by hand. Data."""

from __future__ import annotations

from typing import Any

from quizzes.service.body import EDITION, LONGEST_TEXT, MOST_HINTS, MOST_PARTS, NONCE
from quizzes.service.settings import LOCALES, MOST_ATTEMPTS

_TEXT = {"type": "string", "maxLength": LONGEST_TEXT}
_PART = {"anyOf": [_TEXT, {"type": "number"}]}
_REFUSED = {
    "type": "object",
    "required": ["error", "message"],
    "properties": {"error": {"type": "string"}, "message": {"type": "string"}},
    "additionalProperties": False,
}
_WHY = {
    400: "Not JSON that can be recorded.",
    401: "No valid token.",
    403: "This token may not be used here.",
    404: "There is no such lesson, question or hint.",
    408: "The body did not arrive in time.",
    409: "Not counted: another answer is recorded, or no attempt is left.",
    413: "The body is too large.",
    415: "Not JSON.",
    422: "JSON, but no answer.",
    429: "Too many answers; Retry-After says when. No attempt was used.",
    503: "Not recorded; send it again with the same nonce.",
}

_QUESTION = {"type": "string", "pattern": r"^[A-Za-z][A-Za-z0-9_]{0,30}$", "example": "q1"}
_ATTEMPT = {"type": "integer", "minimum": 1, "maximum": MOST_ATTEMPTS}
_BESIDE = {
    "locale": {"type": "string", "enum": list(LOCALES)},
    "edition": {"type": "string", "pattern": f"^{EDITION}$"},
}

HINT: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["question", "attempt", "hint", "cost"],
                    "properties": {
                        "question": _QUESTION,
                        "attempt": _ATTEMPT,
                        "hint": {"type": "integer", "minimum": 1, "maximum": MOST_HINTS},
                        "cost": {"type": "number", "minimum": 0, "maximum": 1},
                        **_BESIDE,
                    },
                },
            }
        },
    }
}

ANSWER: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["question", "attempt", "answer", "nonce"],
                    "properties": {
                        "question": _QUESTION,
                        "attempt": _ATTEMPT,
                        "nonce": {"type": "string", "pattern": f"^{NONCE}$"},
                        **_BESIDE,
                        "confidence": {"type": "number", "minimum": 0, "maximum": 100},
                        "answer": {
                            "anyOf": [
                                *_PART["anyOf"],
                                {"type": "array", "items": _PART, "maxItems": 2 * MOST_PARTS},
                                {"type": "object", "additionalProperties": _PART, "maxProperties": MOST_PARTS},
                            ]
                        },
                    },
                },
            }
        },
    }
}


def refused(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The answers of these statuses, for `responses=`."""
    return {status: {"description": _WHY[status], "content": {"application/json": {"schema": _REFUSED}}} for status in statuses}


def whole(description: str) -> dict[int | str, dict[str, Any]]:
    """The answer 200, an object."""
    return {200: {"description": description, "content": {"application/json": {"schema": {"type": "object"}}}}}
