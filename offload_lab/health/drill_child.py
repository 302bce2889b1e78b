"""A training that is killed in the middle of a step: `python -m offload_lab.health.drill_child <directory> <step>`.

It kills itself with SIGKILL at the second write of that step, which no program can catch: to the system, and to the files,
it is the same as `kill -9` from outside, and it hits the same moment every time.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from offload_lab.health.drill import Training


def main(directory: str, step: int) -> None:
    """Train to the middle of step `step`."""
    training = Training(directory)
    training.to(step - 1)
    write, writes = os.pwritev, 0

    def killing(*arguments: Any) -> int:
        nonlocal writes
        writes += 1
        if writes == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return write(*arguments)

    os.pwritev = killing
    training.to(step)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
