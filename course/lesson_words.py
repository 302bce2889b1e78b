"""A lesson's cells as messages of a catalogue, and in another language: paragraphs, and what code says or remarks. Pure.

Of code only strings with a space in them and comments are translated. The places of an f-string are the code in them, and a
translation has to have the same ones, so that no translation brings code of its own.
"""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Callable
from dataclasses import dataclass

_BETWEEN = re.compile(r"(\n[ \t]*\n+)")
_LETTERS = re.compile(r"[^\W\d_]{2}")
_PLACE = re.compile(r"\{[a-z_]+\}")
_WIDTH = 110


@dataclass(frozen=True)
class Piece:
    """A text in the code of a cell: where it is (character offsets), the message, and how a translation is written there."""

    start: int
    end: int
    text: str
    write: Callable[[str], str]


def messages(kind: str, source: str) -> list[str]:
    """The messages of a cell ("markdown" or "code"), in order."""
    if kind == "markdown":
        return [block for block in _BETWEEN.split(source) if _is_text(block)]
    return [piece.text for piece in _pieces(source)]


def translated(kind: str, source: str, say: Callable[[str], str]) -> str:
    """A cell with every message replaced by what `say` makes of it; code that would not be code any more stays as it was."""
    if kind == "markdown":
        return "".join(say(block) if _is_text(block) else block for block in _BETWEEN.split(source))
    found = source
    for piece in reversed(_pieces(source)):
        told = say(piece.text)
        if told != piece.text:
            found = found[: piece.start] + piece.write(told) + found[piece.end :]
    try:
        same = _bones(found) == _bones(source)
    except (SyntaxError, ValueError):
        return source
    return found if same else source


def _is_text(block: str) -> bool:
    """Whether a paragraph has words, beside the places that the build fills."""
    return bool(_LETTERS.search(_PLACE.sub("", block)))


def _bones(code: str) -> str:
    """The code without the text of its strings: names, calls, and the expressions in f-strings."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            node.values = sorted((part for part in node.values if isinstance(part, ast.FormattedValue)), key=ast.dump)
            # An expression may stand in a sentence twice in one language and once in another.
            node.values = [
                part for n, part in enumerate(node.values) if not n or ast.dump(part) != ast.dump(node.values[n - 1])
            ]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def _pieces(code: str) -> list[Piece]:
    try:
        tree = ast.parse(code)
    except SyntaxError:  # a magic: such a cell is code alone
        return []
    lines = code.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def place(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)} - {
        id(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
    }
    nested = {id(part) for node in ast.walk(tree) if isinstance(node, ast.FormattedValue) for part in ast.walk(node)}
    found = []
    for node in ast.walk(tree):
        if id(node) in inner or id(node) in nested or not hasattr(node, "end_col_offset"):
            continue
        plain = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if not plain and not isinstance(node, ast.JoinedStr):
            continue
        text = node.value if plain else _message(node)
        if " " in text.strip() and _LETTERS.search(re.sub(r"\{[^{}]*\}", "", text)):
            span = place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset)
            found.append(Piece(*span, text, _quoted if plain else _formatted))
    return sorted([*found, *_comments(code, starts)], key=lambda piece: piece.start)


def _message(node: ast.JoinedStr) -> str:
    """An f-string as a message: its text, with `{expression}` for each place."""
    said = ""
    for part in node.values:
        if isinstance(part, ast.Constant):
            said += part.value.replace("{", "{{").replace("}", "}}")
        elif isinstance(part, ast.FormattedValue):
            turned = f"!{chr(part.conversion)}" if part.conversion != -1 else ""
            spec = _message(part.format_spec) if isinstance(part.format_spec, ast.JoinedStr) else ""
            said += "{" + ast.unparse(part.value) + turned + (f":{spec}" if spec else "") + "}"
    return said


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _formatted(text: str) -> str:
    parts = re.split(r"(\{\{|\}\}|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})", text)
    inside = "".join(parts[1::2])
    quote = '"' if '"' not in inside else "'" if "'" not in inside else '"""'
    for number in range(0, len(parts), 2):
        parts[number] = parts[number].replace("\\", "\\\\").replace(quote[0], "\\" + quote[0]).replace("\n", "\\n")
    return "f" + quote + "".join(parts) + quote


def _comments(code: str, starts: list[int]) -> list[Piece]:
    """Runs of lines that are comments alone, at one depth: a paragraph each."""
    runs: list[tuple[int, int, str, list[str]]] = []  # start, end, indent, lines
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type != tokenize.COMMENT:
            continue
        indent = token.line[: token.start[1]]
        if indent.strip():
            continue  # behind code: a remark on one line that has no room for another language
        start, end = starts[token.start[0] - 1], starts[token.end[0] - 1] + token.end[1]
        text = token.string[1:].strip()
        if runs and code[runs[-1][1] : start] == "\n" and runs[-1][2] == indent:
            runs[-1] = (runs[-1][0], end, indent, [*runs[-1][3], text])
        else:
            runs.append((start, end, indent, [text]))
    pieces = []
    for start, end, indent, lines in runs:
        text = " ".join(line for line in lines if line)
        if " " in text and _LETTERS.search(text):
            pieces.append(Piece(start, end, text, lambda said, indent=indent: _remark(said, indent)))
    return pieces


def _remark(said: str, indent: str) -> str:
    lines = textwrap.wrap(" ".join(said.split()), _WIDTH - len(indent), break_long_words=False) or [""]
    return "\n".join(f"{indent}# {line}" for line in lines)
