"""The lessons are what their sources say, and building them again changes nothing."""

import shutil

import nbformat
import pytest

from course import build

SOURCES = sorted(build.targets())


def test_there_is_a_lesson_and_all_are_up_to_date(capsys):
    assert SOURCES
    assert build.main(["--check"]) == 0, capsys.readouterr().err


@pytest.fixture
def copy(tmp_path):
    (tmp_path / "src").mkdir()
    shutil.copy(SOURCES[0], tmp_path / "src")
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


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_is_clean_and_valid(source):
    notebook = nbformat.read(build.targets()[source], as_version=4)
    nbformat.validate(notebook)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in notebook.cells)
