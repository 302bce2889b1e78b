"""What all shapes of certificates are made of: fixed texts, times, points, checked pieces of the data model. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from quizzes.certificates import did_key, text
from quizzes.say import _

TYPES = ["VerifiableCredential", "OpenBadgeCredential"]
CONTEXTS = ["https://www.w3.org/ns/credentials/v2", "https://purl.imsglobal.org/spec/ob/v3p0/context-3.0.3.json"]
COURSE = "Optimizer state offloading"
LONGEST_NAME = 100
LONGEST_TEXT = 400

_TIME = "%Y-%m-%dT%H:%M:%SZ"


class CredentialError(ValueError):
    """A value has not the shape of this course's certificates; the message says where, in a sentence without an end stop."""


def format_time(moment: datetime) -> str:
    """`moment`, which knows its time zone, as `YYYY-MM-DDThh:mm:ssZ`."""
    return moment.astimezone(UTC).strftime(_TIME)


def parse_time(stamp: str) -> datetime:
    """The moment that `format_time` writes as `stamp`. Raises ValueError for any other way to write it."""
    moment = datetime.strptime(stamp, _TIME).replace(tzinfo=UTC)
    if format_time(moment) != stamp:
        raise ValueError(_("a time is written YYYY-MM-DDThh:mm:ssZ"))
    return moment


def format_points(points: Decimal) -> str:
    """`points` without exponent and without zeros at the end: `3`, `2.5`."""
    plain = format(points, "f")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _equal_to(*values: str) -> Callable[[list[str]], list[str]]:
    def check(found: list[str]) -> list[str]:
        if found != list(values):
            raise ValueError(_("must be {values}").format(values=list(values)))
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
        raise ValueError(_("must be false"))
    return value


UUID = r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
Name = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME), AfterValidator(text.check)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_TEXT), AfterValidator(text.check)]
Uuid = Annotated[str, StringConstraints(pattern=rf"\A{UUID}\z")]
PointsId = Annotated[str, StringConstraints(pattern=rf"\A{UUID}#points\z")]
Points = Annotated[str, StringConstraints(pattern=r"\A(0|[1-9][0-9]{0,8})(\.[0-9]{1,12})?\z")]
Time = Annotated[str, AfterValidator(_time)]
Contexts = Annotated[list[str], AfterValidator(_equal_to(*CONTEXTS))]
Types = Annotated[list[str], AfterValidator(_equal_to(*TYPES))]
ONE: Any = Field(min_length=1, max_length=1)
IsFalse = Annotated[bool, AfterValidator(_is_false)]  # Literal[False] would take 0
Did = Annotated[str, AfterValidator(_did)]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Issuer(Part):
    id: Did
    type: list[Literal["Profile"]] = ONE


class Criteria(Part):
    narrative: Text


class Evidence(Part):
    type: list[Literal["Evidence"]] = ONE
    name: Text
    narrative: Text
    description: Text


class Proof(Part):
    context: Contexts = Field(alias="@context")
    type: Literal["DataIntegrityProof"]
    cryptosuite: Literal["eddsa-jcs-2022"]
    created: Time
    verificationMethod: str
    proofPurpose: Literal["assertionMethod"]
    proofValue: str
