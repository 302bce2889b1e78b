"""Message catalogues: every text that people read, gathered into templates, and translations brought up to date with them.

    python -m course.words           write the templates (.pot), merge them into each language's .po, and compile its .mo
    python -m course.words --check   write nothing; exit 1 and say what is not up to date or what a translation has wrong

`offload_lab.pot` has what programs say, `lesson_NN.pot` a lesson and its questions, `pages.pot` what lies
beside the lessons. `quizzes/keys/locale/keys.pot` has the graded questions; it lies with the keys, because a template that
ships would give them away. Needs Babel (extra `test`).
"""

from __future__ import annotations

import argparse
import ast
import gettext
import io
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from babel.core import Locale, UnknownLocaleError
from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import write_mo
from babel.messages.pofile import PoFileError, read_po, write_po

from course import glossary
from course.build import PAGES, cells_of
from course.lesson_words import messages as cell_messages
from quizzes.certificates import verdicts
from quizzes.exercises.exercise import BANK as EXERCISES
from quizzes.exercises.exercise import KEYS as HIDDEN
from quizzes.exercises.exercise import exercises, with_keys
from quizzes.fields import complaint, plural_complaint
from quizzes.languages import DOMAIN, LOCALES
from quizzes.languages import KEYS as KEY_LOCALES
from quizzes.question import BANK, KEYS, every, misconceptions
from quizzes.translated import messages as question_messages

ROOT = Path(__file__).parent.parent
PLURALS = {"fr": (2, "(n > 1)"), "ko": (1, "0")}
"""Forms and rule, as gettext's manual has them. Babel's French has a third, for whole millions, that nothing here says."""
_CALLS = {"_": 1, "N_": 1, "_n": 2}
Text = str | tuple[str, str]
Found = Iterator[tuple[Text, str]]


def in_code(path: Path) -> Iterator[Text]:
    """The texts that a module marks with `_`, `N_` and `_n`. Raises ValueError for a text that is put together at run time."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, OSError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    for node in ast.walk(tree):
        name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
        if name not in _CALLS:
            continue
        texts = node.args[: _CALLS[name]]
        if any(isinstance(text, ast.JoinedStr | ast.BinOp) for text in texts):
            raise ValueError(f"{path.name}, line {node.lineno}: {name}() of a text that is put together cannot be translated")
        held = [text.value for text in texts if isinstance(text, ast.Constant) and isinstance(text.value, str)]
        if len(held) == len(texts) and held[0]:
            yield (held[0], held[1]) if len(held) == 2 else held[0]


def interface() -> Found:
    """What programs say: modules, the help of commands, and the misconceptions, which belong to no one lesson."""
    modules = [*(ROOT / "quizzes").rglob("*.py"), *(ROOT / "course").glob("*.py"), *(ROOT / "course" / "checks").glob("*.py")]
    for path in sorted(path for path in modules if KEYS not in path.parents):
        for text in in_code(path):
            yield text, path.relative_to(ROOT).as_posix()
    from quizzes.cli_words import helps

    for text in helps():
        yield text, "offload-quiz --help"
    for entry in verdicts.DATA["verdicts"].values():
        for text in (entry["heading"], entry["meaning"], entry["advice"]):
            yield text, "quizzes/certificates/verdicts.json"
    yield verdicts.PICTURE, "quizzes/certificates/verdicts.json"
    for idea in misconceptions().values():
        for text in (idea["idea"], idea["reread"]):
            yield text, "quizzes/bank/misconceptions.yaml"


def lesson(number: str) -> Found:
    """A lesson's cells, its questions and its exercises."""
    for path in sorted((ROOT / "course" / "src").glob(f"{number}_*.py")):
        yield from _cells(path)
    for path, bank in every(BANK).items():
        if bank.lesson == number:
            yield bank.title, path.relative_to(ROOT).as_posix()
            for question in bank.questions:
                for text in question_messages(question):
                    yield text, f"{path.relative_to(ROOT).as_posix()}:{question.id}"
    for exercise in exercises():
        if exercise.lesson == number:
            where = EXERCISES.relative_to(ROOT).as_posix()
            for text in (exercise.title, exercise.contract, *(case.hint for case in exercise.cases)):
                yield text, f"{where}:{exercise.id}"


def _cells(path: Path) -> Found:
    for cell in cells_of(path):
        for text in (*cell_messages(cell.cell_type, cell.source), *filter(None, [cell.get("typed")])):
            yield text, f"{path.relative_to(ROOT).as_posix()}:{cell.metadata.get('id', '')}"


def pages() -> Found:
    """What lies beside the lessons."""
    for path in sorted((ROOT / "course" / "src").glob("[a-z]*.py")):
        yield from _cells(path)
    for text in glossary.texts(glossary.terms()):
        yield text, "course/glossary.yaml"


def graded() -> Found:
    """The graded questions and the hints and ideas of hidden cases; none where the keys are not installed."""
    for path, bank in every(KEYS).items():
        yield bank.title, path.name
        for question in bank.questions:
            for text in question_messages(question):
                yield text, f"{path.name}:{question.id}"
    for exercise in with_keys() if HIDDEN.is_dir() else ():
        for case in exercise.hidden:
            yield case.hint, exercise.id
            for trap in filter(lambda trap: trap.idea, case.traps):
                yield trap.idea, exercise.id


def templates() -> dict[Path, Catalog]:
    """Every template that there should be, by the path of its file."""
    numbers = sorted({path.name[:2] for folder in (BANK, ROOT / "course" / "src") for path in folder.glob("[0-9][0-9]_*")})
    made = {LOCALES / f"{DOMAIN}.pot": _catalog(interface())}
    made |= {LOCALES / f"lesson_{number}.pot": _catalog(lesson(number)) for number in numbers}
    made[LOCALES / f"{PAGES}.pot"] = _catalog(pages())
    return made | ({KEY_LOCALES / "keys.pot": _catalog(graded())} if every(KEYS) else {})


