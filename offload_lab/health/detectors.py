"""When a figure has left its normal range: robust statistics with hysteresis, so that one event is one signal. Pure.

Location and scale are the median and the median absolute deviation, which up to half of the observations cannot move far
(Hampel, 1974). MAD × 1.4826 is the standard deviation where the noise is normal.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from offload_lab.health.targets import median

MAD_TO_SIGMA = 1.4826
"""1 / Φ⁻¹(3/4)."""
_TINY = 1e-12  # in place of a time or a bandwidth of 0, which has no logarithm


@dataclass(frozen=True)
class Signal:
    """A figure went beyond its bound, or came back ("cleared")."""

    kind: Literal["raised", "cleared"]
    value: float
    """What was judged: the median of the recent observations, or the figure itself."""
    reference: float
    """What is normal."""
    bound: float
    """Beyond this it was raised; within this it was cleared."""


def robust(values: Sequence[float]) -> tuple[float, float]:
    """Median, and MAD × 1.4826, of at least one number."""
    middle = median(sorted(values))
    return middle, MAD_TO_SIGMA * median(sorted(abs(value - middle) for value in values))


@dataclass(frozen=True)
class _Normal:
    """What is normal, from one window."""

    level: float
    sigma: float
    far: float
    """Distance of the k-th farthest observation in the bad direction."""


class Shift:
    """Raises when each of the last `hold` observations lies beyond what is normal; clears when their median is back within
    half of that distance.

    Normal is the `window` observations before those. Beyond means farther from their median, in `direction`, than `sigmas`
    standard deviations; than `least`; and than `margin` times the distance of the k-th farthest of them. `scale` says how
    distances are taken: "difference"; "level", where `least` is a share of the median; or "ratio", where `least` is a share as
    well and logarithms are compared, so that a fall to a tenth is as far as a rise to the tenfold, and is seen in wide noise.
    With `margin` 1 the last makes the rate of false alarms independent of how the noise is distributed: of
    n + h observations in any order, the last h are all beyond the k-th farthest of the others with probability
    C(h + k - 1, h) / C(n + h, h), which is 2.6e-7 a step for n = 50, h = 8, k = 5.

    With `anchored`, normal is the better of that window and the first full one, so that a slow drift, which takes a rolling
    window with it, is seen as well. While it is raised nothing enters the window: a fault that lasts does not become normal.
    `rebase()` makes it so.
    """

    def __init__(
        self,
        direction: Literal["up", "down"],
        *,
        least: float,
        scale: Literal["difference", "level", "ratio"],
        sigmas: float,
        window: int = 50,
        hold: int = 8,
        margin: float = 1.0,
        anchored: bool = True,
        farthest: int | None = None,
    ) -> None:
        self._sign = 1.0 if direction == "up" else -1.0
        self._sigmas, self._margin, self._scale = sigmas, margin, scale
        self._least = abs(math.log(1 + self._sign * least)) if scale == "ratio" else least
        self._anchored = anchored
        self._farthest = max(1, window // 10) if farthest is None else farthest
        """k. More than 1: a step that an evaluation or a save made long does not hide a shift."""
        self._window: deque[float] = deque(maxlen=window)
        self._recent: deque[float] = deque(maxlen=hold)
        self._anchor: _Normal | None = None
        self.active = False

    def rebase(self) -> None:
        """Forget what was normal: the next observations are."""
        self._window.clear()
        self._recent.clear()
        self._anchor, self.active = None, False

    def observe(self, value: float) -> Signal | None:
        """Take a finite figure into account; of "ratio" a positive one. Nothing is judged before `window` + `hold` of them."""
        sign, recent = self._sign, self._recent
        if self._scale == "ratio":
            value = math.log(max(value, _TINY))
        if len(recent) == recent.maxlen and not self.active:
            self._window.append(recent[0])
        recent.append(value)
        if len(self._window) < (self._window.maxlen or 0):
            return None
        normal = self._normal()
        level = normal.level
        least = self._least * abs(level) if self._scale == "level" else self._least
        distance = max(self._sigmas * normal.sigma, least, self._margin * normal.far)
        if not self.active and min(sign * (each - level) for each in recent) > distance:
            self.active = True
            return self._signal("raised", level, level + sign * distance)
        if self.active and sign * (median(sorted(recent)) - level) < distance / 2:
            self.active = False
            return self._signal("cleared", level, level + sign * distance / 2)
        return None

    def _signal(self, kind: Literal["raised", "cleared"], level: float, bound: float) -> Signal:
        figures = (median(sorted(self._recent)), level, bound)
        return Signal(kind, *(map(math.exp, figures) if self._scale == "ratio" else figures))

    def _normal(self) -> _Normal:
        sign = self._sign
        level, sigma = robust(self._window)
        far = sorted(sign * (value - level) for value in self._window)[-self._farthest]
        rolling = _Normal(level, sigma, far)
        if not self._anchored:
            return rolling
        if self._anchor is None:
            self._anchor = rolling
        return min(rolling, self._anchor, key=lambda normal: sign * normal.level)


class Level:
    """Raises when a figure reaches `bound` in `direction`, and clears when it is back behind `clear`."""

    def __init__(self, direction: Literal["up", "down"], bound: float, clear: float) -> None:
        self._sign = 1.0 if direction == "up" else -1.0
        self._bound, self._clear = bound, clear
        self.active = False

    def rebase(self) -> None:
        """An absolute bound does not move; what is beyond it may be raised again."""
        self.active = False

    def observe(self, value: float) -> Signal | None:
        sign = self._sign
        if not self.active and sign * (value - self._bound) >= 0:
            self.active = True
            return Signal("raised", value, self._bound, self._bound)
        if self.active and sign * (value - self._clear) < 0:
            self.active = False
            return Signal("cleared", value, self._bound, self._clear)
        return None


class Count:
    """Raises when at least `bound` of the last `window` observations were events, and clears when none was."""

    def __init__(self, bound: int, window: int) -> None:
        self._bound = bound
        self._seen: deque[int] = deque(maxlen=window)
        self.active = False

    def rebase(self) -> None:
        self._seen.clear()
        self.active = False

    def observe(self, events: int) -> Signal | None:
        """`events` since the observation before."""
        self._seen.append(events)
        total = sum(self._seen)
        if not self.active and total >= self._bound:
            self.active = True
            return Signal("raised", total, 0, self._bound)
        if self.active and total == 0:
            self.active = False
            return Signal("cleared", total, 0, 0)
        return None


class NotFinite:
    """Raises at the first figure that is not finite, and clears at the first that is."""

    def __init__(self) -> None:
        self.active = False

    def rebase(self) -> None:
        self.active = False

    def observe(self, value: float) -> Signal | None:
        bad = not math.isfinite(value)
        if bad == self.active:
            return None
        self.active = bad
        return Signal("raised" if bad else "cleared", value, 0.0, math.inf)


Detector = Shift | Level | Count | NotFinite
