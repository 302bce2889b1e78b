"""Widgets as they stand when a lesson has run, as HTML without a script: for pages that have no kernel. Pure.

What asks is shown with what it offers; what only a kernel can do, a button for instance, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from quizzes.say import _

MIME = "application/vnd.jupyter.widget-view+json"
Widgets = Mapping[str, Mapping[str, Any]]
"""Each widget's `model_name` and `state`, by its id, as a notebook's metadata keep them."""
_POINTER = "IPY_MODEL_"
_STYLE = re.compile(r"<style\b.*?</style\s*>", re.I | re.S)
_BOXES = {"BoxModel", "VBoxModel", "HBoxModel", "GridBoxModel", "AccordionModel", "TabModel"}
_TEXTS = {"TextModel", "TextareaModel", "ComboboxModel", "PasswordModel"}
_NUMBERS = (
    "IntText",
    "FloatText",
    "BoundedIntText",
    "BoundedFloatText",
    "IntSlider",
    "FloatSlider",
    "IntProgress",
    "FloatProgress",
)
_LISTS = {"DropdownModel", "SelectModel", "RadioButtonsModel", "ToggleButtonsModel", "SelectMultipleModel"}
_KERNEL_ONLY = {"ButtonModel", "ToggleButtonModel", "FileUploadModel", "LayoutModel"}


class StillError(ValueError):
    """A widget has no form for a page; the message names its kind."""


def html(widgets: Widgets, name: str) -> str:
    """The widget `name` and what is in it; "" where nothing of it says anything. Raises StillError."""
    return _one(widgets, name, ())


def _one(widgets: Widgets, name: str, above: tuple[str, ...]) -> str:
    held = widgets.get(name)
    if held is None or name in above:
        raise StillError(_("the widget {name} is not among those that the cell made").format(name=name))
    kind, state = str(held.get("model_name", "")), held.get("state", {})
    if kind in _KERNEL_ONLY:
        return ""
    if kind in _BOXES:
        return _box(widgets, state.get("children", ()), (*above, name))
    if kind in {"HTMLModel", "HTMLMathModel"}:
        return _STYLE.sub("", str(state.get("value", "")))
    if kind == "LabelModel":
        return _line(state.get("value"))
    if kind in _TEXTS or kind.removesuffix("Model") in _NUMBERS:
        given = state.get("value")
        return _blank(state.get("description"), "" if given is None else str(given), state.get("placeholder"))
    if kind == "CheckboxModel":
        return f'<ul class="choices">{_choice(state)}</ul>'
    if kind in _LISTS:
        return _offered(state)
    said = _("a page cannot show a widget of the kind {kind}; show a picture or text beside it")
    raise StillError(said.format(kind=kind or "?"))


def _box(widgets: Widgets, children: Sequence[str], above: tuple[str, ...]) -> str:
    parts: list[str] = []
    for child in children:
        name = str(child).removeprefix(_POINTER)
        held = widgets.get(name, {})
        if held.get("model_name") == "CheckboxModel":
            choice = _choice(held.get("state", {}))
            # Choices that stand one under the other are one list.
            if parts and parts[-1].startswith('<ul class="choices">'):
                parts[-1] = parts[-1].removesuffix("</ul>") + choice + "</ul>"
            else:
                parts.append(f'<ul class="choices">{choice}</ul>')
        else:
            parts.append(_one(widgets, name, above))
    said = "".join(parts)
    return f'<div class="widget">{said}</div>' if said else ""


def _line(text: Any) -> str:
    return f"<p>{escape(str(text))}</p>" if text else ""


def _choice(state: Mapping[str, Any]) -> str:
    mark = "☑" if state.get("value") else "☐"
    return f'<li><span aria-hidden="true">{mark}</span> {escape(str(state.get("description", "")))}</li>'


def _blank(label: Any, value: str, example: Any) -> str:
    shown = str(example or "").strip("\u200b ")  # a widget without an example has a space of no width
    hint = f" <small>({escape(shown)})</small>" if shown and not value else ""
    return f'<p class="blank">{escape(str(label or ""))} <span>{escape(value) or "……"}</span>{hint}</p>'


def _offered(state: Mapping[str, Any]) -> str:
    options = "".join(f"<li>{escape(str(text))}</li>" for text in state.get("_options_labels", ()))
    return f"<details><summary>{escape(str(state.get('description') or '…'))}</summary><ul>{options}</ul></details>"
