"""`python -m quizzes.service.lab -m jupyterlab …`: starts the service, where it can judge here, and becomes the lab.

The lab starts whatever happens to the service; practice questions need none. A learner has no keys, and then nothing is
started. The service ends with the lab: it looks whether its parent is still there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

KEYS = Path(__file__).parent.parent / "keys"  # as in quizzes.question, which takes a second to import


def start(keys: Path = KEYS) -> subprocess.Popen[bytes] | None:
    """The service as a child of this process; None where there are no graded questions or it cannot be started."""
    if not any(keys.glob("[0-9][0-9]_*.yaml")):
        return None
    command = [sys.executable, "-m", "quizzes.cli", "serve", "--lab", "--keys", str(keys)]
    try:
        # In a session of its own: Ctrl-C asks the lab, which may go on.
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=os.name == "posix"
        )
    except OSError as error:
        print(f"The service for graded questions was not started ({error.strerror}); the lab works without.", file=sys.stderr)
        return None


def main(arguments: list[str]) -> int:
    service = start()
    command = [sys.executable, *arguments]
    if os.name == "posix":
        os.execv(sys.executable, command)  # the lab has this process's id, terminal and exit status
    try:
        return subprocess.call(command)
    finally:
        if service is not None:
            service.terminate()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
