"""The lessons are what their sources say, and building them again changes nothing."""

import os
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest

from course import build

(LESSON_1,) = (source for source in build.targets() if source.name.startswith("01_"))


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """The course as git has it, for a reader may have run a lesson where it lies; as it lies where git is not."""
    folder = tmp_path_factory.mktemp("committed")
    course = Path(build.__file__).parent
    listed = subprocess.run(["git", "ls-files", "-z", "src", "en", "instructor"], cwd=course, capture_output=True)
    if listed.returncode:
        return course
    export = ["git", "checkout-index", f"--prefix={folder}/", "-z", "--stdin"]
    subprocess.run(export, cwd=course, input=listed.stdout, check=True)
    return folder / "course"


def test_there_is_a_lesson_and_all_are_up_to_date(committed, capsys):
    assert build.targets(committed)
    assert build.main(["--check"], root=committed) == 0, capsys.readouterr().err


@pytest.fixture
def copy(tmp_path):
    (tmp_path / "src").mkdir()
    shutil.copy(LESSON_1, tmp_path / "src")
    return tmp_path


def test_building_again_changes_no_byte(copy, capsys):
    assert build.main([], root=copy) == 0
    (target,) = build.targets(copy).values()
    first = target.read_bytes()
    assert build.main([], root=copy) == 0 and target.read_bytes() == first
    assert capsys.readouterr().out.count("built") == 1


def test_a_changed_source_makes_its_notebook_stale(copy, capsys):
    build.main([], root=copy)
    (source,) = build.targets(copy)
    source.write_text(source.read_text().replace("## Recall", "## Recall again"))
    assert build.main(["--check"], root=copy) == 1
    assert source.stem in capsys.readouterr().err


def test_times_of_files_decide_nothing(copy, capsys):
    build.main([], root=copy)
    (source, target), *_ = build.targets(copy).items()
    for older, newer in ((source, target), (target, source)):
        os.utime(older, (1, 1))
        os.utime(newer, (2, 2))
        assert build.main(["--check"], root=copy) == 0
        assert build.main([], root=copy) == 0 and target.stat().st_mtime <= 2


def test_line_ends_of_another_system_are_stale(copy, capsys):
    build.main([], root=copy)
    (target,) = build.targets(copy).values()
    target.write_bytes(target.read_bytes().replace(b"\n", b"\r\n"))
    assert build.main(["--check"], root=copy) == 1
    assert target.name in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--check"]])
def test_a_notebook_without_a_source_is_named(arguments, copy, capsys):
    build.main([], root=copy)
    (copy / "en" / "01_old_name.ipynb").write_text("{}")
    assert build.main(arguments, root=copy) == 1
    assert "01_old_name.ipynb has no source" in capsys.readouterr().err


def test_a_source_that_cannot_be_built_stops_the_build_and_says_where(copy, capsys):
    (source,) = build.targets(copy)
    source.write_text(source.read_text().replace('id="recall"', 'id="title"'))
    assert build.main([], root=copy) == 2
    assert f"{source.name}, cell 3" in capsys.readouterr().err and not (copy / "en").exists()
    source.write_bytes(b"# %% [markdown]\n# \xff")
    assert build.main([], root=copy) == 2
    assert f"{source.name} cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('id="recall"', "", r"cell 3 \(## Recall\): give it an id"),
        ('id="recall"', 'id="title"', r'cell 3 \(## Recall\): id="title" is taken'),
        ('id="recall"', 'id="Re call"', r"cell 3 .*give it an id"),
    ],
)
def test_a_cell_without_an_id_of_its_own_is_named(copy, old, new, message):
    (source,) = build.targets(copy)
    text = source.read_text()
    assert old in text
    source.write_text(text.replace(old, new))
    with pytest.raises(build.LessonError, match=message):
        build.build(source)


def test_notebooks_are_clean_and_valid(committed):
    for target in build.targets(committed).values():
        notebook = nbformat.read(target, as_version=4)
        nbformat.validate(notebook)
        assert set(notebook.metadata) == {"kernelspec", "language_info"}
        assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in notebook.cells)


def test_a_notebook_that_was_run_is_not_overwritten(copy, capsys):
    build.main([], root=copy)
    ((source, target),) = build.targets(copy).items()
    notebook = nbformat.read(target, as_version=4)
    notebook.cells[1].outputs = [nbformat.v4.new_output("stream", text="12 bytes")]
    nbformat.write(notebook, target)
    worked = target.read_bytes()
    assert build.main([], root=copy) == 1 and target.read_bytes() == worked
    assert f"{target.name} was run and holds outputs" in capsys.readouterr().err
    assert build.main(["--force"], root=copy) == 0 and target.read_text(encoding="utf-8") == build.build(source)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"cells": [1]}', b'{"cells": 1}', b"\xff"])
def test_a_broken_notebook_is_built_anew(content, copy):
    build.main([], root=copy)
    ((source, target),) = build.targets(copy).items()
    target.write_bytes(content)
    assert build.main([], root=copy) == 0 and target.read_text(encoding="utf-8") == build.build(source)
