"""Bounds, slew and jerk of one value.

The law. Let e be the way to the target, J the jerk limit (change of the velocity a second), dt the time since
the last step. A move of v * dt, followed by braking at J, comes to rest at the target or before it, whatever
the lengths of the later steps, when

    v * dt + v^2 / (2 J) <= e    that is    v <= 2 e / (dt + sqrt(dt^2 + 2 e / J))

for the moves of a braking at v - J dt1, v - J (dt1 + dt2), ... are a lower sum of the triangle v^2 / (2 J).
The same holds for the way to a bound; and where it held before a step, v - J dt keeps it, so there is always
a way to obey. A target set nearer than the braking way is passed at full braking; a bound is never. With J
infinite v = e / dt.
"""

import math
from dataclasses import dataclass
from typing import Final

LARGEST: Final = 1e100
"""Largest magnitude of a limit: below it no step of the arithmetic overflows."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a value, its slew (change a second) and jerk (change of the slew a second; 0 is none).

    A slew of infinity is none. Raises ValueError with the numbers where they make no sense.
    """

    minimum: float
    maximum: float
    slew: float
    jerk: float = 0.0

    def __post_init__(self) -> None:
        if not -LARGEST <= self.minimum <= self.maximum <= LARGEST:
            raise ValueError(f"bounds: {self.minimum} to {self.maximum} is no range within {LARGEST:g}")
        if not _is_rate(self.slew):
            raise ValueError(f"slew: {self.slew} must be above 0")
        if not (_is_rate(self.jerk) or self.jerk == 0):
            raise ValueError(f"jerk: {self.jerk} must be above 0, or 0 for none")


class Limiter:
    """Moves one value towards its targets within its limits; times are monotonic ns.

    A step that comes more than `stall_ns` after the last one goes no further than `stall_ns` allow, and from
    rest: the output stood still for so long, so its ramp begins again. A step at or before the time of the
    last one changes nothing.
    """

    __slots__ = ("_jerk", "_last", "_limits", "_stall_ns", "value", "velocity")
    value: float
    velocity: float

    def __init__(self, limits: Limits, value: float, now: int, stall_ns: int) -> None:
        self._limits = limits
        self._jerk = limits.jerk or math.inf
        self._stall_ns = stall_ns
        self._last = now
        self.jump(value, now)

    @property
    def outside(self) -> bool:
        """Whether an adopted value is still on its way into the bounds."""
        return not self._limits.minimum <= self.value <= self._limits.maximum

    def step(self, target: float, now: int) -> float:
        """Move towards a target, bounds or no bounds; raises ValueError where it is not finite."""
        if not math.isfinite(target):
            raise ValueError(f"limiter: target {target} is not finite")
        elapsed = (now - self._last) * 1e-9
        if elapsed <= 0:
            return self.value
        dt = elapsed
        if now - self._last > self._stall_ns:
            dt = self._stall_ns * 1e-9
            self.velocity = 0.0
        self._last = now
        limits = self._limits
        goal = _clamp(target, limits.minimum, limits.maximum)
        error = goal - self.value
        move = error * (2 * dt / (dt + math.sqrt(dt * dt + 2 * abs(error) / self._jerk)))
        move = _clamp(move, -limits.slew * dt, limits.slew * dt)
        change = self._jerk * dt
        move = _clamp(move, (self.velocity - change) * dt, (self.velocity + change) * dt)
        self.velocity = move / elapsed
        low, high = min(limits.minimum, self.value), max(limits.maximum, self.value)
        self.value = goal if move == error else _clamp(self.value + move, low, high)
        return self.value

    def jump(self, value: float, now: int) -> float:
        """Be at a value at once, at rest; the bounds hold. Raises ValueError where it is not finite."""
        if not math.isfinite(value):
            raise ValueError(f"limiter: value {value} is not finite")
        self.value = _clamp(value, self._limits.minimum, self._limits.maximum)
        self.velocity = 0.0
        self._last = max(self._last, now)
        return self.value

    def adopt(self, old: "Limiter") -> None:
        """Go on from where another limiter stood, as fast as slew and braking way allow.

        A value outside the bounds moves into them by slew and jerk, and never away.
        """
        limits = self._limits
        self._last = old._last
        self.value = old.value
        room = limits.maximum - self.value if old.velocity > 0 else self.value - limits.minimum
        fastest = min(limits.slew, math.sqrt(2 * self._jerk * room)) if room > 0 else 0.0
        self.velocity = _clamp(old.velocity, -fastest, fastest)


def _is_rate(number: float) -> bool:
    return 1 / LARGEST <= number <= LARGEST or number == math.inf


def _clamp(number: float, low: float, high: float) -> float:
    return low if number < low else high if number > high else number
