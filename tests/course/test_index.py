"""The landing notebook: its lessons are those that there are, its links lead somewhere, its picture says what it shows."""

import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from course import build, cover
from offload_lab.state_bytes import readable
from quizzes.languages import forget
from tests import pseudo as plain_letters

(INDEX,) = (source for source in build.targets() if source.name == "index.py")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)]*)\)")


def prose(text):
    notebook = nbformat.reads(text, as_version=4)
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


@pytest.fixture(scope="module")
def landing():
    return prose(build.build(INDEX))


def rows(said):
    return [re.split(r"(?<!\\) \| ", row.strip("| ")) for row in said.splitlines() if row.startswith("| [")]


def test_every_lesson_has_a_row_and_nothing_else_has(landing):
    linked = [LINK.search(row[0])[2] for row in rows(landing)]
    assert linked == [f"{source.stem}.ipynb" for source in build.lessons()]
    assert f"{len(linked)} lessons" in landing


def test_every_head_is_understood():
    """A writer of a lesson learns here that its head does not say what the landing notebook looks for."""
    for head in build.heads():
        assert head.minutes and head.gist and head.asks, f"{head.file}: {head}"
        assert all(number < head.number for number in head.needs)


def test_what_a_row_says_stands_in_its_lesson(landing):
    for row, source in zip(rows(landing), build.lessons(), strict=True):
        text = " ".join(prose(build.build(source)).split())
        assert LINK.search(row[0])[1].partition(" · ")[2] in text
        assert row[1].removeprefix("You ").rstrip(".") in text
        for number in filter(str.isdigit, re.split(r"[, ]+", row[2])):
            assert re.search(rf"\b[Ll]essons? (\d+(,| and|, and) )*{number}\b", text), (source.name, number)


def test_its_links_lead_to_files_and_headings(landing):
    files = {target.name for target in build.targets().values()}
    headings = {title.replace(" ", "-") for title in re.findall(r"^#+ (.+)$", landing, re.M)}
    for text, target in LINK.findall(landing):
        file, _, anchor = target.partition("#")
        assert file in files or (not file and anchor in headings), (text, target)


def test_a_new_lesson_appears_by_itself(tmp_path):
    (tmp_path / "src").mkdir()
    for source in (INDEX, build.lessons()[0]):
        shutil.copy(source, tmp_path / "src")
    new = '# %% [markdown] id="title"\n# # 77 · A | new one\n#\n# You do it twice. It takes about fifty minutes.\n#\n'
    (tmp_path / "src" / "77_new.py").write_text(new + "# As in lessons 0 and 78.\n")
    _, row = rows(prose(build.build(tmp_path / "src" / "index.py")))
    assert row[0] == "[77 · A \\| new one](77_new.ipynb)"
    assert row[1:4] == ["You do it twice.", "0", "50 minutes"]


def test_a_lesson_without_a_title_is_named(tmp_path):
    (tmp_path / "src").mkdir()
    shutil.copy(INDEX, tmp_path / "src")
    (tmp_path / "src" / "03_x.py").write_text('# %% [markdown] id="title"\n# # Untitled\n')
    with pytest.raises(build.LessonError, match=r"03_x\.py: its first cell does not begin"):
        build.build(tmp_path / "src" / "index.py")


def test_the_picture_is_as_it_is_drawn_and_asks_nobody():
    assert cover.FILE.read_text(encoding="utf-8") == cover.svg(), "run python -m course.cover"
    root = ElementTree.fromstring(cover.svg())
    assert root.attrib["role"] == "img" and root.find("{*}title").text and root.find("{*}desc").text
    drawn = cover.svg().replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "http" not in drawn and "<script" not in drawn


def test_the_alternative_text_has_every_figure_of_the_picture(landing):
    (alternative, file) = re.search(r"!\[([^\]]*)\]\(([^)]*)\)", landing).groups()
    assert (INDEX.parent.parent / "en" / file).resolve() == cover.FILE.resolve()
    for _name, kinds in cover.rows():
        for size in (sum(kinds.values()), *kinds.values()):
            assert readable(size) in alternative
    assert readable(cover.CARD) in alternative and "4 billion" in alternative and cover.PARAMETERS == 4e9


def test_nothing_of_a_page_is_left_out(tmp_path, monkeypatch):
    """In another language; what stays is code, the names of files, and how a table is ruled."""
    monkeypatch.setenv("OFFLOAD_LAB_LOCALES", str(plain_letters.make(tmp_path)))
    forget()
    for source in (INDEX, INDEX.with_name("glossary.py")):
        text, missing, _count = build.built(source, plain_letters.LANGUAGE)
        assert missing == 0
        seen = re.sub(r"\]\([^)]*\)", " ", prose(text))
        assert plain_letters.plain(seen) == []
        assert len(re.findall(r"^\|", seen, re.M)) in (0, 2 + len(build.lessons()))


def test_it_runs_beside_the_lessons_and_says_where_to_begin(tmp_path, monkeypatch):
    folder = tmp_path / "cours été"
    folder.mkdir()
    for source in build.lessons()[:2]:
        (folder / f"{source.stem}.ipynb").write_text(build.build(source), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(Path(build.__file__).parents[1]))
    monkeypatch.setenv("OFFLOAD_LAB_PROGRESS", str(tmp_path / "none.json"))
    notebook = nbformat.reads(build.build(INDEX), as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    (data,) = [output["data"] for cell in notebook.cells for output in cell.get("outputs", [])]
    assert "Begin here: lesson 0 · Is your machine ready?" in data["text/plain"]
    assert '<a href="00_is_your_machine_ready.ipynb">' in data["text/html"]
    assert json.dumps(data) and sorted(path.suffix for path in folder.iterdir()) == [".ipynb", ".ipynb"]
