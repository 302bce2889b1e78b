"""`offload-quiz export` and `import` as people use them."""

import json
import os

import nbformat
import pytest
import yaml
from interchange_making import EVIL
from typer.testing import CliRunner

from quizzes.cli import app
from quizzes.grading import judge
from quizzes.interchange import files, formats
from quizzes.interchange.files import InterchangeError, publish
from quizzes.interchange.report import Report
from quizzes.lint import check
from quizzes.nbgrader import notebook
from quizzes.question import KEYS, UNNAMED, load, practice
from quizzes.say import _, language

runner = CliRunner()


def run(*arguments):
    done = runner.invoke(app, [str(argument) for argument in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


@pytest.fixture
def folder(tmp_path):
    held = tmp_path / "mon été à moi"
    held.mkdir()
    return held


@pytest.mark.parametrize("form", list(formats.FORMS))
def test_there_and_back(folder, form):
    out, back = folder / f"bank é{formats.ENDINGS[form]}", folder / "back.yaml"
    count = len(practice("05").questions)
    done = run("export", form, "--lesson", "05", "--out", out, "--report", folder / "said.json")
    assert done.exit_code == 0 and f"{count} questions" in done.stdout and "l05-reads" in done.stdout
    said = json.loads((folder / "said.json").read_text(encoding="utf-8"))
    assert said["questions"] == count and said["skipped"] == 0
    assert {"question": "l05-twelve", "field": "reread", "said": "the format has no place for it", "fate": "ours"} in said[
        "entries"
    ]
    assert all(entry["question"] and entry["field"] for entry in said["entries"])
    done = run("import", out, "--out", back, "--lesson", "42", "--title", "Theirs")
    assert done.exit_code == 0, done.output
    bank = load(back)
    assert (bank.lesson, bank.title) == ("42", "Theirs")
    assert [question.id for question in bank.questions] == [question.id for question in practice("05").questions]


def test_graded_keys_have_to_be_asked_for(folder):
    if not list(KEYS.glob("*.yaml")):
        pytest.skip("the keys stay with the instructor's checkout")
    done = run("export", "gift", "--out", folder / "all.gift")
    assert done.exit_code == 0 and "keep the files away" not in done.output
    assert "[id:g" not in (folder / "all.gift").read_text(encoding="utf-8")
    done = run("export", "gift", "--keys", "--out", f"{folder}/graded/")
    assert done.exit_code == 0 and "keep the files away from learners" in done.output
    assert sorted(path.name for path in (folder / "graded").iterdir())[0] == "graded-00.gift"


def test_nothing_is_replaced_without_force(folder):
    out = folder / "x.gift"
    out.write_text("mine")
    for arguments in (("export", "gift", "--lesson", "05", "--out", out), ("import", out, "--out", out)):
        done = run(*arguments)
        assert done.exit_code == 2 and "--force" in done.output and out.read_text() == "mine"
    assert run("export", "gift", "--lesson", "05", "--out", out, "--force").exit_code == 0
    assert run("import", out, "--out", folder / "b.yaml", "--report", out).exit_code == 2
    assert [path.name for path in folder.iterdir()] == ["x.gift"], "no bank without its report, no temporary file"


def test_what_was_left_out_is_in_the_exit_status(folder):
    source, out = folder / "theirs.gift", folder / "b.yaml"
    source.write_text("One?{=a ~b}\n\nEssay{}")
    done = run("import", source, "--out", out, "--report", folder / "r.json")
    assert done.exit_code == 1 and "left out" in done.stdout and "line 3" in done.stdout
    assert json.loads((folder / "r.json").read_text())["skipped"] == 1 and len(load(out).questions) == 1
    source.write_text("Essay{}")
    done = run("import", source, "--out", folder / "none.yaml")
    assert done.exit_code == 2 and "nothing was written" in done.output and not (folder / "none.yaml").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("export", "gift", "--lesson", "77", "--out", "x.gift"), "no questions of lesson"),
        (("import", "none.gift", "--out", "x.yaml"), "none.gift"),
        (("import", ".", "--out", "x.yaml"), "is a folder"),
        (("import", "a.gift", "--out", "x.yaml", "--lesson", "../"), "two digits"),
        (("import", "a.gift", "--out", "x.yaml", "--format", "moodle"), "leave --format out"),
        (("import", "a.gift", "--out", "none/a.gift/../../a.gift/x.yaml"), "cannot be written"),
    ],
)
def test_mistakes_are_told(folder, monkeypatch, arguments, said):
    monkeypatch.chdir(folder)
    (folder / "a.gift").write_text("One?{=a ~b}")
    done = run(*arguments)
    assert done.exit_code == 2 and said in done.output and "Traceback" not in done.output
    assert [path.name for path in folder.iterdir()] in (["a.gift"], ["a.gift", "none"], ["none", "a.gift"])


