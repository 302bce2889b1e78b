"""Does anything of a key show in what ships? Unpacks files recursively and looks for private texts in every encoding. Pure."""

from __future__ import annotations

import base64
import binascii
import bz2
import codecs
import contextlib
import gzip
import html
import io
import json
import lzma
import quopri
import re
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from quizzes.lint import secrets
from quizzes.question import Question
from quizzes.say import _
from quizzes.shape import values_of

SHORTEST = 16  # characters; a shorter text ("16", "the gradients") is in anything by chance
_SHORTEST_NUMBER = 9  # digits; "16000000000" is in nothing by chance
_DEEPEST, _LARGEST = 12, 1 << 28
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{24,}(?:\\?[\r\n]+[A-Za-z0-9+/_-]{4,})*={0,2}")
_BASE32 = re.compile(rb"[A-Z2-7]{24,}={0,6}")
_HEX = re.compile(rb"(?:[0-9a-fA-F]{2}){16,}")
_ESCAPED = re.compile(rb"\\+(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([0-7]{3}))")
_BYTES = re.compile(rb"\d{1,3}(?:[,;\s]{1,8}\d{1,3}){15,}")
_SURROGATES = re.compile(rb"\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]")


class CanaryError(RuntimeError):
    """Something could not be looked into, so that nothing can be said; the message names it."""


@dataclass(frozen=True)
class Leak:
    """`where` is a path through the archives; `secret` names the question, not the text."""

    where: str
    secret: str
    encoding: str

    def __str__(self) -> str:
        return _("{where}: {secret}, as {encoding}").format(where=self.where, secret=self.secret, encoding=self.encoding)


def private(graded: Iterable[Question], public: str = "") -> dict[str, str]:
    """Private texts of graded questions -> what they are. What the open bank (`public`) says too is no secret."""
    found: dict[str, str] = {}
    short: set[str] = set()  # values are looked for whatever their length
    for question in graded:
        for text in secrets(question):
            found[" ".join(text.split())] = _("text of the key of {id}").format(id=question.id)
        for value in values_of(question):
            # With variants there is no value before the draw; its formula is the secret then.
            number = value.formula or (str(value.number()) if not value.open_names() else "")
            if len(number) >= _SHORTEST_NUMBER:
                short.add(number)
                found[number] = _("value of the key of {id}").format(id=question.id)
    return {text: what for text, what in found.items() if (len(text) >= SHORTEST or text in short) and text not in public}


def flags() -> dict[str, str]:
    """What says of a choice that it is right; looked for in what is handed out, where no choice may say so."""
    written = ('"correct": true', '"correct":true', '"correct": false', '"correct":false', "correct: true", "'correct': True")
    return {text: _("a choice's flag") for text in written}


def encodings(text: str) -> dict[str, bytes]:
    """The forms of a text that are looked for in bytes: encoding -> bytes."""
    plain = text.encode()
    found = {
        _("plain text"): plain,
        "JSON": json.dumps(text)[1:-1].encode(),
        _("JSON in JSON"): json.dumps(json.dumps(text))[3:-3].encode(),
        "UTF-16 LE": text.encode("utf-16-le"),
        "UTF-16 BE": text.encode("utf-16-be"),
        "UTF-32 LE": text.encode("utf-32-le"),
        "UTF-32 BE": text.encode("utf-32-be"),
        "UTF-7": text.encode("utf-7"),
        _("plain text, decomposed"): unicodedata.normalize("NFD", text).encode(),
        _("plain text, backwards"): text[::-1].encode(),
        "ROT13": codecs.encode(text, "rot13").encode(),
        "hex": plain.hex().encode(),
        "HEX": plain.hex().upper().encode(),
    }
    for shift in range(3):
        # Of each alignment only the digits that depend on nothing but the text.
        coded = base64.b64encode(b"\0" * shift + plain)
        coded = coded[(0, 2, 3)[shift] : len(coded) - (0, 4, 4)[(len(plain) + shift) % 3]]
        found[_("base64, alignment {shift}").format(shift=shift)] = coded
        found[_("base64 for URLs, alignment {shift}").format(shift=shift)] = coded.translate(bytes.maketrans(b"+/", b"-_"))
    return found


def search(name: str, content: bytes, texts: dict[str, str]) -> list[Leak]:
    """Every private text in a file, and in whatever is packed inside. Raises CanaryError for what can't be looked into."""
    forms = [(what, how, form) for text, what in texts.items() for how, form in encodings(text).items()]
    bare = [(what, form) for text, what in texts.items() if len(form := _bare(text.encode())) >= SHORTEST]
    found = {}
    for where, data in unpacked(name, content):
        # A text is found wherever its lines are broken, too.
        joined = b" ".join(data.split())
        for what, how, form in forms:
            if form in data or form in joined:
                found[where, what] = Leak(where, what, how)
        letters = _bare(data)
        for what, form in bare:
            if form in letters:
                found.setdefault((where, what), Leak(where, what, _("its letters and digits alone")))
    return list(found.values())


