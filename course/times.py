"""How long "Run all" takes, measured: `python -m course.times` runs every lesson and writes `course/times.json`.

    python -m course.times            every lesson; takes minutes, and wants a machine that does nothing else
    python -m course.times 02 05      these lessons; the others keep the time that they have

The build prints the time in each lesson's head. Exit 1 names a lesson that did not run to its end; the file is as it was then.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from quizzes.say import _, _n

FILE = Path(__file__).parent / "times.json"


class TimesError(ValueError):
    """The file of times is not readable; the message names it."""


def read(path: Path = FILE) -> dict[str, tuple[float, int]]:
    """Lesson ("03") -> seconds of "Run all", and the cores that it was measured with. Nothing where there is no file. Raises
    TimesError."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): (float(entry["seconds"]), int(entry["cores"])) for name, entry in held.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        said = _("{path} cannot be read ({why}). Delete it and run make course-times.")
        raise TimesError(said.format(path=path, why=error)) from None


def short(seconds: float) -> str:
    """A time as people say it. It is rounded up, so that measuring again changes few lessons."""
    if seconds > 90:
        return _n("{count} minute", "{count} minutes", whole := -int(-seconds // 60)).format(count=whole)
    step = 5 if seconds > 10 else 1
    whole = max(step * -int(-seconds // step), 1)
    return _n("{count} second", "{count} seconds", whole).format(count=whole)


def said(entry: tuple[float, int] | None, typed: str = "") -> str:
    """What stands in a lesson's head: the measured time, else what its writer `typed`, else the limit that holds for all."""
    if entry is None:
        return typed or _("less than three minutes")
    seconds, cores = entry
    told = _n("about {time} (measured on one core)", "about {time} (measured on {cores} cores)", cores)
    return told.format(time=short(seconds), cores=cores)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def main(arguments: list[str] | None = None) -> int:
    from course import build
    from course.running import RunError, run

    parser = argparse.ArgumentParser(prog="python -m course.times", description='Measure "Run all" of the lessons.')
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="numbers, for instance 02; all if none is named")
    wanted = parser.parse_args(arguments).lessons
    sources = {source.name[:2]: source for source in build.lessons()}
    unknown = [name for name in wanted if name not in sources]
    if unknown:
        print(_("There is no lesson {names}; there are {known}.").format(names=", ".join(unknown), known=", ".join(sources)))
        return 2
    try:
        held = read()
        for number in wanted or sources:
            source = sources[number]
            try:
                seconds = run(build.build(source), name=f"{source.stem}.ipynb").seconds
            except RunError as error:
                print(_("{file}: {why}").format(file=source.name, why=error), file=sys.stderr)
                return 1
            held[number] = (seconds, cores())
            print(_("Lesson {lesson}: {seconds:.1f} s").format(lesson=number, seconds=seconds), flush=True)
    except (TimesError, build.LessonError) as error:
        print(error, file=sys.stderr)
        return 1
    when = datetime.now(UTC).date().isoformat()
    before = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    new = {
        name: {"seconds": round(seconds, 1), "cores": measured_with, "measured": when}
        if name in (wanted or sources)
        else before[name]
        for name, (seconds, measured_with) in sorted(held.items())
        if name in sources
    }
    FILE.write_text(json.dumps(new, indent=1) + "\n", encoding="utf-8", newline="\n")
    print(_("Written: {path}. Now make course puts the times into the lessons.").format(path=FILE))
    return 0


if __name__ == "__main__":
    sys.exit(main())
