"""The decision log: every gate is added to `decisions.md` and `decisions.jsonl`; what is there is never changed."""

from __future__ import annotations

import json
import os
from pathlib import Path

from offload_lab.health.gate import Decision

MARKDOWN, JSON = "decisions.md", "decisions.jsonl"


def prepare(folder: Path) -> None:
    """Make the folder and both files, where they are missing. Raises OSError where they can't be written: before a gate runs,
    not after it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (MARKDOWN, JSON):
        with (folder / name).open("a", encoding="utf-8"):
            pass


def append(decision: Decision, folder: Path) -> None:
    """Add the decision to both files. Two gates that end at once do not mix: each is one write at the end of the file."""
    prepare(folder)
    for name, text in ((MARKDOWN, markdown(decision)), (JSON, json.dumps(decision.to_dict(), allow_nan=False) + "\n")):
        fd = os.open(folder / name, os.O_WRONLY | os.O_APPEND)
        try:
            data = text.encode()
            written = os.write(fd, data)
            if written < len(data):
                raise OSError(f"only {written} of {len(data)} bytes were added to {str(folder / name)!r}; is the disk full?")
            os.fsync(fd)
        finally:
            os.close(fd)


def markdown(decision: Decision) -> str:
    """One section: a table of the targets, what was run, and on what."""
    rows = [
        f"| {check.name} | {_number(check.target)} | {_number(check.measured)} | {'pass' if check.passed else '**fail**'} |"
        for check in decision.checks
    ]
    table = ["| target | at most | measured | |", "|---|---|---|---|", *rows, ""] if rows else []
    machine = decision.machine
    return "\n".join(
        [
            f"## {decision.when} — {'passed' if decision.passed else 'failed'}",
            "",
            f"{_inline(decision.why)}",
            "",
            *table,
            f"- script: {_code(decision.script)}, sha256 {decision.sha256}",
            f"- steps: {decision.steps} of {decision.steps_wanted}",
            f"- workload: {decision.workload.get('parameters', 'unknown')} parameters, "
            f"{_inline(str(decision.workload.get('optimizer', 'unknown optimizer')))}",
            f"- machine: {_inline(str(machine['system']))}, {machine['cores']} cores, {machine['ram_bytes']:,} bytes of RAM, "
            f"Python {machine['python']}, torch {machine['torch']}, offload-lab {machine['offload_lab']}",
            *_output(decision.output),
            "",
            "",
        ]
    )


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:,.10g}"


def _inline(text: str) -> str:
    """Text of somebody else as one line of text, not as markup."""
    line = " ".join(text.split())
    for mark in "\\`*_[]<>|#":
        line = line.replace(mark, "\\" + mark)
    return line


def _code(text: str) -> str:
    return "`" + " ".join(text.split()).replace("`", "'") + "`"


def _output(text: str) -> list[str]:
    if not text.strip():
        return []
    # Indented, not fenced: output may hold a fence of its own.
    return ["", "The end of what it printed:", "", *("    " + line for line in text.splitlines()[-30:])]
