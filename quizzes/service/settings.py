"""How the service is set up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from platformdirs import user_data_path

from quizzes.certificates import keys
from quizzes.question import KEYS
from quizzes.service.errors import StartError

if TYPE_CHECKING:
    from quizzes.service.identity import People

LOCALES = ("en", "fr", "ko")
MOST_ATTEMPTS = 20


def folder() -> Path:
    """Where a service that was told nothing else keeps its answers, in this user's data folder."""
    return user_data_path("offload_lab") / "service"


def default_db_url() -> str:
    return f"sqlite:///{folder() / 'answers.db'}"


@dataclass(frozen=True)
class Settings:
    """Raises StartError for values that make no sense, and for the published test key."""

    private_key: Ed25519PrivateKey
    """Signs the receipts."""
    people: People
    """Tells who asks."""
    db_url: str
    """`sqlite:///PATH`, or what SQLAlchemy takes for PostgreSQL."""
    keys: Path = KEYS
    """The folder of the graded questions."""
    attempts: int = 2
    """Attempts at each question; the best counts."""
    rate: float = 30.0
    """Answers a minute that one learner may send in the long run."""
    burst: int = 30
    """Answers that one learner may send at once."""
    prefix: str = ""
    """What each path begins with, for example `/services/quiz`; without a slash at its end."""
    patience: float = 15.0
    """Seconds to wait for the database before an answer is refused with 503."""
    allow_test_keys: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.attempts <= MOST_ATTEMPTS:
            raise StartError(f"attempts={self.attempts}: give 1 to {MOST_ATTEMPTS} attempts a question.")
        if not 0 < self.rate <= 1e6 or not 1 <= self.burst <= 1_000_000:
            raise StartError(f"rate={self.rate:g}, burst={self.burst}: give at least one answer at once and some a minute.")
        if self.prefix and (not self.prefix.startswith("/") or self.prefix.endswith("/")):
            raise StartError(f"prefix={self.prefix!r}: begin it with / and end it without one.")
        if not self.allow_test_keys and self.private_key.private_bytes_raw() == keys.TEST_SEED:
            raise StartError(
                "This is the published test key: everybody can sign receipts with it. "
                "Make a key with `offload-quiz keygen`, or say --allow-test-keys for a trial."
            )
