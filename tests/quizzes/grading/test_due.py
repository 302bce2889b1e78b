"""Due times and what being late costs: zones, clock changes, extensions, and words with numbers that are right."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from bench.grading import answered, hand_in
from quizzes.cli import app
from quizzes.nbgrader.course import COURSE_ID, CourseError, build_assignment, grade
from quizzes.nbgrader.due import DueError, due, load, penalty, shown, span
from quizzes.nbgrader.late import cost
from quizzes.nbgrader.roster import RosterError, read_class
from quizzes.nbgrader.times import moment


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-12-24T23:59 Europe/Berlin", "2026-12-24T22:59"),
        ("2026-12-24T23:59+01:00", "2026-12-24T22:59"),
        ("2026-12-24 23:59 +0900", "2026-12-24T14:59"),
        ("2026-12-24T23:59Z", "2026-12-24T23:59"),
        ("2026-12-24 23:59 UTC", "2026-12-24T23:59"),
        ("2026-03-29T03:00 Europe/Berlin", "2026-03-29T01:00"),
        ("2026-03-29T01:59:59 Europe/Berlin", "2026-03-29T00:59:59"),
        ("2026-10-25T02:30 Europe/Berlin", "2026-10-25T01:30"),  # twice: the later
        ("2026-10-25T02:30+02:00", "2026-10-25T00:30"),
        ("2026-04-05T01:45 Australia/Lord_Howe", "2026-04-04T15:15"),  # a change of half an hour
    ],
)
def test_a_due_time_is_an_instant(text, utc):
    assert moment(text).utc == datetime.fromisoformat(utc)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-12-24T23:59", "has no time zone; write 2026-12-24T23:59 Europe/Berlin"),
        ("2026-12-24 Europe/Berlin", "no time of day"),
        ("2026-12-24", "no time of day"),
        ("2026-03-29T02:30 Europe/Berlin", "does not exist: the clocks of Europe/Berlin go forward.*03:30"),
        ("2026-12-24T23:59+01:00 Europe/Berlin", "names an offset and a zone"),
        ("2026-12-24T23:59 Berlin", "no time zone"),
        ("24.12.2026 23:59 Europe/Berlin", "is no time"),
        ("soon", "is no time"),
        ("", "is no time"),
        ("0001-01-01T00:00+09:00", "outside the calendar"),
    ],
)
def test_what_is_no_due_time_says_what_to_write(text, said):
    with pytest.raises(DueError, match=said):
        due(text)


def test_a_time_that_comes_twice_is_pointed_at():
    found = moment("2026-10-25T02:30 Europe/Berlin")
    assert "comes twice" in found.note and "2026-10-25T02:30+0200" in found.note
    assert moment("2026-10-25T03:00 Europe/Berlin").note == ""


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.5, "1 second"), (59, "59 seconds"), (60, "1 minute"), (3_661, "1 hour 1 minute"), (3_601, "1 hour"),
        (86_400 * 2 + 7_200, "2 days 2 hours"), (86_400 * 30 + 59, "30 days"),
    ],
)  # fmt: skip
def test_a_span_in_words(seconds, said):
    assert span(seconds) == said


@given(st.integers(1, 10**8))
def test_the_words_are_never_off_by_a_unit(seconds):
    sizes = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
    words = span(seconds).split()
    named = [(int(count), sizes[unit.rstrip("s")]) for count, unit in zip(words[::2], words[1::2], strict=True)]
    told = sum(count * size for count, size in named)
    assert 0 <= seconds - told < named[-1][1]


@pytest.mark.parametrize(
    ("text", "score", "seconds", "points"),
    [
        ("none", 3, 9e9, None), ("zero", 3, 1, 3), ("10%/day", 3, 1, 0.3), ("10%/day", 3, 86_400, 0.3),
        ("10%/day", 3, 86_401, 0.6), ("10%/day", 3, 1e9, 3), ("2.5%/hour", 2, 7_200, 0.1), ("10%/day", 0, 5, None),
        ("10 % per day", 3, 0, None),
    ],
)  # fmt: skip
def test_what_being_late_costs(text, score, seconds, points):
    rule = penalty(text)
    assert cost(rule.percent, rule.every, score, seconds) == (None if points is None else pytest.approx(points))


@pytest.mark.parametrize("text", ["", "ten", "-1%/day", "101%/day", "nan%/day", "10%", "10%/week", "1e9%/day"])
def test_what_is_no_penalty_is_refused(text):
    with pytest.raises(DueError, match="write none, zero, or"):
        penalty(text)


def test_times_are_shown_on_the_clock_of_their_zone():
    assert shown(datetime(2026, 7, 1, 12, 0, tzinfo=UTC), "Europe/Berlin") == "2026-07-01 14:00 +02:00 (Europe/Berlin)"
    assert shown(datetime(2026, 7, 1, 12, 0, 5, tzinfo=UTC), "UTC") == "2026-07-01 12:00:05 UTC"
    assert shown(datetime(2026, 7, 1, 12, 0, tzinfo=UTC), "-03:30") == "2026-07-01 08:30 -03:30"


@pytest.fixture(scope="module")
def late_class(tmp_path_factory):
    """Five who hand in around the due time 2026-12-24 22:59 UTC; everybody's answers are worth the same."""
    course = tmp_path_factory.mktemp("late à part")
    honest = json.dumps(answered(build_assignment(course, "01"))).encode()
    times = {
        "in-time": "2026-12-25 07:59:00 +0900",
        "a-second": "2026-12-25T07:59:01+09:00",
        "two-days": "2026-12-26 23:10 Europe/Berlin",
        "extended": "2026-12-25 00:59 Europe/Berlin",
        "own-due": "2026-12-25 12:00 UTC",
        "no-time": None,
    }
    for student, text in times.items():
        hand_in(course, student, honest)
        if text is not None:
            (course / "submitted" / student / "quiz-01" / "timestamp.txt").write_text(text)
    rows = [f"{student},," for student in times if student not in ("extended", "own-due")]
    rows += ["extended,60,", "own-due,,2026-12-25T13:00 Europe/Berlin"]
    (course / "students.csv").write_text("id,extra_minutes,due\n" + "\n".join(rows) + "\n")
    command = ["grade", "--course", str(course), "--due", "2026-12-24T23:59 Europe/Berlin", "--late", "10%/day"]
    first = CliRunner().invoke(app, [*command, "--json"])
    assert first.exit_code == 0, first.output
    return course, json.loads(first.stdout)


