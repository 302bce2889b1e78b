"""Today's certificate: course, versions, score band, how it was assessed, the evidence's hash, and whom it is bound to. Pure.

An Open Badges 3.0 credential on the W3C data model 2.0 in a closed shape; docs/certificates.md is the contract. Only terms of
the two contexts are used, so that a proof over the RDF form covers every one of them.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from quizzes.certificates import identifier, names
from quizzes.certificates.parts import (
    LONGEST_NAME,
    ONE,
    Contexts,
    Criteria,
    Did,
    IsFalse,
    Part,
    Proof,
    Text,
    Time,
    Types,
    Uuid,
)
from quizzes.say import N_, _

# Signed as it stands, and compared with these very words: English in every language. Who shows it translates it (`_(…)`).
ASSESSMENTS = {
    "self-paced": N_("The learner worked alone; the quiz judged itself on the learner's own machine, with the key at hand."),
    "service": N_("The quiz service judged each answer and signed a receipt for it; the key never left the service."),
    "instructor": N_("An instructor graded the quiz, with a key that learners do not have."),
}
"""How a quiz was assessed: the code in the certificate and what it says for people."""
LIMITS = N_(
    "Not claimed: the identity of the learner was not checked, nobody watched the learner at work, "
    "and help from others was not ruled out."
)
BASE = r"https?://[A-Za-z0-9.\-]+(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~\-]+)*"
"""The web address of a registry: no slash at its end, no query, no percent signs."""

_DID = r"did:key:z[1-9A-HJ-NP-Za-km-z]+"


def identity_hash(email: str, salt: str) -> str:
    """`sha256$` and the hash of the e-mail (trimmed, NFC, lower case) followed by `salt`, as Open Badges has it."""
    plain = unicodedata.normalize("NFC", email.strip()).lower()
    return "sha256$" + hashlib.sha256((plain + salt).encode()).hexdigest()


def _true(value: bool) -> bool:
    if not value:
        raise ValueError(_("must be true"))
    return value


def _certificate_id(value: str) -> str:
    if not identifier.is_canonical(value.rpartition("/")[2]):
        raise ValueError(_("does not end in the id of a certificate"))
    return value


DisplayName = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME), AfterValidator(names.check)]
_Id = Annotated[str, StringConstraints(pattern=rf"\A(?:{BASE}|{_DID})/c/[^/]+\z"), AfterValidator(_certificate_id)]
_Url = Annotated[str, StringConstraints(pattern=rf"\A{BASE}\z", max_length=400)]
_BandId = Annotated[str, StringConstraints(pattern=r"\Aurn:uuid:[0-9a-f\-]{36}#band\z")]
_Band = Annotated[str, StringConstraints(pattern=r"\A(?:0–9|10–19|20–29|30–39|40–49|50–59|60–69|70–79|80–89|90–99|100) %\z")]
_Percent = Annotated[str, StringConstraints(pattern=r"\A[0-9]{1,3}(\.[0-9]{1,2})? %\z")]
_Tag = Annotated[str, StringConstraints(pattern=r"\A[a-z\-]+:[A-Za-z0-9._+\-]{1,80}\z")]
_Version = Annotated[str, StringConstraints(pattern=r"\A[A-Za-z0-9._+\-]{1,80}\z")]
_Evidence = Annotated[str, StringConstraints(pattern=r"\Ani:///sha-256;[A-Za-z0-9_\-]{43}\z")]
_Index = Annotated[str, StringConstraints(pattern=r"\A(0|[1-9][0-9]{0,8})\z")]


class Issuer(Part):
    id: Did
    type: list[Literal["Profile"]] = ONE
    name: DisplayName | None = None
    url: _Url | None = None

    @field_validator("name", "url")
    @classmethod
    def _no_null(cls, value: str | None) -> str | None:
        return _given(value)


class DisplayIdentity(Part):
    type: Literal["IdentityObject"]
    hashed: IsFalse
    identityHash: DisplayName
    identityType: Literal["name", "userName"]


class HashedIdentity(Part):
    type: Literal["IdentityObject"]
    hashed: Annotated[bool, AfterValidator(_true)]
    identityHash: Annotated[str, StringConstraints(pattern=r"\Asha256\$[0-9a-f]{64}\z")]
    identityType: Literal["emailAddress"]
    salt: Annotated[str, StringConstraints(pattern=r"\A[0-9a-f]{32}\z")]


class Scale(Part):
    id: _BandId
    type: list[Literal["ResultDescription"]] = ONE
    name: Text
    resultType: Literal["Result"]
    requiredValue: _Percent


class Achievement(Part):
    id: Uuid
    type: list[Literal["Achievement"]] = ONE
    achievementType: Literal["Assessment", "Course"]
    name: Text
    description: Text
    criteria: Criteria
    version: _Version
    tag: list[_Tag] = Field(min_length=1, max_length=100)
    resultDescription: list[Scale] = ONE


class Result(Part):
    type: list[Literal["Result"]] = ONE
    resultDescription: _BandId
    value: _Band


class Subject(Part):
    type: list[Literal["AchievementSubject"]] = ONE
    identifier: list[DisplayIdentity | HashedIdentity] = Field(min_length=1, max_length=2)
    achievement: Achievement
    result: list[Result] = ONE

    @model_validator(mode="after")
    def _fits(self) -> Subject:
        kinds = [type(part) for part in self.identifier]
        if kinds != [DisplayIdentity, HashedIdentity][: len(kinds)]:
            raise ValueError(_("the display name comes first, then at most one hashed e-mail"))
        if self.result[0].resultDescription != self.achievement.resultDescription[0].id:
            raise ValueError(_("the result belongs to another scale"))
        return self


class Evidence(Part):
    id: _Evidence
    type: list[Literal["Evidence"]] = ONE
    name: Text
    genre: Literal["self-paced", "service", "instructor"]
    narrative: Text
    description: Text


class Status(Part):
    id: str
    type: Literal["BitstringStatusListEntry"]
    statusPurpose: Literal["revocation"]
    statusListIndex: _Index
    statusListCredential: str


class RdfProof(Part):
    type: Literal["DataIntegrityProof"]
    cryptosuite: Literal["eddsa-rdfc-2022"]
    created: Time
    verificationMethod: str
    proofPurpose: Literal["assertionMethod"]
    proofValue: str


def _given(value: str | None) -> str:
    if value is None:  # what is missing is written by leaving the key out, in one way only
        raise ValueError(_("must not be null"))
    return value


class Certificate(Part):
    """A signed certificate, taken apart. Field names are those of the data model."""

    context: Contexts = Field(alias="@context")
    id: _Id
    type: Types
    name: Text
    issuer: Issuer
    validFrom: Time
    validUntil: Time | None = None
    credentialSubject: Subject
    credentialStatus: Status | None = None
    evidence: list[Evidence] = Field(min_length=1, max_length=100)
    proof: Proof | RdfProof

    @model_validator(mode="before")
    @classmethod
    def _no_null(cls, value: object) -> object:
        if isinstance(value, dict) and any(value.get(key, "") is None for key in ("validUntil", "credentialStatus")):
            raise ValueError(_("what is missing is left out, not null"))
        return value

    @model_validator(mode="after")
    def _hangs_together(self) -> Certificate:
        place, status = self.base, self.credentialStatus
        if place.startswith("did:"):
            if place != self.issuer.id or status is not None:
                raise ValueError(_("without a web address the id begins with the issuer's, and there is no status"))
            return self
        if self.issuer.url not in (None, place):
            raise ValueError(_("the issuer's web address is not that of the id"))
        if status is not None:
            if status.statusListCredential != f"{place}/status.json":
                raise ValueError(_("the status list is not that of the registry"))
            if status.id != f"{status.statusListCredential}#{status.statusListIndex}":
                raise ValueError(_("the status has another index than its id says"))
        return self

    @property
    def base(self) -> str:
        """The web address of the registry, or the issuer's did:key where there is none."""
        return self.id[: self.id.rindex("/c/")]

    @property
    def identifier(self) -> str:
        """The id that people read, 27 symbols."""
        return self.id.rpartition("/")[2]

    @property
    def learner(self) -> str:
        """Who the certificate was issued to, as the issuer wrote it."""
        return self.credentialSubject.identifier[0].identityHash

    @property
    def points(self) -> str:
        """The score band: `80–89 % of the points (80 % needed)`."""
        scale = self.credentialSubject.achievement.resultDescription[0]
        return f"{self.credentialSubject.result[0].value} of the points ({scale.requiredValue} needed)"

    @property
    def assessed(self) -> str:
        """How it was assessed: `self-paced`, `service` or `instructor`."""
        return self.evidence[0].genre

    @property
    def bank_version(self) -> str:
        """The version of the question bank."""
        tags = (tag.partition(":") for tag in self.credentialSubject.achievement.tag)
        return next((value for key, _sign, value in tags if key == "bank-version"), "")

    def bound_to(self, email: str) -> bool:
        """Whether the certificate is bound to `email`; False as well where it is bound to none."""
        for part in self.credentialSubject.identifier:
            if isinstance(part, HashedIdentity):
                return hmac.compare_digest(part.identityHash, identity_hash(email, part.salt))
        return False


def is_base(url: str) -> bool:
    """Whether `url` can be the web address of a registry."""
    return re.fullmatch(BASE, url) is not None and len(url) <= 400
