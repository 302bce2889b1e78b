"""Questions of one kind from answers with their share of the points, as Moodle's formats and QTI have them. Pure."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from quizzes.interchange.draft import Draft, Skipped
from quizzes.interchange.texts import unstarred
from quizzes.say import _
from quizzes.words import plain

MOST_ANSWERS = 500


def choices(draft: Draft, found: list[tuple[Fraction, dict[str, Any]]], single: bool) -> None:
    """A question of kind one or several from choices with their share of the points. Raises Skipped."""
    full = [worth for worth, _part in found if worth == 1]
    if single and not full:
        raise Skipped(_("no choice earns all of the points; mark a right one"))
    if not any(worth > 0 for worth, _part in found):
        raise Skipped(_("no choice is right; mark one"))
    draft.data["kind"] = "one" if single else "several"
    for worth, part in found:
        part["correct"] = worth == 1 if single else worth > 0
        if single:
            # Said of every choice, so that no note can give points where the file gives none.
            part["credit"] = float(worth) if 0 < worth < 1 else 0.0
        if single and worth < 0:
            draft.lost("choices.credit", _("points that a wrong choice takes away"))
    if single and len(full) > 1:
        draft.data["several_right"] = True
        draft.lost("choices", _("more than one is right; any of them earns all points"))
    shares = [worth for worth, _part in found if worth > 0]
    if not single and (len(set(shares)) > 1 or abs(sum(shares) - 1) > Fraction(1, 1000)):
        draft.lost("scoring", _("its right choices weigh differently; here each has the same share"))
    wrong = {worth for worth, _part in found if worth <= 0}
    if not single and wrong and wrong != {-shares[0]}:
        draft.lost("scoring", _("a wrong choice takes away as much as a right one earns"))
    draft.data["choices"] = [part for _worth, part in found]


def texts(draft: Draft, found: list[tuple[Fraction, str, str]]) -> None:
    """A question of kind text from (share of the points, words, feedback). Raises Skipped."""
    kept = []
    for worth, text, told in found:
        meant = unstarred(text)
        if meant is not None and not plain(meant):
            draft.lost("accepted", _("an answer without a letter or digit; none can be typed"))
        elif meant is None:
            draft.lost("accepted", _("{text!r} stands for any text that fits; it is left out").format(text=text[:60]))
        else:
            kept.append((worth, meant, told))
    found = kept
    if any(0 < worth < 1 for worth, _text, _told in found):
        draft.lost("scoring", _("an answer that earns a part of the points counts as wrong here"))
    right = [(text, told) for worth, text, told in found if worth == 1]
    if not right:
        raise Skipped(_("no answer earns all of the points; mark a right one"))
    told = list(dict.fromkeys(told for _text, told in right if told))
    if told and "explanation" in draft.data and draft.data["explanation"] not in told:
        draft.lost("explanation", _("its general feedback; the feedback of the right answer was taken"))
    if len(told) > 1:
        draft.lost("explanation", _("all but the first feedback of its right answers"))
    if told:
        draft.data["explanation"] = told[0]
    wrong = [{"text": text, "explanation": why} for worth, text, why in found if worth != 1]
    draft.data |= {"kind": "text", "accepted": [text for text, _told in right], "wrong": wrong}


def numbers(draft: Draft, found: list[tuple[Fraction, Fraction, Fraction, str]]) -> None:
    """A question of kind number from (share of the points, value, how far off it may be, feedback). Raises Skipped."""
    if any(0 < worth < 1 for worth, *_rest in found):
        draft.lost("scoring", _("an answer that earns a part of the points counts as wrong here"))
    right = [part for part in found if part[0] == 1]
    if not right:
        raise Skipped(_("no answer earns all of the points; mark a right one"))
    told = next((part[3] for part in right if part[3]), "")
    if told:
        draft.data["explanation"] = told
    draft.data |= {
        "kind": "number",
        "answers": [{"value": str(value), "absolute": abs(near)} for _worth, value, near, _told in right],
        "traps": [{"value": str(value), "explanation": why} for worth, value, _near, why in found if worth != 1],
    }
    draft.data.setdefault("unit", "count")
