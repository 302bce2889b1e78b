"""The help of the commands in the language that is spoken: typer takes its texts when a module is read, which is too early."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import click
import typer
from typer.core import TyperGroup

from quizzes.say import _


def helps() -> list[str]:
    """Every text that `--help` shows of a command or one of its options, in order, each once."""
    from quizzes.cli import app

    found: list[str] = []

    def seen(text: str) -> str:
        found.append(text)
        return text

    _through(typer.main.get_command(app), seen)
    return list(dict.fromkeys(found))


class Spoken(TyperGroup):
    """A group of commands whose help, and that of all in it, is in the language that is spoken when it is called."""

    def main(self, *arguments: Any, **more: Any) -> Any:
        _through(self, _)  # typer makes the commands anew for each call
        return super().main(*arguments, **more)


def _through(command: click.Command, say: Callable[[str], str]) -> None:
    for node in _every(command):
        for name in ("help", "short_help", "epilog"):
            text = getattr(node, name, None)
            if isinstance(text, str) and text.strip():
                setattr(node, name, say(text))


def _every(command: click.Command) -> Iterator[Any]:
    yield command
    yield from command.params
    for part in getattr(command, "commands", {}).values():
        yield from _every(part)
