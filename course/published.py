"""A folder written as a whole: what is there before, or all of what is new; and no folder that somebody else has made."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from quizzes.say import _

MARK = ".offload-lab-site"
"""The file by which a later run knows a folder as its own."""


class FolderError(ValueError):
    """A folder cannot be written, or is somebody else's; the message names it and says what to do."""


def check(folder: Path) -> None:
    """Raises FolderError unless `folder` is not there, is empty, or was made by `publish`; and where nothing can be written."""
    try:
        if folder.is_dir():
            foreign = not (folder / MARK).is_file() and any(folder.iterdir())
        else:
            foreign = os.path.lexists(folder)
    except OSError as error:
        raise FolderError(_("{path} cannot be read: {why}.").format(path=folder, why=error.strerror)) from None
    if foreign:
        said = _("{path} is there and was not made by this command, so it is left alone. Name another folder with --to.")
        raise FolderError(said.format(path=folder))
    real = Path(os.path.realpath(folder))
    if Path.cwd().is_relative_to(real) or os.path.ismount(real):
        # It is put in place by renaming, which would take the ground from under whoever stands in it.
        said = _(
            "{path} is where this command runs, or a disk of its own, and cannot be replaced. Name a folder in it with --to."
        )
        raise FolderError(said.format(path=folder))
    above = next((path for path in real.parents if path.exists()), Path("/"))
    try:
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=above):
            pass
    except OSError as error:
        said = _("{path} cannot be written: {why}. Name another folder with --to.")
        raise FolderError(said.format(path=folder, why=error.strerror or error)) from None


def publish(files: Mapping[str, bytes], folder: Path) -> None:
    """Make `folder` hold `files` and nothing else. They are written beside it first and put in place by renaming, so whoever
    looks sees all of the old ones or all of the new ones. Raises FolderError; then `folder` is as it was."""
    check(folder)
    folder = Path(os.path.realpath(folder))  # a link stays one
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent, ignore_cleanup_errors=True) as beside:
            new, old = Path(beside) / "new", Path(beside) / "old"
            for name, content in {MARK: b"", **files}.items():
                (new / name).parent.mkdir(parents=True, exist_ok=True)
                (new / name).write_bytes(content)
            check(folder)  # minutes may have passed since somebody looked
            if folder.exists():
                folder.rename(old)
            try:
                new.rename(folder)
            except BaseException:
                if old.exists() and not folder.exists():
                    old.rename(folder)
                raise
    except OSError as error:
        said = _("{path} cannot be written: {why}. It is as it was.")
        raise FolderError(said.format(path=folder, why=error.strerror or error)) from None
