"""What is in front of the kernel, and what it can show. Asked for, never guessed from the environment: a variable that an
editor has left there says nothing about who is looking."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FrontEnd:
    """`renderer`: "widget" (plotly's FigureWidget), "figure" (a plotly figure, sent anew), "svg" or "text".

    `button`: whether a Stop button can be shown. `why`: what is missing for something better, empty if nothing is.
    """

    renderer: str
    button: bool = False
    why: str = ""


def probe() -> FrontEnd:
    """The best that works here. Imports plotly and the widgets only where somebody can use them."""
    shell = _shell()
    if shell is None:
        return FrontEnd("text")
    if not _is_live(shell):  # nbclient, nbconvert, qtconsole: a picture can be replaced, a widget would never be drawn
        return FrontEnd("svg")
    reasons = [_missing("ipywidgets") or _colab_refuses()]
    button = not reasons[0]
    if _missing("plotly.graph_objects"):
        return FrontEnd("svg", button, _sentence([*reasons, _missing("plotly.graph_objects")]))
    reasons.append(_missing("anywidget"))
    if any(reasons):
        return FrontEnd("figure", button, _sentence(reasons))
    return FrontEnd("widget", button)


def _shell() -> Any:
    """IPython's shell if it belongs to a kernel. That IPython is installed, or runs in a terminal, shows nothing."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell if hasattr(shell, "kernel") else None


def _is_live(shell: Any) -> bool:
    """Whether the cell that runs was sent by a notebook front end: JupyterLab and those built on it name the cell."""
    if "google.colab" in sys.modules:
        return True
    return "cellId" in (shell.get_parent().get("metadata") or {})


def _missing(module: str) -> str:
    try:
        importlib.import_module(module)
    except ImportError as error:
        return f"{module.split('.')[0]} cannot be imported ({error})"
    return ""


def _colab_refuses() -> str:
    """Colab shows widgets of other packages only when it is asked to."""
    if "google.colab" not in sys.modules:
        return ""
    try:
        importlib.import_module("google.colab.output").enable_custom_widget_manager()
    except (ImportError, AttributeError, RuntimeError) as error:
        return f"Colab's widget manager did not start ({error})"
    return ""


def _sentence(reasons: list[str]) -> str:
    said = list(dict.fromkeys(reason for reason in reasons if reason))
    return f"Shown as a picture that is drawn anew, not as a widget: {'; '.join(said)}."
