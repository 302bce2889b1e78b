"""nbgrader's own interface, set up so that a course's grading reads answers and runs nothing."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties, CheckCellMetadata, LimitOutput
from traitlets.config import Config

from quizzes.nbgrader.cleaned import CLEANED
from quizzes.nbgrader.judge import JudgeAnswers, SaveGrades
from quizzes.nbgrader.session import find_scripts

COURSE_ID = "offload-lab"


def url_of(course: Path, db_url: str | None = None) -> str:
    """The gradebook's address for SQLAlchemy: SQLite in the course folder where none is named."""
    if db_url is None:
        return f"sqlite:///{course.resolve() / 'gradebook.db'}"
    scheme, colon, rest = db_url.partition("://")
    if colon and scheme in ("postgresql", "postgres") and importlib.util.find_spec("psycopg2") is None:
        return f"postgresql+psycopg://{rest}"  # SQLAlchemy's default is a driver that this course does not install
    return db_url


def api(course: Path, db_url: str | None = None, more: Mapping[str, Mapping[str, Any]] | None = None) -> NbGraderAPI:
    """`more`: the name of a configurable class -> its traits."""
    find_scripts()
    config = Config()
    config.CourseDirectory.root = str(course.resolve())
    config.CourseDirectory.course_id = COURSE_ID
    config.CourseDirectory.submitted_directory = CLEANED
    config.CourseDirectory.db_url = url_of(course, db_url)
    # Without a root of its own nbgrader would look for an exchange folder of the whole machine.
    config.Exchange.root = str(course.resolve() / "exchange")
    config.Autograde.autograde_preprocessors = [
        JudgeAnswers,
        LimitOutput,
        SaveGrades,
        AssignLatePenalties,
        CheckCellMetadata,
    ]
    for name, traits in (more or {}).items():
        config[name].update(traits)
    return NbGraderAPI(CourseDirectory(config=config), config=config)
