"""How tests are dealt to processes (`pytest -n 2`): a file stays whole, because its fixtures are dear; so do the lessons."""

from __future__ import annotations

from pathlib import PurePosixPath

# Begun first: what starts last and takes minutes would leave the other process idle at the end.
LONG = ("tests/course", "tests/offload_lab/export/test_real.py", "tests/browser", "tests/hostile", "tests/certificates")


def room(path: str) -> str:
    """The name of the group that test file `path` (from the root, with slashes) runs in, all in one process."""
    pure = PurePosixPath(path)
    # These ask for lessons that were run, once a process.
    lesson = pure.parent == PurePosixPath("tests/course") and pure.name.startswith(("test_lesson_0", "test_lesson_1"))
    return "the lessons" if lesson or pure.name == "test_all_lessons.py" else path


def turn(path: str) -> int:
    """Where in the order test file `path` comes; files of equal turn keep theirs."""
    return next((place for place, start in enumerate(LONG) if path.startswith(start)), len(LONG))


def scheduler(config, log):
    """pytest-xdist's scheduler by scope, with rooms for scopes."""
    from xdist.scheduler import LoadScopeScheduling

    class Rooms(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return room(nodeid.partition("::")[0])

    # Else the files with the most tests come first, which are not those that take longest.
    config.option.loadscopereorder = False
    return Rooms(config, log)