def test_a_full_disk_leaves_nothing_behind(folder, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(InterchangeError, match="No space left"):
        publish(folder / "x.yaml", b"data")
    assert not list(folder.iterdir())


def test_one_who_came_first_keeps_the_file(folder, monkeypatch):
    """Something appears at the last moment: it is not replaced."""
    sync = os.fsync

    def late(handle):
        (folder / "x.yaml").write_text("first")
        sync(handle)

    monkeypatch.setattr(files.os, "fsync", late)
    with pytest.raises(InterchangeError, match="there already"):
        publish(folder / "x.yaml", b"second")
    assert (folder / "x.yaml").read_text() == "first" and len(list(folder.iterdir())) == 1


def test_a_file_system_without_links(folder, monkeypatch):
    def refuse(*_paths):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(files.os, "link", refuse)
    publish(folder / "x.yaml", b"first")
    with pytest.raises(InterchangeError, match="there already"):
        publish(folder / "x.yaml", b"second")
    assert (folder / "x.yaml").read_bytes() == b"first" and len(list(folder.iterdir())) == 1


def test_no_text_of_a_question_is_markup_in_an_assignment():
    held = "\n\n".join(f"[plain]{formats.gift_write.escaped(text)} <script>x</script>{{=<img src\\=x> ~<b}}" for text in EVIL)
    bank = formats.read(held.encode(), "x.gift").bank
    cells = notebook.build(bank).cells
    assert len(bank.questions) == len(EVIL) and nbformat.validate(notebook.build(bank)) is None
    for cell in cells:
        if cell.cell_type == "markdown":
            assert "<script" not in cell.source and "<img" not in cell.source and "<!" not in cell.source
    assert any("&lt;script>x" in cell.source for cell in cells)


def test_an_imported_bank_can_be_used_and_read_again(folder):
    (folder / "x.gift").write_text("::Q::Which?{=right ~wrong}\n\nHow many?{#5:1}\n\nMore{>3\na\nb\nc\n}", encoding="utf-8")
    assert run("import", folder / "x.gift", "--out", folder / "99_theirs.yaml").exit_code == 0
    bank = load(folder / "99_theirs.yaml")
    assert [question.name for question in bank.questions] == ["q1", "q2", "q3"]
    verdict = judge(bank["q1"], "b")
    assert verdict.misconceptions == (UNNAMED,) and not verdict.correct
    assert not [line for line in check({folder / "99_theirs.yaml": bank}) if "misconceptions.yaml" not in line]
    content = yaml.safe_load((folder / "99_theirs.yaml").read_text(encoding="utf-8"))
    assert content["questions"][1] | {"id": "-"} == {
        "id": "-", "name": "q2", "kind": "number", "prompt": "How many?", "unit": "count",
        "answers": [{"value": 5, "absolute": 1.0}], "explanation": "The imported question has no explanation.",
    }  # fmt: skip


def test_what_is_said_goes_through_gettext(folder):
    (folder / "x.gift").write_text("One?{=a ~b}\n\nEssay{}\n\nTwo?{=a =b ~c}")
    with language("xx"):
        done = run("import", folder / "x.gift", "--out", folder / "b.yaml")
        report = Report()
        report.add("q", "f", _("left out"), "skipped")
    assert "left out" not in done.stdout and "line 3" not in done.stdout and "⟦" in done.stdout
