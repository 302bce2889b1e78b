"""The catalogues of the course: up to date, without a key; a lesson in another language; what lessons' helpers say."""

import ast
import json
import re
import shutil

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("babel", reason="Babel comes with the extra test")

from babel.messages.catalog import Catalog

from course import build, lesson_words, words
from course.contract import Case, Contract
from course.prediction import Prediction
from quizzes.languages import KEYS, LOCALES, forget
from quizzes.say import language, pseudo
from tests import pseudo as plain_letters

SOURCES = sorted(build.targets())
LESSONS = build.lessons()


@pytest.fixture(scope="module")
def templates():
    return words.templates()


def test_the_templates_are_up_to_date(templates):
    for path, template in templates.items():
        assert path.exists(), f"{path.name} is missing. Run make words."
        held, wanted = words.texts(words.read(path)), words.texts(template)
        assert held == wanted, f"{path.name} is not up to date ({list(held ^ wanted)[:3]}). Run make words."
    assert {*LOCALES.glob("*.pot"), *KEYS.glob("*.pot")} == set(templates)


def test_no_catalogue_that_ships_has_a_text_of_the_key(templates):
    """As the canary looks, but into the messages: a .pot breaks its lines in the middle of a text."""
    from quizzes.canary import private, search
    from quizzes.question import BANK, every

    bank = " ".join(" ".join(path.read_text(encoding="utf-8") for path in BANK.glob("*.yaml")).split())
    secrets = private([question for held in every(words.KEYS).values() for question in held.questions], bank)
    assert len(secrets) > 100
    files = [path for path in LOCALES.rglob("*") if path.suffix in {".pot", ".po"}]
    assert len(files) >= len(templates) - 1
    for path in files:
        catalog = words.read(path)
        told = "\n".join(str(part) for message in catalog for part in (message.id, message.string))
        assert search(path.name, told.encode(), secrets) == []
    keys = words.texts(words.read(KEYS / "keys.pot"))
    assert search("keys", "\n".join(map(str, keys)).encode(), secrets), "this test would see them"


def test_a_text_that_is_put_together_is_refused(tmp_path):
    path = tmp_path / "module.py"
    for code in ('_(f"{n} hints")', '_("one " + two)', '_n("a", f"{b}", n)'):
        path.write_text(code)
        with pytest.raises(ValueError, match=r"module\.py, line 1"):
            list(words.in_code(path))


@pytest.mark.parametrize("source", LESSONS, ids=lambda path: path.stem[:2])
def test_a_lesson_without_translations_is_the_same_lesson(source, monkeypatch, tmp_path):
    monkeypatch.setenv("OFFLOAD_LAB_LOCALES", str(tmp_path))
    english = nbformat.reads(build.build(source), as_version=4)
    text, missing, count = build.built(source, "fr")
    french = nbformat.reads(text, as_version=4)
    assert missing == count > 20
    assert [cell for cell in french.cells if cell.id != "language"] == english.cells
    (code,) = [cell.source for cell in french.cells if cell.id == "language"]
    assert code.endswith("speak('fr')")


@pytest.mark.parametrize("source", LESSONS, ids=lambda path: path.stem[:2])
def test_nothing_of_a_lesson_is_left_out(source, monkeypatch, tmp_path):
    monkeypatch.setenv("OFFLOAD_LAB_LOCALES", str(plain_letters.make(tmp_path)))
    forget()
    text, missing, _count = build.built(source, plain_letters.LANGUAGE)
    assert missing == 0
    notebook, english = nbformat.reads(text, as_version=4), nbformat.reads(build.build(source), as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            # A formula, a link and a picture's file are no words.
            seen = re.sub(r"\$[^$]*\$|\]\([^)]*\)|\{[^{}]*\}", " ", cell.source)
            assert plain_letters.plain(seen) == [], cell.id
        else:
            tree = ast.parse(cell.source)
            # What stands between the braces of an f-string is code: a head of a column, padded.
            code = {id(part) for node in ast.walk(tree) if isinstance(node, ast.FormattedValue) for part in ast.walk(node)}
            said = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in code]
            left = [text for text in said if isinstance(text, str) and " " in text.strip() and plain_letters.plain(text)]
            assert left == [], cell.id
    bare = {cell.id: lesson_words._bones(cell.source) for cell in notebook.cells if cell.cell_type == "code"}
    assert all(bare[cell.id] == lesson_words._bones(cell.source) for cell in english.cells if cell.cell_type == "code")


CODE = 'total = 3\nname = "short"\n# A remark on\n# two lines.\nprint(f"{total:>4} steps of {name!r}", end="\\n\\n")\n'


@pytest.mark.parametrize(
    "told",
    ["{name!r}: {total:>4}", "with \" and ' {total:>4} {name!r}", "brace {{ }} {total:>4} {name!r}", "\\ {total:>4}\n{name!r}"],
)
def test_an_f_string_is_turned_round(told, capsys):
    found = lesson_words.translated("code", CODE, lambda text: told if "steps" in text else text)
    exec(compile(found, "cell", "exec"), {})
    assert capsys.readouterr().out == told.format(total=3, name="short") + "\n\n"