def test_who_is_late_pays_and_is_told_how_late(late_class):
    course, report = late_class
    results = {one["student"]: one for one in report["results"]}
    full = results["in-time"]["score"]
    assert full > 0 and results["in-time"]["notes"] == []
    assert report["due"] == (
        "Due 2026-12-24 23:59 +01:00 (Europe/Berlin); being late costs 10 % of the points earned for each day begun."
    )
    assert {one["student"]: one["seconds"] for one in report["late"]} == {"a-second": 1, "two-days": ((24 + 23) * 60 + 11) * 60}
    assert results["a-second"]["score"] == pytest.approx(full * 0.9)
    assert results["two-days"]["score"] == pytest.approx(full * 0.8)
    for student in ("extended", "own-due", "no-time"):
        assert results[student]["score"] == full, student
    assert results["a-second"]["notes"][0].startswith("handed in 1 second late: 2026-12-24 23:59:01 +01:00")
    (note,) = results["two-days"]["notes"]
    assert note.startswith(
        "handed in 1 day 23 hours late: 2026-12-26 23:10 +01:00 (Europe/Berlin), due 2026-12-24 23:59 +01:00"
    )
    assert results["no-time"]["notes"] == ["no time of submission is known; it counts as on time"]
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", COURSE_ID) as gradebook:
        assert gradebook.find_assignment("quiz-01").duedate == datetime(2026, 12, 24, 22, 59)
        assert gradebook.find_submission("quiz-01", "extended").extension == timedelta(hours=1)


def test_the_due_time_holds_for_later_gradings_until_it_is_taken_back(late_class):
    course, report = late_class
    again = grade(course, "01")
    assert again.to_json() == report
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", COURSE_ID) as gradebook:
        gradebook.find_assignment("quiz-01").duedate = datetime(2026, 12, 24, 22, 59, 1)
        gradebook.db.commit()
    moved = grade(course, "01")
    assert moved.due.words.startswith("Due 2026-12-24 22:59:01 UTC"), "what was changed in formgrader counts"
    assert not {one.student: one.late for one in moved.results}["a-second"]
    (course / "students.csv").unlink()
    assert all(one.late == one.penalty == 0 for one in grade(course, "01", due="none").results)
    with pytest.raises(DueError, match="needs a due time"):
        grade(course, "01", late="zero")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("ada,ten,", "extra_minutes of 'ada' is 'ten'"),
        ("ada,-5,", "whole number"),
        ("ada,99999999,", "whole number"),
        ("ada,,2026-12-24T23:59", "due of 'ada'.*no time zone"),
        ("ada,5,2026-12-24T23:59Z", "give one of them"),
        ("ada,5,\nada,6,", "student 2.*twice"),
    ],
)
def test_an_extension_that_is_none_names_the_student(tmp_path, row, said):
    path = tmp_path / "students.csv"
    path.write_text(f"id,extra_minutes,due\n{row}\n")
    with pytest.raises(RosterError, match=said):
        read_class(path)


def test_own_due_times_without_a_due_time_of_the_class_stop_the_grading(tmp_path):
    hand_in(tmp_path, "ada", json.dumps(answered(build_assignment(tmp_path, "01"))).encode())
    (tmp_path / "students.csv").write_text("id,due\nada,2026-12-24T23:59Z\n")
    with pytest.raises(CourseError, match="give the class's with --due"):
        grade(tmp_path, "01")


def test_a_naive_due_time_stops_the_command_and_changes_nothing(tmp_path):
    hand_in(tmp_path, "ada", json.dumps(answered(build_assignment(tmp_path, "01"))).encode())
    done = CliRunner().invoke(app, ["grade", "--course", str(tmp_path), "--due", "2026-12-24T23:59"])
    assert done.exit_code == 2 and "2026-12-24T23:59 Europe/Berlin" in done.stderr
    assert not (tmp_path / "due.json").exists() and not (tmp_path / "cleaned").exists()


@pytest.mark.parametrize(
    "text", ["", "[", "[1]", '{"quiz-01": 5}', '{"quiz-01": {"due": 3, "late": "none"}}', '{"quiz-01": {"due": null}}', "\xff"]
)
def test_a_damaged_file_of_due_times_is_named(tmp_path, text):
    (tmp_path / "due.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(DueError, match=r"due\.json"):
        load(tmp_path, "quiz-01")
