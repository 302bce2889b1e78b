"""`python -m course.site` on a course of two pages: what it writes, what it refuses, and that it writes all or nothing."""

import re
import shutil

import pytest

from course import build, links, published, running, site, writing
from quizzes import languages

INDEX = """# %% [markdown] id="title"
# # Offload Lab
#
# Go to [lesson 3](03_tiny.ipynb#The-end), the [glossary](glossary.ipynb) or [elsewhere](https://a.example/).
#
# ![A picture in words](../pictures/cover.svg)
"""
TINY = """# %% [markdown] id="title"
# # 3 · A tiny lesson
#
# In this lesson you look around. It takes about five minutes; running all cells takes about a second.

# %% id="look"
import os, pathlib, sys
from course.curves import Curves
from course.prediction import Prediction
from quizzes.quiz import Quiz
from quizzes.say import spoken

print(os.getcwd(), sorted(os.listdir(".")), os.environ.get("OFFLOAD_LAB_PRICES"), spoken(), sep="|")
print(pathlib.Path.home() / "x", os.environ["OFFLOAD_LAB_PROGRESS"], sys.prefix, file=sys.stderr)
Prediction("03-tiny", "How many <cores> are there?", unit="count").show()

# %% id="quiz"
Quiz("03").show()

# %% id="curves"
Curves("Up", {"a line": [(1, 2.0), (2, 3.0)]}, "x", "y")

# %% [markdown] id="end"
# ## The end
#
# Back to the [start](index.ipynb#Offload-Lab).
"""
GLOSSARY = '# %% [markdown] id="title"\n# # Glossary\n'


def course(folder, tiny=TINY, index=INDEX):
    (folder / "src").mkdir(parents=True)
    for name, text in {"index": index, "03_tiny": tiny, "glossary": GLOSSARY}.items():
        (folder / "src" / f"{name}.py").write_text(text)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("le çours")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OFFLOAD_LAB_PRICES", "of-whoever-runs-it")
        patch.setenv("OFFLOAD_LAB_LANG", "fr")
        patch.setenv("LC_ALL", "fr_FR.UTF-8")
        patch.setenv("LANG", "fr_FR.UTF-8")
        patch.setenv("LANGUAGE", "fr")
        assert site.main(["--to", str(root / "site")], root=course(root / "course")) == 0
    return root / "site"


def test_a_site_is_a_folder_of_pages_and_what_they_refer_to(made):
    names = {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()}
    notebooks = {f"notebooks/{name}.ipynb" for name in ("index", "03_tiny", "glossary")}
    pages = {"index.html", "03_tiny.html", "glossary.html"}
    pictures = {f"pictures/{path.name}" for path in (running.ROOT / "course/pictures").glob("*.svg")}
    assert names == {published.MARK, "site.css"} | pictures | notebooks | pages and "pictures/cover.svg" in pictures
    assert '"outputs": []' in (made / "notebooks/03_tiny.ipynb").read_text()


def test_the_lesson_was_run_and_nothing_of_whoever_ran_it_is_shown(made):
    page = (made / "03_tiny.html").read_text()
    assert "~/course|[&#39;03_tiny.ipynb&#39;]|None|en" in page
    assert "How many &lt;cores&gt; are there?" in page and "q1." in page and "VBox" not in page
    (figure,) = re.findall(r'<img src="data:image/svg\+xml;base64,[^"]*" alt="([^"]*)"', page)[-1:]
    assert figure.startswith("Up\n")
    for own in (str(made.parent), str(running.ROOT), "/tmp/", "belongings-", "of-whoever-runs-it", "This front end"):
        assert own not in page


