"""Files from strangers: read with limits and as text, and files of our own written at once or not at all."""

from __future__ import annotations

import codecs
import errno
import os
import tempfile
from pathlib import Path

from quizzes.say import _

LARGEST = 20_000_000
"""Bytes of a file of questions, and of all that a package unpacks to; a bank of a hundred questions has about 200,000."""
MOST_QUESTIONS = 5_000
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EACCES, errno.EXDEV}
"""What a file system says that has no hard links: a memory stick, a mounted drive."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class InterchangeError(ValueError):
    """A file can't be read or written; the message names it, the line where there is one, and what to do."""


def read_bytes(path: Path) -> bytes:
    """The content of a regular file. Raises InterchangeError for anything else, or more than LARGEST bytes."""
    try:
        if not path.is_file():
            what = _("is a folder") if path.is_dir() else _("is not there, or no regular file")
            raise InterchangeError(_("{path} {what}; name a file of questions").format(path=path, what=what))
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise InterchangeError(_("{path} cannot be read: {error}").format(path=path, error=error.strerror)) from None
    if len(data) > LARGEST:
        raise InterchangeError(
            _("{path} has more than {most:,} bytes; split it into smaller files").format(path=path, most=LARGEST)
        )
    if not data.strip():
        raise InterchangeError(_("{path} is empty").format(path=path))
    return data


def decoded(data: bytes, name: str) -> str:
    """Text of a file in UTF-8, or in UTF-16 or 32 with a byte order mark. Raises InterchangeError."""
    encoding = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        said = _("{name}, line {line}: this is not UTF-8 text; save the file as UTF-8")
        raise InterchangeError(said.format(name=name, line=line)) from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        said = _("{name}, line {line}: a NUL character, which no text has; the file is damaged or of another kind")
        raise InterchangeError(said.format(name=name, line=line))
    return text


def taken(path: Path) -> str:
    """What is said of a file that is there already."""
    said = _("{path} is there already and was left as it is; name another file, or use --force to replace it")
    return said.format(path=path)


def _take(temporary: str, path: Path) -> None:
    """Give a file its name. Raises FileExistsError where something has it, however late that came."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.replace(temporary, path)


def publish(path: Path, data: bytes, force: bool = False) -> None:
    """Write `path` at once: the whole content or none. Raises InterchangeError where something is there and not `force`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InterchangeError(_("{path} cannot be written: {error}").format(path=path, error=error.strerror)) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        if force:
            os.replace(temporary, path)
        else:
            _take(temporary, path)
    except FileExistsError:
        raise InterchangeError(taken(path)) from None
    except OSError as error:
        raise InterchangeError(_("{path} cannot be written: {error}").format(path=path, error=error.strerror)) from None
    finally:
        Path(temporary).unlink(missing_ok=True)
