"""Ids, times and CSV: the parts of grading that are functions, and the lock."""

import csv
import io
import os
import time
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quizzes.nbgrader.export import to_csv
from quizzes.nbgrader.roster import RosterError, is_safe, read_roster
from quizzes.nbgrader.session import LockedError, only_grader
from quizzes.nbgrader.times import to_utc


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("2026-03-02 09:00 +0900", "2026-03-02T00:00"),
        ("2026-03-02T09:00:00+09:00", "2026-03-02T00:00"),
        ("2026-03-02 00:00:00", "2026-03-02T00:00"),
        ("2026-03-02T00:00:00Z", "2026-03-02T00:00"),
        ("2026-03-02 00:00:00.000000 UTC", "2026-03-02T00:00"),
        ("2026-03-28 23:59 Europe/Paris", "2026-03-28T22:59"),  # the clocks go forward in the night that follows
        ("2026-03-29 23:59 Europe/Paris", "2026-03-29T21:59"),
        ("2026-10-25 23:59 Europe/Paris", "2026-10-25T22:59"),
    ],
)
@pytest.mark.parametrize("server", ["UTC", "Asia/Seoul"])
def test_a_time_is_the_same_instant_on_every_server(text, hour, server, monkeypatch):
    before = os.environ.get("TZ")
    try:
        os.environ["TZ"] = server
        time.tzset()
        assert to_utc(text) == datetime.fromisoformat(hour)
    finally:
        os.environ.pop("TZ") if before is None else os.environ.__setitem__("TZ", before)
        time.tzset()


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-03-29 23:59 Mars/Olympus", "2026-03-29 23:59 ../etc", "0001-01-01 00:00 +0900"]
)
def test_what_is_no_time_is_a_value_error(text):
    with pytest.raises(ValueError):
        to_utc(text)


@pytest.mark.parametrize("bad", ["", "..", "a/b", "a\\b", "../x", "-rf", ".hidden", "a..b", "a\0", "a\n", "*", "a ", "x" * 101])
def test_an_id_that_could_leave_its_folder_is_refused(bad):
    assert not is_safe(bad)


@pytest.mark.parametrize("good", ["ada", "김하나", "jo.doe@example.org", "copied cell", "a_b-3"])
def test_ids_of_people_are_taken(good):
    assert is_safe(good)


@given(st.text(max_size=20))
def test_a_safe_id_is_one_part_of_a_path(text):
    if is_safe(text):
        assert os.path.basename(os.path.normpath(text)) == text


def test_a_class_list_names_its_bad_line(tmp_path):
    path = tmp_path / "students.csv"
    path.write_text("id,name\nada,Ada\n../x,Eve\n")
    with pytest.raises(RosterError, match="student 2"):
        read_roster(path)
    path.write_text("\ufeffid\nada\n", encoding="utf-8")
    assert read_roster(path) == {"ada"}
    path.write_text("name\nada\n")
    with pytest.raises(RosterError, match="column 'id'"):
        read_roster(path)


@pytest.mark.parametrize("cell", ["=cmd|' /C calc'!A0", "+1+1", "@x", "\t=1", "\r=1", " =1", "-x", 'Doe, "Jr"', "-2.5", "ada"])
def test_a_csv_cell_is_no_formula_and_one_field(cell):
    rows = list(csv.reader(io.StringIO(to_csv([(cell, -2.5, 3.0, [])]), newline="")))
    assert len(rows) == 2 and len(rows[1]) == 4
    field = rows[1][0]
    plain = cell in ("-2.5", "ada", 'Doe, "Jr"')
    assert field == (cell if plain else "'" + cell)
    assert rows[1][1] == "-2.5"


def test_two_graders_do_not_work_on_one_course(tmp_path):
    with only_grader(tmp_path), pytest.raises(LockedError, match="wait until it has ended"), only_grader(tmp_path):
        pass
    with only_grader(tmp_path):
        pass