def _bare(data: bytes) -> bytes:
    """What is left when marks, quotes, markup's signs and capitals are taken away, in the order that is there."""
    return re.sub(rb"[^0-9a-z]", b"", data.lower())


def unpacked(name: str, content: bytes, depth: int = 0) -> Iterator[tuple[str, bytes]]:
    """A file and, recursively, everything in it: (path through the archives, bytes)."""
    if depth > _DEEPEST or len(content) > _LARGEST:
        raise CanaryError(_("{name} is nested too deeply or too large to look into").format(name=name))
    yield name, content
    for inner, data in _inside(name, content):
        if data and data != content:
            yield from unpacked(f"{name} > {inner}", data, depth + 1)


def _inside(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    if content[:4] == b"PK\x03\x04":
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                for entry in archive.infolist():
                    yield entry.filename, archive.read(entry)
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError, zlib.error) as error:
            raise CanaryError(_("{name} cannot be unpacked: {error}").format(name=name, error=error)) from None
    elif content[257:262] == b"ustar":
        try:
            with tarfile.open(fileobj=io.BytesIO(content)) as tar:
                for member in tar:
                    held = tar.extractfile(member) if member.isfile() else None
                    if held is not None:
                        yield member.name, held.read()
        except tarfile.TarError as error:
            raise CanaryError(_("{name} cannot be unpacked: {error}").format(name=name, error=error)) from None
    else:
        for magic, kind, unpack in (
            (b"\x1f\x8b", "gzip", gzip.decompress),
            (b"BZh", "bzip2", bz2.decompress),
            (b"\xfd7zXZ", "xz", lzma.decompress),
            (b"\x78", "zlib", zlib.decompress),
        ):
            if content.startswith(magic):
                try:
                    yield kind, unpack(content)
                except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
                    continue  # a text may begin with these bytes; it was searched as it is
        yield from _coded(content)


def _coded(content: bytes) -> Iterator[tuple[str, bytes]]:
    text = content.lstrip()
    if text[:1] in (b"{", b"["):
        with contextlib.suppress(ValueError, RecursionError):
            yield "JSON strings", "\n".join(_strings(json.loads(text))).encode("utf-8", "replace")
    yield from _escaped(content)
    for place, match in enumerate(_BASE32.finditer(content)):
        digits = match[0].rstrip(b"=")
        with contextlib.suppress(binascii.Error):
            yield f"base32 {place}", base64.b32decode(digits[: len(digits) // 8 * 8])
    for place, match in enumerate(_BYTES.finditer(content)):
        numbers = [int(number) for number in re.findall(rb"\d+", match[0])]
        if max(numbers) < 256:
            yield f"numbers {place}", bytes(numbers)
    for place, match in enumerate(_BASE64.finditer(content)):
        digits = re.sub(rb"[\\\s=]", b"", match[0]).translate(bytes.maketrans(b"-_", b"+/"))
        try:
            yield f"base64 {place}", base64.b64decode(digits[: len(digits) // 4 * 4] + _rest(digits))
        except binascii.Error:
            continue
    for place, match in enumerate(_HEX.finditer(content)):
        yield f"hex {place}", bytes.fromhex(match[0].decode())


def _escaped(content: bytes) -> Iterator[tuple[str, bytes]]:
    """The content with its escapes read: backslashes, per cent, entities, quoted-printable. None where there are none."""
    if _ESCAPED.search(content):
        yield "escapes", _pairs(_ESCAPED.sub(_read_escape, content))
    if b"%" in content and re.search(rb"%[0-9a-fA-F]{2}", content):
        yield "per cent", unquote_to_bytes(content.replace(b"+", b" "))
    if b"&" in content and re.search(rb"&#?\w{2,8};", content):
        yield "entities", html.unescape(content.decode("utf-8", "replace")).encode("utf-8", "replace")
    if re.search(rb"(?:=[0-9A-F]{2}|=\r?\n)", content):
        yield "quoted-printable", quopri.decodestring(content)


def _read_escape(match: re.Match[bytes]) -> bytes:
    braced, four, eight, byte, octal = match.groups()
    if byte is not None or octal is not None:
        return bytes([int(byte, 16) if byte is not None else int(octal, 8) & 255])
    number = int(braced or four or eight, 16)
    return chr(number).encode("utf-8", "surrogatepass") if number < 0x110000 else match[0]


def _pairs(data: bytes) -> bytes:
    """JSON writes what is beyond four digits as two surrogates, each of which is three bytes here."""
    return _SURROGATES.sub(
        lambda pair: pair[0].decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16").encode(), data
    )


def _rest(digits: bytes) -> bytes:
    left = digits[len(digits) // 4 * 4 :]
    return left + b"=" * (4 - len(left)) if len(left) > 1 else b""


def _strings(node: object) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for key, value in node.items():
            yield str(key)
            yield from _strings(value)
    elif isinstance(node, list):
        # A notebook keeps a text as a list of lines.
        if node and all(isinstance(part, str) for part in node):
            yield "".join(node)
        for value in node:
            yield from _strings(value)
