"""What a front end keeps of a quiz, and what the learner has to be told where it keeps less than Jupyter does."""

from __future__ import annotations

import sys
from pathlib import Path

from quizzes.answers import notebook_path, shell
from quizzes.say import _


def front_end() -> str:
    """One of "colab", "vscode", "kernel" (Jupyter and whatever else shows rich output) or "" (a terminal, a script)."""
    running = shell()
    if running is None:
        return ""
    if "google.colab" in sys.modules or type(running).__module__.startswith("google.colab"):
        return "colab"
    if "__vsc_ipynb_file__" in getattr(running, "user_ns", {}):
        return "vscode"
    return "kernel" if hasattr(running, "kernel") else ""


def keeping(progress: Path) -> str:
    """Where answers are found again, in words; nothing where the notebook itself has them, and in a script."""
    kind = front_end()
    if not kind or notebook_path() is not None:
        return ""
    if kind == "colab":
        return _(
            "Colab does not let a kernel read its notebook. Your answers are shown in it, and are found again in {path}, "
            "which goes with this machine. To keep them: answer in cells of your own, as the text under each question says, "
            "and run these cells again; or mount Drive and set OFFLOAD_LAB_PROGRESS to a file there before the quiz is made."
        ).format(path=progress)
    said = _("This front end does not say which notebook runs, so your answers are found again in {path} only.")
    return said.format(path=progress)
