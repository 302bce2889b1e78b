"""Where judged answers are kept: SQLite in one file, or PostgreSQL by URL.

An answer is one row that is written once and never changed, with the whole reply to it. What makes an answer count once are two
constraints of the database: (run, nonce) and (run, question, attempt) are unique. A hint is one row as well, and what makes it
cost once is that (run, question, number) is unique.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from quizzes.service.errors import StartError

VERSION = 2
_WITHOUT_HINTS = "1"
_LOCK = 0x0FF10AD
BUSY = 10.0
"""Seconds that SQLite waits for another process that writes."""

metadata = sa.MetaData()
about = sa.Table(
    "about",
    metadata,
    sa.Column("name", sa.String(20), primary_key=True),
    sa.Column("value", sa.String(100), nullable=False),
)
answers = sa.Table(
    "answers",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("run", sa.String(32), nullable=False),
    sa.Column("learner", sa.String(100), nullable=False),
    sa.Column("lesson", sa.String(2), nullable=False),
    sa.Column("question", sa.String(60), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("nonce", sa.String(64), nullable=False),
    sa.Column("fingerprint", sa.String(71), nullable=False),
    sa.Column("share", sa.Float, nullable=False),  # before hints: an answer that is right settles its question
    sa.Column("at", sa.String(27), nullable=False),
    sa.Column("reply", sa.LargeBinary, nullable=False),
    sa.UniqueConstraint("run", "nonce"),
    sa.UniqueConstraint("run", "question", "attempt"),
)
hints = sa.Table(
    "hints",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("run", sa.String(32), nullable=False),
    sa.Column("learner", sa.String(100), nullable=False),
    sa.Column("lesson", sa.String(2), nullable=False),
    sa.Column("question", sa.String(60), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("cost", sa.Float, nullable=False),
    sa.Column("at", sa.String(27), nullable=False),
    sa.UniqueConstraint("run", "question", "number"),
)


class Store:
    """Raises StartError for a URL that does not work, a database that is none, and one of a later version."""

    def __init__(self, url: str) -> None:
        try:
            self.engine = _engine(url)
        except (ArgumentError, NoSuchModuleError, ImportError) as error:
            raise StartError(f"--db-url: {_hidden(url)} cannot be used ({_first(error)}).") from None
        except OSError as error:
            raise StartError(f"--db-url: {error.filename} cannot be made ({error.strerror}).") from None
        try:
            self._salt = self._prepare()
        except SQLAlchemyError as error:
            raise StartError(f"--db-url: {_hidden(url)} cannot be opened ({_first(error)}).") from None

    def _prepare(self) -> str:
        with self.writing() as connection:
            if connection.dialect.name == "postgresql":
                # Of two services that start together one makes the tables.
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
            metadata.create_all(connection)
            held = {row.name: row.value for row in connection.execute(sa.select(about.c.name, about.c.value))}
            if not held:
                held = {"version": str(VERSION), "salt": secrets.token_hex(16)}
                connection.execute(sa.insert(about), [{"name": name, "value": value} for name, value in held.items()])
            if held.get("version") == _WITHOUT_HINTS:
                # A program that knows no hints would leave their cost out: it shall refuse this database from now on.
                connection.execute(sa.update(about).where(about.c.name == "version").values(value=str(VERSION)))
                held["version"] = str(VERSION)
        if held.get("version") != str(VERSION):
            raise StartError(
                f"The database of answers has version {held.get('version')}; this program reads {VERSION}. Use the program "
                "that wrote it, or another database."
            )
        return held["salt"]

    def run(self, learner: str, lesson: str) -> str:
        """The one run of a learner and a lesson in this database, 32 hexadecimal digits; another database has another one."""
        return hashlib.sha256(f"{self._salt}\n{lesson}\n{learner}".encode()).hexdigest()[:32]

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction that holds the lock from its beginning: one that reads first could not write any more."""
        with self.engine.connect().execution_options(offload_begin="BEGIN IMMEDIATE") as connection, connection.begin():
            yield connection

    def hints(self, run: str) -> dict[str, tuple[float, ...]]:
        """Question id -> what each hint that was taken in a run cost, as a share of the points, in order."""
        chosen = sa.select(hints.c.question, hints.c.cost).where(hints.c.run == run).order_by(hints.c.question, hints.c.number)
        found: dict[str, tuple[float, ...]] = {}
        with self.engine.connect() as connection:
            for question, cost in connection.execute(chosen):
                found[question] = (*found.get(question, ()), cost)
        return found

    def replies(self, run: str) -> list[tuple[str, int, float, bytes]]:
        """(question id, attempt, share before hints, the reply) of a run, in the order in which they were recorded."""
        chosen = sa.select(answers.c.question, answers.c.attempt, answers.c.share, answers.c.reply)
        with self.engine.connect() as connection:
            rows = connection.execute(chosen.where(answers.c.run == run).order_by(answers.c.number)).all()
        return [(row.question, row.attempt, row.share, bytes(row.reply)) for row in rows]

    def close(self) -> None:
        self.engine.dispose()


def _engine(url: str) -> sa.Engine:
    parsed = sa.make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return sa.create_engine(parsed, pool_pre_ping=True, pool_size=5)
    if not parsed.database or parsed.database == ":memory:":
        raise ArgumentError("an embedded database needs a file, for example sqlite:///answers.db")
    path = Path(parsed.database)
    path.parent.mkdir(parents=True, exist_ok=True)
    # It holds the answers of others. SQLite gives the files beside it the same mode.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    engine = sa.create_engine(parsed, connect_args={"timeout": BUSY})

    @sa.event.listens_for(engine, "connect")
    def _opened(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # this module begins its transactions itself
        cursor = connection.cursor()
        # FULL: WAL with less may forget the last commits when the power fails, and those were acknowledged.
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def _begun(connection: sa.Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get("offload_begin", "BEGIN"))

    return engine


def _first(error: BaseException) -> str:
    """The cause in one line: SQLAlchemy adds the statement and a link."""
    told = getattr(error, "orig", None) or error
    return (str(told).splitlines() or [type(told).__name__])[0].rstrip(".")


def _hidden(url: str) -> str:
    """The URL without its password."""
    try:
        return sa.make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return "this"
