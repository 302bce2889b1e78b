"""The credential of a passed quiz: an Open Badges 3.0 `OpenBadgeCredential` on the W3C data model 2.0. Pure.

`build` makes the unsigned JSON value, `read` takes a signed one apart. The shape is closed: a key that is not named here is
refused, so that nothing can stand in a certificate that the program does not know how to show.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from quizzes.certificates import did_key, text

TYPES = ["VerifiableCredential", "OpenBadgeCredential"]
CONTEXTS = ["https://www.w3.org/ns/credentials/v2", "https://purl.imsglobal.org/spec/ob/v3p0/context-3.0.3.json"]
COURSE = "Optimizer state offloading"
LONGEST_NAME = 100
LONGEST_TEXT = 400

_LESSONS = uuid.UUID("8c1b6c0e-54a5-4d0b-9a3e-5a0b8a5c2f17")
_TIME = "%Y-%m-%dT%H:%M:%SZ"


class CredentialError(ValueError):
    """A value has not the shape of this course's certificates; the message says where, in a sentence without an end stop."""


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


def format_time(moment: datetime) -> str:
    """`moment`, which knows its time zone, as `YYYY-MM-DDThh:mm:ssZ`."""
    return moment.astimezone(UTC).strftime(_TIME)


def parse_time(stamp: str) -> datetime:
    """The moment that `format_time` writes as `stamp`. Raises ValueError for any other way to write it."""
    moment = datetime.strptime(stamp, _TIME).replace(tzinfo=UTC)
    if format_time(moment) != stamp:
        raise ValueError("a time is written YYYY-MM-DDThh:mm:ssZ")
    return moment


def format_points(points: Decimal) -> str:
    """`points` without exponent and without zeros at the end: `3`, `2.5`."""
    plain = format(points, "f")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


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


def _equal_to(*values: str) -> Callable[[list[str]], list[str]]:
    def check(found: list[str]) -> list[str]:
        if found != list(values):
            raise ValueError(f"must be {list(values)}")
        return found

    return check


def _time(stamp: str) -> str:
    parse_time(stamp)
    return stamp


def _did(did: str) -> str:
    did_key.key_of(did)
    return did


def _is_false(value: bool) -> bool:
    if value:
        raise ValueError("must be false")
    return value


_UUID = r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_Name = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME), AfterValidator(text.check)]
_Text = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_TEXT), AfterValidator(text.check)]
_Uuid = Annotated[str, StringConstraints(pattern=rf"\A{_UUID}\z")]
_PointsId = Annotated[str, StringConstraints(pattern=rf"\A{_UUID}#points\z")]
_Points = Annotated[str, StringConstraints(pattern=r"\A(0|[1-9][0-9]{0,8})(\.[0-9]{1,12})?\z")]
_Time = Annotated[str, AfterValidator(_time)]
_Contexts = Annotated[list[str], AfterValidator(_equal_to(*CONTEXTS))]
_Types = Annotated[list[str], AfterValidator(_equal_to(*TYPES))]
_ONE: Any = Field(min_length=1, max_length=1)
_False = Annotated[bool, AfterValidator(_is_false)]  # Literal[False] would take 0
_Did = Annotated[str, AfterValidator(_did)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Issuer(_Part):
    id: _Did
    type: list[Literal["Profile"]] = _ONE


class Identity(_Part):
    type: Literal["IdentityObject"]
    hashed: _False
    identityHash: _Name
    identityType: Literal["name", "userName"]


class Criteria(_Part):
    narrative: _Text


class ResultDescription(_Part):
    id: _PointsId
    type: list[Literal["ResultDescription"]] = _ONE
    name: _Text
    resultType: Literal["RawScore"]
    valueMin: Literal["0"]
    valueMax: _Points
    requiredValue: _Points


class Achievement(_Part):
    id: _Uuid
    type: list[Literal["Achievement"]] = _ONE
    achievementType: Literal["Assessment"]
    name: _Text
    description: _Text
    criteria: Criteria
    resultDescription: list[ResultDescription] = _ONE


class Result(_Part):
    type: list[Literal["Result"]] = _ONE
    resultDescription: _PointsId
    value: _Points


class Subject(_Part):
    type: list[Literal["AchievementSubject"]] = _ONE
    identifier: list[Identity] = _ONE
    achievement: Achievement
    result: list[Result] = _ONE

    @model_validator(mode="after")
    def _passed(self) -> Subject:
        scale, result = self.achievement.resultDescription[0], self.result[0]
        if result.resultDescription != scale.id:
            raise ValueError("the result belongs to another scale")
        if not Decimal(scale.requiredValue) <= Decimal(result.value) <= Decimal(scale.valueMax):
            raise ValueError("the result does not lie between the points needed and the points possible")
        return self


class Evidence(_Part):
    type: list[Literal["Evidence"]] = _ONE
    name: _Text
    narrative: _Text
    description: _Text


class Proof(_Part):
    context: _Contexts = Field(alias="@context")
    type: Literal["DataIntegrityProof"]
    cryptosuite: Literal["eddsa-jcs-2022"]
    created: _Time
    verificationMethod: str
    proofPurpose: Literal["assertionMethod"]
    proofValue: str


class Credential(_Part):
    """A signed credential, taken apart. Field names are those of the data model."""

    context: _Contexts = Field(alias="@context")
    id: _Uuid
    type: _Types
    name: _Text
    issuer: Issuer
    validFrom: _Time
    validUntil: _Time | None = None
    credentialSubject: Subject
    evidence: list[Evidence] = _ONE
    proof: Proof

    @field_validator("validUntil")
    @classmethod
    def _no_null(cls, stamp: str | None) -> str:
        if stamp is None:  # a missing end is written by leaving the key out, in one way only
            raise ValueError("must be a time where it is given")
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


def read(secured: dict[str, Any]) -> Credential:
    """The signed credential in parts. Raises CredentialError for a wrong type, a key too few or too many.

    Checks no signature.
    """
    try:
        return Credential.model_validate(secured)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise CredentialError(f"{text.printable(where)}: {text.printable(first['msg'])}") from None
