"""The first shape of certificates, a passed quiz: an Open Badges 3.0 credential on the W3C data model 2.0. Pure.

No longer issued, except by whoever calls `build`; those that are out in the world keep verifying. `certificate` has today's.


`build` makes the unsigned JSON value, `read` takes a signed one apart. The shape is closed: a key that is not named here is
refused, so that nothing can stand in a certificate that the program does not know how to show.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from quizzes.certificates import text
from quizzes.certificates.certificate import Certificate
from quizzes.certificates.parts import (
    CONTEXTS,
    COURSE,
    LONGEST_NAME,
    LONGEST_TEXT,
    ONE,
    TYPES,
    Contexts,
    CredentialError,
    Criteria,
    Evidence,
    IsFalse,
    Issuer,
    Name,
    Part,
    Points,
    PointsId,
    Proof,
    Text,
    Time,
    Types,
    Uuid,
    format_points,
    format_time,
    parse_time,
)
from quizzes.say import _

__all__ = ["COURSE", "LONGEST_NAME", "LONGEST_TEXT", "Award", "Credential", "CredentialError", "build", "format_points"]
__all__ += ["format_time", "parse_time", "read"]

_LESSONS = uuid.UUID("8c1b6c0e-54a5-4d0b-9a3e-5a0b8a5c2f17")


@dataclass(frozen=True)
class Award:
    """What a certificate says: who passed which quiz, and how."""

    learner: str
    """The name shown, at most `LONGEST_NAME` characters, tidy (see `text.tidy`)."""
    learner_kind: Literal["name", "userName"]
    """Whether `learner` is a person's name or the login under which the quiz was graded."""
    lesson: str
    """Two digits."""
    title: str
    """The lesson's title; may be empty."""
    assignment: str
    """The name of the assignment in the gradebook."""
    score: Decimal
    """Points reached."""
    max_score: Decimal
    """Points that could be reached."""
    pass_mark: Decimal
    """The share of `max_score` that is needed, above 0 and at most 1."""

    @property
    def required(self) -> Decimal:
        """The points needed to pass."""
        return self.pass_mark * self.max_score


def build(
    award: Award, *, issuer: str, issued: datetime, valid_until: datetime | None = None, identifier: uuid.UUID
) -> dict[str, Any]:
    """The unsigned credential: `issuer` is the did:key that will sign it, `identifier` a random UUID.

    It holds text, lists, objects and one `false`; no numbers, whose written form is where canonical JSON goes wrong.
    """
    lesson = f"Lesson {award.lesson}" + (f": {award.title}" if award.title else "")
    lesson_id = f"urn:uuid:{uuid.uuid5(_LESSONS, award.lesson)}"
    share = format_points(award.pass_mark * 100)
    score, max_score = format_points(award.score), format_points(award.max_score)
    credential: dict[str, Any] = {
        "@context": list(CONTEXTS),
        "id": f"urn:uuid:{identifier}",
        "type": list(TYPES),
        "name": f"{COURSE}, {lesson}",
        "issuer": {"id": issuer, "type": ["Profile"]},
        "validFrom": format_time(issued),
        "credentialSubject": {
            "type": ["AchievementSubject"],
            "identifier": [
                {
                    "type": "IdentityObject",
                    "hashed": False,
                    "identityHash": award.learner,
                    "identityType": award.learner_kind,
                }
            ],
            "achievement": {
                "id": lesson_id,
                "type": ["Achievement"],
                "achievementType": "Assessment",
                "name": lesson,
                "description": f"Passed the quiz of lesson {award.lesson} of the course “{COURSE}”.",
                "criteria": {"narrative": f"At least {share} % of the points of the lesson's quiz."},
                "resultDescription": [
                    {
                        "id": f"{lesson_id}#points",
                        "type": ["ResultDescription"],
                        "name": "Points in the quiz",
                        "resultType": "RawScore",
                        "valueMin": "0",
                        "valueMax": max_score,
                        "requiredValue": format_points(award.required),
                    }
                ],
            },
            "result": [{"type": ["Result"], "resultDescription": f"{lesson_id}#points", "value": score}],
        },
        "evidence": [
            {
                "type": ["Evidence"],
                "name": "How it was assessed",
                "narrative": (
                    f"The issuer graded the quiz (assignment “{award.assignment}”) offline with nbgrader: "
                    f"{score} of {max_score} points, marked automatically."
                ),
                "description": (
                    "Not claimed: the identity of the learner was not checked, nobody watched the learner at work, "
                    "and help from others was not ruled out."
                ),
            }
        ],
    }
    if valid_until is not None:
        credential["validUntil"] = format_time(valid_until)
    return credential


class Identity(Part):
    type: Literal["IdentityObject"]
    hashed: IsFalse
    identityHash: Name
    identityType: Literal["name", "userName"]


class ResultDescription(Part):
    id: PointsId
    type: list[Literal["ResultDescription"]] = ONE
    name: Text
    resultType: Literal["RawScore"]
    valueMin: Literal["0"]
    valueMax: Points
    requiredValue: Points


class Achievement(Part):
    id: Uuid
    type: list[Literal["Achievement"]] = ONE
    achievementType: Literal["Assessment"]
    name: Text
    description: Text
    criteria: Criteria
    resultDescription: list[ResultDescription] = ONE


class Result(Part):
    type: list[Literal["Result"]] = ONE
    resultDescription: PointsId
    value: Points


class Subject(Part):
    type: list[Literal["AchievementSubject"]] = ONE
    identifier: list[Identity] = ONE
    achievement: Achievement
    result: list[Result] = ONE

    @model_validator(mode="after")
    def _passed(self) -> Subject:
        scale, result = self.achievement.resultDescription[0], self.result[0]
        if result.resultDescription != scale.id:
            raise ValueError(_("the result belongs to another scale"))
        if not Decimal(scale.requiredValue) <= Decimal(result.value) <= Decimal(scale.valueMax):
            raise ValueError(_("the result does not lie between the points needed and the points possible"))
        return self


class Credential(Part):
    """A signed credential, taken apart. Field names are those of the data model."""

    context: Contexts = Field(alias="@context")
    id: Uuid
    type: Types
    name: Text
    issuer: Issuer
    validFrom: Time
    validUntil: Time | None = None
    credentialSubject: Subject
    evidence: list[Evidence] = ONE
    proof: Proof

    @field_validator("validUntil")
    @classmethod
    def _no_null(cls, stamp: str | None) -> str:
        if stamp is None:  # a missing end is written by leaving the key out, in one way only
            raise ValueError(_("must be a time where it is given"))
        return stamp

    @property
    def learner(self) -> str:
        """Who the certificate was issued to, as the issuer wrote it."""
        return self.credentialSubject.identifier[0].identityHash

    @property
    def points(self) -> str:
        """`3 of 3 points (2.4 needed)`."""
        scale = self.credentialSubject.achievement.resultDescription[0]
        return f"{self.credentialSubject.result[0].value} of {scale.valueMax} points ({scale.requiredValue} needed)"


def read(secured: dict[str, Any]) -> Credential | Certificate:
    """The signed credential in parts: `Credential` of the first shape, `Certificate` of the second, told apart by the id.

    Raises CredentialError for a wrong type, a key too few or too many. Checks no signature.
    """
    first_shape = str(secured.get("id", "")).startswith("urn:uuid:")
    try:
        return (Credential if first_shape else Certificate).model_validate(secured)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise CredentialError(f"{text.printable(where)}: {text.printable(first['msg'])}") from None
