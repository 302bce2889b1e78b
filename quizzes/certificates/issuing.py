"""What goes into a new certificate: results in, unsigned credential out. Pure."""

from __future__ import annotations

import base64
import hashlib
import uuid
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_FLOOR, Decimal
from typing import Any, Literal

from quizzes.certificates import certificate
from quizzes.certificates.parts import CONTEXTS, COURSE, TYPES, format_points, format_time
from quizzes.say import _

_COURSE = uuid.UUID("8c1b6c0e-54a5-4d0b-9a3e-5a0b8a5c2f17")


@dataclass(frozen=True)
class Passed:
    """One lesson whose quiz was passed."""

    lesson: str
    """Two digits."""
    title: str
    """The lesson's title; may be empty."""
    score: Decimal
    max_score: Decimal


@dataclass(frozen=True)
class File:
    """A file on which the certificate rests: results, or receipts of the service."""

    name: str
    sha256: bytes

    @classmethod
    def of(cls, name: str, data: bytes) -> File:
        """The file `name` with the contents `data`."""
        return cls(name, hashlib.sha256(data).digest())


@dataclass(frozen=True)
class Achieved:
    """What a certificate says."""

    learner: str
    """The name shown, tidy (see `names.tidy`)."""
    learner_kind: Literal["name", "userName"]
    lessons: tuple[Passed, ...]
    """At least one; several make a certificate of the course."""
    pass_mark: Decimal
    """The share of the points needed in each lesson, above 0 and at most 1."""
    assessment: Literal["self-paced", "service", "instructor"]
    course_version: str
    bank_version: str
    files: tuple[File, ...]
    """At least one."""
    email: str | None = None


@dataclass(frozen=True)
class Place:
    """Where the certificate will stand."""

    issuer: str
    """The did:key that will sign it."""
    identifier: str
    """See `identifier.new`."""
    base: str | None = None
    """The web address of the registry."""
    issuer_name: str | None = None
    index: int | None = None
    """Its place in the status list; None: it cannot be revoked."""


def band(score: Decimal, max_score: Decimal) -> str:
    """The share of the points, cut down to tens: `80–89 %`; all points are `100 %`."""
    tens = int((10 * score / max_score).to_integral_value(ROUND_FLOOR))
    if tens >= 10:
        return "100 %"
    return f"{tens}0–{tens}9 %" if tens else "0–9 %"


def _achievement(achieved: Achieved) -> tuple[str, str, str]:
    numbers = [passed.lesson for passed in achieved.lessons]
    if len(numbers) == 1:
        title = achieved.lessons[0].title
        name = f"Lesson {numbers[0]}" + (f": {title}" if title else "")
        return name, f"Passed the quiz of lesson {numbers[0]} of the course “{COURSE}”.", numbers[0]
    listed = ", ".join(numbers[:-1]) + f" and {numbers[-1]}"
    return f"Lessons {listed}", f"Passed the quizzes of lessons {listed} of the course “{COURSE}”.", ",".join(numbers)


def build(
    achieved: Achieved, place: Place, *, issued: datetime, valid_until: datetime | None = None, salt: str | None = None
) -> dict[str, Any]:
    """The unsigned credential. `salt`, 32 hex digits drawn at random, is needed where there is an e-mail (ValueError).

    It holds text, lists, objects, `true` and `false`; no numbers, whose written form is where canonical JSON goes wrong.
    """
    name, description, key = _achievement(achieved)
    achievement_id = f"urn:uuid:{uuid.uuid5(_COURSE, key)}"
    share = format_points(achieved.pass_mark * 100)
    score = sum((passed.score for passed in achieved.lessons), Decimal(0))
    max_score = sum((passed.max_score for passed in achieved.lessons), Decimal(0))
    each = "the lesson's quiz" if len(achieved.lessons) == 1 else "each lesson's quiz"
    issuer: dict[str, Any] = {"id": place.issuer, "type": ["Profile"]}
    if place.base is not None:
        issuer |= {"name": place.issuer_name, "url": place.base}
    document: dict[str, Any] = {
        "@context": list(CONTEXTS),
        "id": f"{place.base or place.issuer}/c/{place.identifier}",
        "type": list(TYPES),
        "name": f"{COURSE}, {name}",
        "issuer": issuer,
        "validFrom": format_time(issued),
        "credentialSubject": {
            "type": ["AchievementSubject"],
            "identifier": _identity(achieved, salt),
            "achievement": {
                "id": achievement_id,
                "type": ["Achievement"],
                "achievementType": "Assessment" if len(achieved.lessons) == 1 else "Course",
                "name": name,
                "description": description,
                "criteria": {"narrative": f"At least {share} % of the points of {each}."},
                "version": achieved.course_version,
                "tag": [f"bank-version:{achieved.bank_version}", *(f"lesson:{passed.lesson}" for passed in achieved.lessons)],
                "resultDescription": [
                    {
                        "id": f"{achievement_id}#band",
                        "type": ["ResultDescription"],
                        "name": "Share of the points",
                        "resultType": "Result",
                        "requiredValue": f"{share} %",
                    }
                ],
            },
            "result": [{"type": ["Result"], "resultDescription": f"{achievement_id}#band", "value": band(score, max_score)}],
        },
        "evidence": [
            {
                "id": "ni:///sha-256;" + base64.urlsafe_b64encode(file.sha256).decode().rstrip("="),
                "type": ["Evidence"],
                "name": file.name,
                "genre": achieved.assessment,
                "narrative": certificate.ASSESSMENTS[achieved.assessment],
                "description": certificate.LIMITS,
            }
            for file in achieved.files
        ],
    }
    if valid_until is not None:
        document["validUntil"] = format_time(valid_until)
    if place.index is not None and place.base is not None:
        status = f"{place.base}/status.json"
        document["credentialStatus"] = {
            "id": f"{status}#{place.index}",
            "type": "BitstringStatusListEntry",
            "statusPurpose": "revocation",
            "statusListIndex": str(place.index),
            "statusListCredential": status,
        }
    return document


def _identity(achieved: Achieved, salt: str | None) -> list[dict[str, Any]]:
    shown = {
        "type": "IdentityObject",
        "hashed": False,
        "identityHash": achieved.learner,
        "identityType": achieved.learner_kind,
    }
    if achieved.email is None:
        return [shown]
    if salt is None:
        raise ValueError(_("an e-mail is bound with a salt"))
    return [
        shown,
        {
            "type": "IdentityObject",
            "hashed": True,
            "identityHash": certificate.identity_hash(achieved.email, salt),
            "identityType": "emailAddress",
            "salt": salt,
        },
    ]
