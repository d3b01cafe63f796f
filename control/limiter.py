"""Bounds, slew and jerk of one value.

The law. Let e be the way to the target, J the jerk limit (change of the velocity a second), dt the time since the last
step. A move of v * dt that is followed by braking at J comes to rest at or before the target, whatever the lengths of
the later steps, exactly when

    v * dt + v^2 / (2 J) <= e   that is   v <= 2 e / (dt + sqrt(dt^2 + 2 e / J))

since the steps of a braking v, v - J dt1, v - J (dt1 + dt2)... are a lower sum of the triangle v^2 / (2 J). The same holds
for the way to a bound; and if it held before a step, then v - J dt holds it after, so there is always a way to obey. A
target set nearer than the braking way is passed, at full braking; a bound never is. With J infinite the law is v = e / dt.
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
        for name in ("minimum", "maximum"):
            if not abs(getattr(self, name)) <= LARGEST:
                raise ValueError(f"{name}: {getattr(self, name)} is not a number within {LARGEST:g}")
        if self.minimum > self.maximum:
            raise ValueError(f"minimum: {self.minimum} is above maximum {self.maximum}")
        if not (1 / LARGEST <= self.slew <= LARGEST or self.slew == math.inf):
            raise ValueError(f"slew: {self.slew} must be above 0")
        if not (1 / LARGEST <= self.jerk <= LARGEST or self.jerk in (0, math.inf)):
            raise ValueError(f"jerk: {self.jerk} must be above 0, or 0 for none")

    def clamp(self, value: float) -> float:
        """Bring a number within the bounds; a NaN stays one."""
        return _clamp(value, self.minimum, self.maximum)


class Limiter:
    """Moves one value towards its targets within its limits; all times are monotonic ns.

    A step that comes `stall_ns` or more after the last one moves no further than one of `stall_ns` would, and from
    rest: the output stood still for so long, so the ramp begins again. A step at or before the time of the last one
    changes nothing.
    """

    __slots__ = ("_jerk", "_last", "_slew", "_stall_ns", "limits", "value", "velocity")

    def __init__(self, limits: Limits, value: float, now: int, stall_ns: int) -> None:
        self.limits = limits
        self._slew = limits.slew
        self._jerk = limits.jerk or math.inf
        self._stall_ns = stall_ns
        self.jump(value, now)
        self._last = now

    def jump(self, value: float, now: int) -> None:
        raise NotImplementedError

    def step(self, target: float, now: int) -> float:
        raise NotImplementedError

    def adopt(self, old: "Limiter") -> None:
        raise NotImplementedError


def _clamp(value: float, low: float, high: float) -> float:
    return low if value < low else high if value > high else value