@pytest.mark.parametrize(
    "told", ["{__import__('os')}", "{total:>4} {name!r} {total + 1}", "{total:>4", '" + str(1) + "', "\n# {x}\nraise Exit"]
)
def test_a_translation_brings_no_code_of_its_own(told):
    found = lesson_words.translated("code", CODE, lambda _text: told)
    assert lesson_words._bones(found) == lesson_words._bones(CODE)


@given(st.text(max_size=50))
def test_no_translation_makes_other_code(told):
    found = lesson_words.translated("code", CODE, lambda _text: told)
    assert lesson_words._bones(found) == lesson_words._bones(CODE)


@given(st.text(alphabet="ab \n\t#`-", max_size=80))
def test_markdown_is_put_together_again_as_it_was(source):
    assert lesson_words.translated("markdown", source, str) == source


def test_a_language_is_built_and_its_share_said(tmp_path, monkeypatch, capsys):
    root = tmp_path / "cours à l'été"
    shutil.copytree(build.HERE / "src", root / "src")
    monkeypatch.setenv("OFFLOAD_LAB_LOCALES", str(root / "locale"))
    source = root / "src" / LESSONS[0].name
    first = next(text for text, where in words.lesson(source.name[:2]) if "course/src" in where)
    from tests.quizzes.test_words import mo

    path = root / "locale" / "fr" / "LC_MESSAGES" / f"lesson_{source.name[:2]}.mo"
    path.parent.mkdir(parents=True)
    path.write_bytes(mo({first: "# Le titre"}))
    forget()
    assert build.main(["--language", "fr_FR.UTF-8"], root) == 0
    said = capsys.readouterr().out
    assert f"{source.stem}.ipynb: " in said and "are not in fr and stay English" in said and "(100%)" in said
    cells = json.loads((root / "fr" / f"{source.stem}.ipynb").read_text(encoding="utf-8"))["cells"]
    assert cells[0]["source"][0].strip() == "# Le titre" and not (root / "en").exists()
    assert build.main(["--language", "fr", "--check"], root) == 0
    assert build.main(["--language", "klingon"], root) == 2 and "none of" in capsys.readouterr().err


def test_a_translation_is_begun_merged_compiled_and_checked(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(words, "LOCALES", tmp_path)
    monkeypatch.setattr(words, "KEY_LOCALES", tmp_path / "keys")
    monkeypatch.setattr(words, "KEY_LOCALES", tmp_path / "keys")
    monkeypatch.setattr(words, "templates", lambda: {tmp_path / "offload_lab.pot": template})
    template = Catalog(fuzzy=False)
    template.add("Not {name}.")
    template.add(("{count} hint", "{count} hints"))
    assert words.main(["--begin", "fr"]) == 0
    path = tmp_path / "fr" / "LC_MESSAGES" / "offload_lab.po"
    text = path.read_text(encoding="utf-8")
    assert "plural=(n > 1)" in text
    path.write_text(
        text.replace('msgid "Not {name}."\nmsgstr ""', 'msgid "Not {name}."\nmsgstr "Pas {nom}."'), encoding="utf-8"
    )
    capsys.readouterr()
    assert words.main([]) == 1
    assert "{name} is missing; {nom} is not in the English" in capsys.readouterr().err
    path.write_text(path.read_text(encoding="utf-8").replace("{nom}", "{name}"), encoding="utf-8")
    assert words.main([]) == 0 and words.main(["--check"]) == 0
    monkeypatch.setenv("OFFLOAD_LAB_LOCALES", str(tmp_path))
    forget()
    from quizzes.say import _

    with language("fr"):
        assert _("Not {name}.").format(name=1) == "Pas 1."
    template.add("A new one.")
    assert words.main(["--check"]) == 1
    assert words.main([]) == 0 and "A new one." in path.read_text(encoding="utf-8")
    path.write_text("msgid broken")
    assert words.main([]) == 2 and str(path) in capsys.readouterr().err


def wrong(number):
    return number + 1


def test_what_lessons_helpers_say(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("OFFLOAD_LAB_LOCALES", str(plain_letters.make(tmp_path)))
    forget()
    with language(plain_letters.LANGUAGE):
        contract = Contract("wrong", [Case((1,), 5, "⟦⟧"), Case((2,), ValueError, "⟦⟧")])
        contract.check(wrong)
        contract.check(lambda number: None)
        contract.check(lambda number: 1 / 0)
        guess = Prediction("words-test", "⟦⟧")
        guess.show()
        for value in ("12 GB", "x", -1, None, "1e99"):
            guess.value = value
        guess.compare(3)
        from course import machine

        print(machine.inventory().replace(str(tmp_path), ""))
        said = capsys.readouterr().out
    words_of_python = {
        "wrong",
        "ValueError",
        "ZeroDivisionError",
        "division",
        "by",
        "zero",
        "prediction",
        "value",
        "lambda",
        "cpu",
    }
    assert plain_letters.plain(said, words_of_python) == []
    assert pseudo("x") in said or "⟦" in said
