"""`python -m course.times`: what it writes, keeps and says; the runs themselves are stood in for."""

import json

import pytest

from course import build, running, times


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The notebooks that were asked to run; lesson 5 fails. What is measured goes into a file of the test's own."""
    names = []

    def run(text, name):
        names.append(name)
        if name.startswith("05"):
            raise running.RunError("cell drive ended with OSError: no disk")
        return running.Ran(None, 12.34)

    monkeypatch.setattr(running, "run", run)
    monkeypatch.setattr(times, "FILE", tmp_path / "times.json")
    monkeypatch.setattr(times.read, "__defaults__", (times.FILE,))
    return names


def test_the_named_lessons_are_measured_and_the_others_keep_their_time(asked, capsys):
    times.FILE.write_text(json.dumps({"03": {"seconds": 7.5, "cores": 16, "measured": "2025-01-02"}}))
    assert times.main(["02"]) == 0
    held = json.loads(times.FILE.read_text())
    assert asked == ["02_adams_baggage.ipynb"] and sorted(held) == ["02", "03"]
    assert held["03"] == {"seconds": 7.5, "cores": 16, "measured": "2025-01-02"}
    assert (held["02"]["seconds"], held["02"]["cores"]) == (12.3, times.cores())
    assert times.read() == {"02": (12.3, times.cores()), "03": (7.5, 16)}
    assert "Lesson 02: 12.3 s" in capsys.readouterr().out


def test_a_lesson_that_is_gone_is_dropped(asked):
    times.FILE.write_text(json.dumps({"99": {"seconds": 7.5, "cores": 16, "measured": "2025-01-02"}}))
    assert times.main(["02"]) == 0 and sorted(json.loads(times.FILE.read_text())) == ["02"]


def test_a_lesson_that_fails_is_named_and_the_file_stays(asked, capsys):
    times.FILE.write_text("{}")
    assert times.main([]) == 1
    said = capsys.readouterr().err
    assert "05_spilling_to_nvme" in said and "cell drive ended with OSError: no disk" in said
    assert times.FILE.read_text() == "{}" and len(asked) == 1 + sum(source.name < "05" for source in build.lessons())


def test_a_number_that_there_is_not_runs_nothing(asked, capsys):
    assert times.main(["02", "77"]) == 2 and asked == []
    assert "There is no lesson 77" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["{", "[]", '{"02": 3}', '{"02": {"seconds": "x", "cores": 1}}'])
def test_a_file_that_is_not_readable_is_named_and_kept(asked, capsys, text):
    times.FILE.write_text(text)
    assert times.main(["02"]) == 1
    assert str(times.FILE) in capsys.readouterr().err and times.FILE.read_text() == text and asked == []