def _catalog(found: Iterable[tuple[Text, str]]) -> Catalog:
    # A date of today would change every file on every day.
    when = datetime(2026, 1, 1, tzinfo=UTC)
    catalog = Catalog(project="offload-lab", version="0", creation_date=when, revision_date=when, fuzzy=False)
    for text, where in found:
        message = catalog.add(text, locations=[(where, 0)])
        message.flags.clear()  # Babel takes "50 % of" for a place
        message.locations = sorted(set(message.locations))
    return catalog


def texts(catalog: Catalog) -> set[Text]:
    """The messages of a catalogue, without its header."""
    return {message.id for message in catalog if message.id}


def read(path: Path) -> Catalog:
    """A .po or .pot file. Raises ValueError naming the file."""
    try:
        with path.open("rb") as file:
            return read_po(file, abort_invalid=True)
    except (PoFileError, ValueError, LookupError, OSError, UnknownLocaleError) as error:
        raise ValueError(f"{path} cannot be read as a catalogue: {error}") from None


def complaints(path: Path, catalog: Catalog) -> list[str]:
    """What is wrong with translations, a line each; a fuzzy one is not used, and not looked at."""
    rule = gettext.c2py(catalog.plural_expr)
    found = []
    for message in catalog:
        said = _complaint(message, rule)
        if said:
            found.append(f"{path}: {(message.id[0] if isinstance(message.id, tuple) else message.id)[:60]!r}: {said}")
    return found


def _complaint(message: Message, rule: Callable[[int], int]) -> str:
    if not message.id or message.fuzzy or not message.string:
        return ""
    if isinstance(message.id, str):
        return complaint(message.id, str(message.string))
    forms = [message.string] if isinstance(message.string, str) else list(message.string)
    return plural_complaint(*message.id, forms, rule) if any(forms) else ""


def _fitting(catalog: Catalog) -> Catalog:
    """A copy without the translations that do not fit: no reader meets one, and none is looked at at run time."""
    rule, kept = gettext.c2py(catalog.plural_expr), Catalog(locale=catalog.locale, fuzzy=False)
    kept._num_plurals, kept._plural_expr = catalog.num_plurals, catalog.plural_expr
    for message in catalog:
        if message.id and message.string and not message.fuzzy and not _complaint(message, rule):
            kept.add(message.id, message.string)
    return kept


def written(catalog: Catalog) -> bytes:
    """A catalogue as its file has it."""
    file = io.BytesIO()
    write_po(file, catalog, width=100, include_lineno=False, ignore_obsolete=False)
    return file.getvalue()


def translations(template: Path) -> list[Path]:
    """The .po files of a template, one a language that was begun."""
    return sorted(template.parent.glob(f"*/LC_MESSAGES/{template.stem}.po"))


def begin(language: str) -> list[Path]:
    """Make the empty .po files of a language. Raises ValueError for what is no language."""
    try:
        locale = Locale.parse(language)
    except (ValueError, UnknownLocaleError) as error:
        raise ValueError(f"{language!r} is not a language that Babel knows: {error}") from None
    made = []
    for path, template in templates().items():
        target = path.parent / language / "LC_MESSAGES" / f"{path.stem}.po"
        if not target.exists():
            catalog = Catalog(locale=locale, project="offload-lab", fuzzy=False)
            if locale.language in PLURALS:
                catalog._num_plurals, catalog._plural_expr = PLURALS[locale.language]
            catalog.update(template)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(written(catalog))
            made.append(target)
    return made


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m course.words", description="Bring the message catalogues up to date.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if something is not up to date or wrong")
    parser.add_argument("--begin", metavar="LANGUAGE", help="begin a translation, for instance fr or ko")
    options = parser.parse_args(arguments)
    try:
        if options.begin:
            for path in begin(options.begin):
                print(f"begun {path}")
        wrong = _update(options.check)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def _update(check: bool) -> list[str]:
    wrong = []
    planned = templates()
    for path, template in planned.items():
        if not path.exists() or texts(read(path)) != texts(template):
            if check:
                wrong.append(f"{path.name} is not up to date. Run make words.")
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(written(template))
                print(f"written {path.name}: {len(texts(template))} texts")
        for target in translations(path):
            wrong += _bring(target, template, check)
    for folder in (LOCALES, KEY_LOCALES):
        wrong += [f"{path} has no source any more. Delete it." for path in folder.glob("*.pot") if path not in planned]
    return wrong


def _bring(target: Path, template: Catalog, check: bool) -> list[str]:
    """Merge a template into one language's file and compile it; what is wrong with it."""
    catalog = read(target)
    before = target.read_bytes()
    catalog.update(template, update_header_comment=False)
    found = complaints(target, catalog)
    used = io.BytesIO()
    write_mo(used, _fitting(catalog), use_fuzzy=False)
    compiled = target.with_suffix(".mo")
    held = compiled.read_bytes() if compiled.exists() else b""
    if check:
        return found + ([f"{target} and its .mo are not up to date. Run make words."] if held != used.getvalue() else [])
    if written(catalog) != before:
        target.write_bytes(written(catalog))
    if held != used.getvalue():
        compiled.write_bytes(used.getvalue())
    done = sum(bool(message.string) and not message.fuzzy for message in catalog if message.id)
    print(f"{target.parent.parent.name}, {target.stem}: {done} of {len(texts(template))} texts translated")
    return found


if __name__ == "__main__":
    sys.exit(main())
