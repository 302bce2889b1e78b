"""Grade code exercises: one submission, or a class in one report. What a learner's code does costs that learner only."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from quizzes.exercises.compare import difference
from quizzes.exercises.exercise import KEYS, Case, Exercise, with_keys
from quizzes.exercises.ideas import idea_behind
from quizzes.exercises.rules import RULES
from quizzes.exercises.sandbox import LEVELS, LIMITS, Level, Limits, Outcome, Reply, isolation, run
from quizzes.exercises.submission import SubmissionError, is_student, read, sources
from quizzes.printable import clean
from quizzes.say import _, _n, spoken, words

ASSIGNMENT = "exercises"


class ExercisesError(RuntimeError):
    """The instructor has to do something; the message says what."""


@dataclass
class Mark:
    """One exercise of one student. `passed` of `cases` cases earn that share of the points."""

    exercise: str
    score: float
    max_score: float
    passed: int
    cases: int
    notes: list[str] = field(default_factory=list)
    judged: bool = True
    """False where this machine could not run it: its 0 says nothing, and an earlier score in the gradebook stands."""


@dataclass
class Result:
    student: str
    score: float
    max_score: float
    notes: list[str] = field(default_factory=list)
    exercises: list[Mark] = field(default_factory=list)


@dataclass
class Report:
    """A class. `isolation` says behind which walls the code ran."""

    isolation: str
    results: list[Result]

    def to_json(self) -> dict[str, Any]:
        return {"assignment": ASSIGNMENT, "isolation": self.isolation, "results": [asdict(one) for one in self.results]}


def judge(exercise: Exercise, source: str, level: Level, limits: Limits = LIMITS, private: Sequence[Path] = ()) -> Mark:
    """Run one exercise's text behind walls and compare here. Raises ExercisesError where the walls cannot be built."""
    cases = exercise.all_cases
    outcome = run(source, exercise.function, [case.arguments for case in cases], level, limits, private)
    if outcome.kind == "isolation":
        raise ExercisesError(_("{why}. Nothing was graded.").format(why=outcome.ended))
    if outcome.kind == "machine":
        told = _("not judged: {why}. Grade again; until then an earlier score in the gradebook stands")
        return Mark(exercise.id, 0.0, exercise.points, 0, len(cases), [clean(told.format(why=outcome.ended))], judged=False)
    return mark(exercise, outcome)


def mark(exercise: Exercise, outcome: Outcome) -> Mark:
    """Compare the replies of an outcome. Pure.

    Of a hidden case only its hint is told: a learner's own words about it (an error's text) could carry its arguments out.
    """
    cases = exercise.all_cases
    passed, notes, failed = 0, [], set()
    for number, (case, reply) in enumerate(zip(cases, outcome.replies, strict=False), start=1):
        why = _why(exercise, case, reply)
        if why is None:
            passed += 1
        elif number <= len(exercise.cases):
            hint = words(f"lesson_{exercise.lesson}", case.hint) + idea_behind(exercise, case, reply)
            notes.append(clean(_("case {number}: {why}. {hint}").format(number=number, why=why, hint=hint)))
        else:
            hint = words("keys", case.hint) + idea_behind(exercise, case, reply)
            if hint not in failed:
                notes.append(_("a hidden case: {hint}").format(hint=hint))
                failed.add(hint)
    if outcome.ended:
        at = len(outcome.replies) + 1
        told = at <= len(exercise.cases) or outcome.kind in {"time", "size"}
        ended = _("case {number}: {why}").format(number=at, why=outcome.ended)
        notes.append(clean(ended if told else _("a hidden case: the process ended there")))
    share = Fraction(passed, len(cases))
    score = float(Fraction(exercise.points) * share)
    return Mark(exercise.id, min(max(score, 0.0), exercise.points), exercise.points, passed, len(cases), notes)


def _why(exercise: Exercise, case: Case, reply: Reply) -> str | None:
    if reply.error is not None:
        return reply.error
    if exercise.rule:
        return RULES[exercise.rule](case.arguments, reply.value)
    return difference(reply.value, case.expected, exercise.relative, exercise.absolute)


def grade_class(course: Path, accept_none: bool = False, limits: Limits = LIMITS, keys: Path = KEYS) -> Report:
    """Grade `course/submitted/<student>/exercises/exercises.ipynb` of everybody. Submitted files are only read.

    Raises ExercisesError where nobody has submitted, ExerciseError where the keys are wrong or missing, and NoIsolation.
    """
    whole = with_keys(keys=keys)
    submitted = course / "submitted"
    if not submitted.is_dir():
        said = _("nobody has submitted: there is no {path}")
        raise ExercisesError(said.format(path=f"{submitted}/<student>/{ASSIGNMENT}/"))
    level = isolation(accept_none)
    private = (course, keys)
    results = [
        _grade(course, path.name, whole, level, limits, private) for path in sorted(submitted.iterdir()) if path.is_dir()
    ]
    return Report(_(LEVELS[level]), results)


def _grade(
    course: Path, student: str, whole: Sequence[Exercise], level: Level, limits: Limits, private: Sequence[Path]
) -> Result:
    most = sum(exercise.points for exercise in whole)
    if not is_student(student):
        said = _("a student's id has letters, digits and _.@+- only; the folder was not read")
        return Result(clean(ascii(student)[1:-1]), 0.0, most, [said])
    try:
        texts, notes = sources(read(course, student, ASSIGNMENT), whole)
    except SubmissionError as error:
        return Result(student, 0.0, most, [clean(str(error))])
    marks = []
    for exercise in whole:
        if exercise.id in texts:
            marks.append(judge(exercise, texts[exercise.id], level, limits, private))
        else:
            marks.append(Mark(exercise.id, 0.0, exercise.points, 0, len(exercise.all_cases)))
    return Result(student, float(sum(Fraction(one.score) for one in marks)), most, [clean(note) for note in notes], marks)


def feedback(result: Result) -> str:
    """A page for one student. Everything is escaped, and the page may run nothing."""
    of = _("{name}: {score:g} of {most:g}")
    rows = [f"<h1>{html.escape(of.format(name=result.student, score=result.score, most=result.max_score))}</h1>"]
    rows += [f"<p>{html.escape(note)}</p>" for note in result.notes]
    for one in result.exercises:
        rows.append(f"<h2>{html.escape(of.format(name=one.exercise, score=one.score, most=one.max_score))}</h2>")
        cases = _n("{passed} of {cases} case", "{passed} of {cases} cases", one.cases)
        rows.append(f"<p>{html.escape(cases.format(passed=one.passed, cases=one.cases))}</p><ul>")
        rows += [f"<li>{html.escape(note)}</li>" for note in one.notes]
        rows.append("</ul>")
    policy = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">'
    head = f'<!doctype html><html lang="{html.escape(spoken())}"><meta charset="utf-8">{policy}'
    return f"{head}<title>{html.escape(_('Feedback'))}</title>{''.join(rows)}</html>\n"