def test_links_between_notebooks_are_links_between_pages(made):
    assert links.read((made / "index.html").read_text()).led[-4:-1] == [
        "03_tiny.html#The-end",
        "glossary.html",
        "https://a.example/",
    ]
    assert 'src="pictures/cover.svg"' in (made / "index.html").read_text()


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ({"tiny": TINY.replace("Curves(", "1 / 0; Curves(")}, ["03_tiny.ipynb", "cell curves", "ZeroDivisionError"]),
        ({"index": INDEX.replace("03_tiny.ipynb", "04_gone.ipynb")}, ["index.html", "04_gone.html", "not there"]),
        ({"index": INDEX.replace("#The-end", "#Gone")}, ["index.html", "03_tiny.html#Gone", "no id Gone"]),
        ({"index": INDEX.replace("../pictures", "https://a.example")}, ["index.html", "loaded from another host"]),
        ({"index": INDEX.replace("A picture in words", "")}, ["index.html", "alternative text"]),
        ({"tiny": TINY.replace('id="look"', "")}, ["03_tiny.py", "cell 2", "give it an id"]),
    ],
    ids=["cell", "page", "place", "host", "words", "source"],
)
def test_what_is_wrong_is_named_and_nothing_is_written(tmp_path, capsys, broken, told, monkeypatch):
    published.publish({"index.html": b"old"}, tmp_path / "site")
    if "tiny" not in broken:  # seen before anything runs
        monkeypatch.setattr(writing, "run", None)
    assert site.main(["--to", str(tmp_path / "site")], root=course(tmp_path / "course", **broken)) == 1
    said = capsys.readouterr().err
    assert all(part in said for part in told), said
    assert "Nothing was written" in said and (tmp_path / "site/index.html").read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["course", "site"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["--only", "04"], "There is no lesson 04; there are 03."), (["--language", "tlh"], "tlh"), (["--to", "mine"], "mine")],
)
def test_what_cannot_be_asked_is_refused_at_once(tmp_path, capsys, monkeypatch, arguments, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").write_text("mine")
    monkeypatch.setattr(writing, "run", None)
    assert site.main(arguments, root=course(tmp_path / "course")) == 2
    assert told in capsys.readouterr().err
    assert (tmp_path / "mine").read_text() == "mine" and not (tmp_path / "site").exists()


def test_stopping_it_writes_nothing(tmp_path, capsys, monkeypatch):
    def stop(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(writing, "run", stop)
    assert site.main(["--to", str(tmp_path / "site")], root=course(tmp_path / "course")) == 130
    assert "Stopped" in capsys.readouterr().err and not (tmp_path / "site").exists()


def test_a_lesson_that_was_not_run_says_so_and_is_there_to_read(tmp_path, monkeypatch):
    root = course(tmp_path / "course")
    shutil.copy(root / "src/03_tiny.py", root / "src/04_other.py")
    for name, old, new in (("03_tiny", TINY.split("\n\n")[1], ""), ("04_other", "# # 3 ·", "# # 4 ·")):
        path = root / "src" / f"{name}.py"
        path.write_text(path.read_text().replace(old, new))
    asked = []
    monkeypatch.setattr(writing, "run", lambda text, **more: asked.append(more["name"]) or running.Ran(notebook(text), 1.0))
    assert site.main(["--only", "03", "--to", str(tmp_path / "site")], root=root) == 0
    assert asked == ["03_tiny.ipynb"]
    assert "was not run" in (tmp_path / "site/04_other.html").read_text()
    assert "was not run" not in (tmp_path / "site/03_tiny.html").read_text()


def notebook(text):
    import nbformat

    return nbformat.reads(text, as_version=4)


def test_the_frame_speaks_the_language_of_the_course(tmp_path):
    made = writing.pages(site.notebooks("en", course(tmp_path / "course")), languages.PSEUDO, site.change, ())
    assert f'<html lang="{languages.PSEUDO}">' in made["03_tiny.html"]
    for page in made.values():
        frame = re.sub(r'<main id="main">|<section.*</section>|· A tiny lesson', "", page, flags=re.S).partition("<body>")[2]
        words = re.sub(r"⟦[^⟧]*⟧|<(?!nav)[^>]*>", "", frame)
        assert not re.search(r"[A-Za-z]{3}", words.replace("nav aria-label", "")), words


def test_every_page_of_the_course_leads_somewhere_before_it_is_run():
    made = site.files(site.notebooks("en"), "en", (), print)
    assert {f"{target.stem}.html" for target in build.targets().values() if target.parent.name == "en"} <= set(made)
    for name, text in made.items():
        if name.endswith(".html"):
            assert re.search(r"<title>[^<]+</title>", text.decode()) and "http-equiv" not in text.decode()
