"""A step of a program of `offload_lab.races`, moment by moment: what runs, what is under way, and what lies in each half of
each place. There is no time in it, only an order: one column is one thing that happened."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from offload_lab.plots.drawing import MARGIN, WIDTH, Drawing
from offload_lab.plots.palette import LANES, LIMIT, OTHER, RISING, Style
from offload_lab.plots.shown import Shown
from offload_lab.plots.tables import Table
from offload_lab.revealer import ELEMENTS, Bench, Program
from quizzes.say import N_, _

NAN, MIXED, NOTHING = "NaN", "mix", ""
HALVES = (slice(None, ELEMENTS // 2), slice(ELEMENTS // 2, None))
_LEFT, _RIGHT, _TALL, _WIDEST = 144.0, 56.0, 20.0, 76.0
_LANES = {
    "fetch": (N_("copies"), LANES["device-to-host"]),
    "read": (N_("reads"), LANES["disk-read"]),
    "update": (N_("updates"), LANES["cpu"]),
    "write": (N_("writes"), LANES["disk-write"]),
    "zero_gradient": (N_("zeroes"), OTHER),
    "publish": (N_("publishes"), OTHER),
}
_PLACES = {
    "buffer": N_("buffer {number}"),
    "gradient": N_("gradient {number}"),
    "disk": N_("disk {number}"),
    "published": N_("published {number}"),
}
_COLOURS = ("#56B4E9", "#E69F00", "#F0E442", "#CC79A7", "#0072B2")
_POISON = Style("nan", "NaN", LIMIT, "M0,0 L8,8 M0,8 L8,0", "x")
_DONE = {0: "", 1: N_("1st half of"), 2: N_("2nd half of")}


class Moment(NamedTuple):
    """One thing that happened, and what both halves of each place held after it. `half` is 0 for what works at once;
    `transfer` is the number of the transfer that it belongs to."""

    kind: str
    partition: int
    buffer: int | None
    half: int
    holds: Mapping[str, tuple[str, str]]
    transfer: int = -1

    def __str__(self) -> str:
        half = _(_DONE[self.half]) + " " if self.half else ""
        return half + self.kind + (f" {self.partition}" if self.partition >= 0 else "")


@dataclass(frozen=True)
class Story:
    """`until`: how many moments there were when the program was over; the rest was let go then. `should`: what each place
    that is judged has to hold at the end."""

    moments: Sequence[Moment]
    until: int
    should: Mapping[str, tuple[str, str]]

    def wrong(self) -> list[str]:
        last = self.moments[-1].holds if self.moments else {}
        return [place for place, expected in self.should.items() if last.get(place) != expected]


def told(values: np.ndarray, half: slice) -> str:
    """What half of a state is, read off its numbers: "2" partition 2 as it was, "2+" with its gradient, "NaN", "mix"."""
    left = values[half] - np.arange(ELEMENTS)[half]
    if np.isnan(left).all():
        return NAN
    if np.isnan(left).any() or (left != left[0]).any():
        return MIXED
    partition, added = divmod(float(left[0]), 1000)
    return f"{partition:.0f}" + {0.0: "", partition + 1: "+"}.get(added, "?")


def told_gradient(values: np.ndarray, half: slice) -> str:
    """What half of a gradient is: "g", "0", "NaN" or "mix"."""
    found = {NAN if np.isnan(value) else "0" if value == 0 else "g" for value in values[half]}
    return found.pop() if len(found) == 1 else MIXED


def story(program: Program, late: Collection[str], *, partitions: int = 2, gradients_here: bool = True) -> Story:
    """Run `program` with each transfer of the kinds `late` held back, and watch. What it raises is raised."""
    moments: list[Moment] = []
    touched: set[int] = set()

    def watch(kind: str, partition: int, buffer: int | None, half: int, transfer: int) -> None:
        if buffer is not None:
            touched.add(buffer)
        moments.append(Moment(kind, partition, buffer, half, _holds(bench, touched), transfer))

    bench = Bench(late, gradients_here=gradients_here, partitions=partitions, watch=watch)
    try:
        program(bench)
        until = len(moments)
    finally:
        bench.end(False)
    places = [*(f"disk {p}" for p in range(partitions)), *(f"published {p}" for p in range(partitions) if bench.published)]
    return Story(moments, until, {place: (f"{place.split()[1]}+",) * 2 for place in places})


def _holds(bench: Bench, touched: Collection[int]) -> dict[str, tuple[str, str]]:
    states = {f"buffer {number}": bench.buffers[number] for number in sorted(touched)}
    states |= {f"disk {number}": state for number, state in enumerate(bench.disk)}
    states |= {f"published {number}": state for number, state in enumerate(bench.published or [])}
    holds = {place: (told(state, HALVES[0]), told(state, HALVES[1])) for place, state in states.items()}
    gradients = {f"gradient {number}": gradient for number, gradient in enumerate(bench.gradients)}
    return holds | {place: (told_gradient(g, HALVES[0]), told_gradient(g, HALVES[1])) for place, g in gradients.items()}


@dataclass(frozen=True)
class Storyboard(Shown):
    """Stories by name, one below the other, in the same columns."""

    title: str
    stories: Mapping[str, Story]
    late: Collection[str]

    def summary(self) -> list[str]:
        late = _("nothing is late") if not self.late else _("late: each {kinds}").format(kinds=", ".join(self.late))
        said = [_("Measured, in the order in which things happened ({late}).").format(late=late)]
        for name, each in self.stories.items():
            wrong = each.wrong()
            named = ", ".join(map(place_label, wrong))
            verdict = _("wrong at the end: {places}").format(places=named) if wrong else _("all right at the end")
            said.append(f"{name}: {verdict}.")
        return said

    def places(self, each: Story) -> list[str]:
        """What is drawn of a story: its buffers, gradients that change, and of what is judged only what is wrong, or one."""
        last = each.moments[-1].holds if each.moments else {}
        kinds = {moment.kind for one in self.stories.values() for moment in one.moments}
        wrong = [place for one in self.stories.values() for place in one.wrong()]
        judged = list(dict.fromkeys(wrong))[:2] or list(each.should)[:1]
        first = f"gradient {judged[0].split()[1]}" if judged else "gradient 0"
        gradients = [first] if kinds & {"fetch", "zero_gradient"} else []
        buffers = [place for place in last if place.startswith("buffer")]
        return [*gradients, *buffers, *(place for place in judged if place in each.should)]

    def tables(self) -> list[Table]:
        tables = []
        for name, each in self.stories.items():
            places = self.places(each)
            rows = [
                (
                    f"{number} {moment}" + (_(" (after the program)") if number > each.until else ""),
                    *(" | ".join(part or "-" for part in moment.holds.get(place, ("", ""))) for place in places),
                )
                for number, moment in enumerate(each.moments, start=1)
            ]
            caption = _("{name}: what both halves of each place hold").format(name=name)
            tables.append(Table(caption, (_("moment"), *map(place_label, places)), rows))
        return tables

    def svg(self) -> str:
        drawing = Drawing(self.title, " ".join(self.summary()))
        columns = max((len(each.moments) for each in self.stories.values()), default=0)
        wide = min((WIDTH - _LEFT - _RIGHT) / max(columns, 1), _WIDEST)
        seen: set[str] = set()
        for name, each in self.stories.items():
            drawing.text(MARGIN, drawing.below + 12, name, bold=True, room=_LEFT + 120)
            over = _LEFT + each.until * wide
            top = _lanes(drawing, each, drawing.below + 22, wide)
            for place in self.places(each):
                top = _place(drawing, each, place, top + 5, wide, seen)
            if each.until < len(each.moments):
                drawing.line(f"M{over:.1f} {drawing.below + 20:.1f}V{top:.1f}", thick=2, dashes="4 3", halo=True)
                drawing.flags([(over, _("the program is over"))], drawing.below + 13, _LEFT + 130)
            drawing.below = top + 14
        drawing.key(_key(seen))
        drawing.paragraph(
            _("A dashed line is a transfer that is under way: its first half is over, its second is still to come.")
        )
        return drawing.document(self.summary(), "storyboard-plot")


def storyboard(
    title: str, programs: Mapping[str, Program], late: Collection[str], *, partitions: int = 2, gradients_here: bool = True
) -> Storyboard:
    """Run `programs` with the kinds `late` held back, and draw what happened. What they raise is raised."""
    run = {
        name: story(program, late, partitions=partitions, gradients_here=gradients_here) for name, program in programs.items()
    }
    return Storyboard(title, run, tuple(late))


def place_label(place: str) -> str:
    """A place as a learner reads it: "buffer 0"."""
    kind, number = place.split()
    return _(_PLACES[kind]).format(number=number)


def _lanes(drawing: Drawing, each: Story, top: float, wide: float) -> float:
    for kind, (label, style) in _LANES.items():
        at = [(column, moment) for column, moment in enumerate(each.moments) if moment.kind == kind]
        if not at:
            continue
        drawing.text(MARGIN, top + 14, _(label), room=_LEFT - MARGIN - 6)
        begun = {moment.transfer: column for column, moment in at if moment.half == 1}
        for column, moment in at:  # first, so that blocks lie over them
            if moment.half == 2:
                x, y = _LEFT + (begun[moment.transfer] + 1) * wide, top + _TALL / 2
                drawing.line(f"M{x:.1f} {y:.1f}H{_LEFT + column * wide:.1f}", thick=2, dashes="5 3")
        for column, moment in at:
            drawing.block(style, _LEFT + column * wide, top, wide - 1, _TALL)
            number = str(moment.partition) if moment.partition >= 0 else "all"
            shown = number + {0: "", 1: " 1/2", 2: " 2/2"}[moment.half]
            middle = _LEFT + (column + 0.5) * wide
            if not drawing.on(style, middle, top + 14, shown, wide):
                drawing.on(style, middle, top + 14, number, wide)
        top += _TALL + 3
    return top


def _place(drawing: Drawing, each: Story, place: str, top: float, wide: float, seen: set[str]) -> float:
    last = each.moments[-1].holds.get(place, ("", "")) if each.moments else ("", "")
    for number, name in enumerate((_("1st half"), _("2nd half"))):
        if number == 0:
            drawing.text(MARGIN, top + 14, place_label(place), room=_LEFT - MARGIN - 56)
        drawing.text(_LEFT - 6, top + 14, name, role="faint", anchor="end")
        over_time = [moment.holds.get(place, ("", ""))[number] for moment in each.moments]
        column = 0
        while column < len(each.moments):
            held, end = over_time[column], column + 1
            while end < len(each.moments) and end != each.until and over_time[end] == held:
                end += 1
            if held:
                seen.add(held)
                drawing.block(_style(held), _LEFT + column * wide, top, (end - column) * wide - 1, _TALL)
                drawing.on(_style(held), _LEFT + (column + end) / 2 * wide, top + 14, held, (end - column) * wide + 6)
            column = end
        if place in each.should:
            right = last[number] == each.should[place][number]
            x = _LEFT + len(each.moments) * wide + 6
            drawing.text(x, top + 14, _("right") if right else _("wrong"), bold=not right)
        top += _TALL + 1
    return top


def _style(held: str) -> Style:
    if held == NAN:
        return _POISON
    if not held.rstrip("+").isdigit():
        return OTHER if held != "g" else LANES["backward"]
    colour = _COLOURS[int(held.rstrip("+")) % len(_COLOURS)]
    return Style(held, held, colour, RISING if held.endswith("+") else "", "")


def _key(seen: Collection[str]) -> list[tuple[Style, str]]:
    words = {
        NAN: _("NaN: not brought yet"),
        "g": _("g: the gradient"),
        MIXED: _("mix: of several kinds"),
    }
    entries = [(_style(held), words[held]) for held in words if held in seen]
    for held in sorted(held for held in seen if held.rstrip("+").isdigit()):
        number = held.rstrip("+")
        as_it_was = _("{number}: partition {number} as it was")
        updated = _("{number}+: partition {number} with its gradient")
        entries.append((_style(held), (updated if held.endswith("+") else as_it_was).format(number=number)))
    return entries
