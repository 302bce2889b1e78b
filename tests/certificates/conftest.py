"""One issuer, one award and the vectors that stand beside the repository."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quizzes.certificates import credential, did_key, ed25519, signing

VECTORS = Path(__file__).resolve().parents[2].parent / "shared" / "vectors"


@pytest.fixture(scope="session")
def vectors():
    """Gives the path of a vector file or folder; skips where the collection is not beside the repository."""

    def find(*parts: str) -> Path:
        path = VECTORS.joinpath(*parts)
        if not path.exists():
            pytest.skip(f"the test vectors {'/'.join(parts)} are not beside this repository (../shared/vectors)")
        return path

    return find


@pytest.fixture(scope="session")
def private():
    return Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


@pytest.fixture(scope="session")
def did(private):
    return did_key.did_of(ed25519.public_key(private))


@pytest.fixture(scope="session")
def issued():
    return datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.fixture(scope="session")
def award():
    return credential.Award(
        learner="Zoë ]]> <b>O'Neil</b> & “김민준”",
        learner_kind="name",
        lesson="01",
        title="Where did the memory go?",
        assignment="lesson-01",
        score=Decimal("2.5"),
        max_score=Decimal("3.000000"),
        pass_mark=Decimal("0.8"),
    )


@pytest.fixture(scope="session")
def unsigned(award, did, issued):
    identifier = uuid.UUID("3f8e0b57-6b1f-4c8a-9a55-1f6f0c1d2e3a")
    return credential.build(award, issuer=did, issued=issued, identifier=identifier)


@pytest.fixture(scope="session")
def secured(unsigned, private, issued):
    return signing.sign(unsigned, private, credential.format_time(issued))
