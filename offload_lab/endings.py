"""How a command ends: refused with one line, or stopped without anything left running."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer


def refuse(message: str) -> NoReturn:
    """Say why, on stderr, and end with exit code 2."""
    typer.echo(message, err=True)
    raise typer.Exit(2)


@contextmanager
def ended_cleanly(message: str) -> Iterator[None]:
    """Ctrl-C, and a polite kill, unwind: what was started is ended, and its files removed, before we go. After Ctrl-C
    `message` says so, and the exit code is 130."""

    def leave(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(message, err=True)
        raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGTERM, before)
