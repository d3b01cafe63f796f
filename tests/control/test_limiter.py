"""Bounds, slew and jerk of one value: exact cases, and seeded random walks against the law by bisection."""

import math
import random
from dataclasses import FrozenInstanceError

import pytest
from control_cases import MS, START, S, slack

from reflexarc.control.limiter import LARGEST, Limiter, Limits

STALL = 250 * MS


def limiter(
    value: float = 0.0, slew: float = 4.0, jerk: float = 0.0, low: float = 0.0, high: float = 8.0
) -> Limiter:
    return Limiter(Limits(low, high, slew, jerk), value, START, STALL)


@pytest.mark.parametrize(
    ("low", "high", "slew", "jerk"),
    [
        (0.0, 8.0, 4.0, 0.0),
        (1.0, 1.0, 4.0, 2.0),
        (-LARGEST, LARGEST, LARGEST, LARGEST),
        (-1.0, 0.0, 1 / LARGEST, 1 / LARGEST),
        (0.0, 1.0, math.inf, math.inf),
        (0.0, 1.0, float("inf"), float("inf")),
    ],
)
def test_limits_that_make_sense(low: float, high: float, slew: float, jerk: float) -> None:
    Limits(low, high, slew, jerk)


@pytest.mark.parametrize(
    ("low", "high", "slew", "jerk", "word"),
    [
        (2.0, 1.0, 4.0, 0.0, "bounds: 2.0 to 1.0"),
        (math.nan, 1.0, 4.0, 0.0, "bounds: nan"),
        (0.0, math.nan, 4.0, 0.0, "bounds"),
        (0.0, math.inf, 4.0, 0.0, "bounds"),
        (0.0, LARGEST * 1.01, 4.0, 0.0, "bounds"),
        (-LARGEST * 1.01, 0.0, 4.0, 0.0, "bounds"),
        (0.0, 1.0, 0.0, 0.0, "slew: 0.0"),
        (0.0, 1.0, -4.0, 0.0, "slew: -4.0"),
        (0.0, 1.0, math.nan, 0.0, "slew: nan"),
        (0.0, 1.0, LARGEST * 1.01, 0.0, "slew"),
        (0.0, 1.0, 0.99 / LARGEST, 0.0, "slew"),
        (0.0, 1.0, 4.0, -1.0, "jerk: -1.0"),
        (0.0, 1.0, 4.0, math.nan, "jerk: nan"),
        (0.0, 1.0, 4.0, 0.99 / LARGEST, "jerk"),
    ],
)
def test_limits_that_make_none(low: float, high: float, slew: float, jerk: float, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        Limits(low, high, slew, jerk)


def test_limits_are_what_was_told_and_stay_so() -> None:
    limits = Limits(0.0, 1.0, 1.0)
    assert limits.jerk == 0
    assert LARGEST == 1e100
    assert not hasattr(limits, "__dict__")
    with pytest.raises(FrozenInstanceError):
        limits.slew = 2.0  # type: ignore[misc]


def test_moves_at_the_slew_with_the_time_that_passed() -> None:
    one = limiter()
    assert one.step(6.0, START + 20 * MS) == pytest.approx(0.08, rel=1e-12)
    assert one.step(6.0, START + 120 * MS) == pytest.approx(0.48, rel=1e-12)
    assert one.step(0.0, START + 130 * MS) == pytest.approx(0.44, rel=1e-12)
    assert one.value == pytest.approx(0.44, rel=1e-12)


def test_lands_on_the_target_exactly() -> None:
    one = limiter(slew=5.0)
    for k in range(1, 101):
        one.step(1.1, START + k * 7 * MS)
    assert one.value == 1.1


def test_without_limits_of_rate_it_is_there_at_once() -> None:
    one = limiter(slew=math.inf, jerk=math.inf)
    assert one.step(7.3, START + 1) == 7.3
    assert one.step(0.1, START + 2) == 0.1


@pytest.mark.parametrize(("target", "end"), [(100.0, 8.0), (-100.0, -3.0), (1e308, 8.0), (-1e308, -3.0)])
def test_a_target_outside_the_bounds_is_the_bound(target: float, end: float) -> None:
    one = limiter(low=-3.0, slew=100.0)
    for k in range(1, 6):
        one.step(target, START + k * 50 * MS)
    assert one.value == end


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_rule_1_nothing_that_is_not_finite_enters(number: float) -> None:
    one = limiter(value=3.0)
    with pytest.raises(ValueError, match=f"target {number} is not finite"):
        one.step(number, START + 20 * MS)
    with pytest.raises(ValueError, match=f"value {number} is not finite"):
        one.jump(number, START + 20 * MS)
    assert one.value == 3.0
    assert one.step(6.0, START + 10 * MS) == pytest.approx(3.04)


def test_no_time_and_backward_time_change_nothing() -> None:
    one = limiter(jerk=8.0)
    one.step(6.0, START + 100 * MS)
    value, velocity = one.value, one.velocity
    assert velocity == pytest.approx(0.8)
    assert one.step(0.0, START + 100 * MS) == value
    assert one.step(0.0, START - S) == value
    assert one.velocity == velocity
    assert one.step(6.0, START + 110 * MS) == pytest.approx(value + 0.88 * 0.01)


def test_a_nanosecond_is_time() -> None:
    assert limiter(slew=1e6).step(8.0, START + 1) == pytest.approx(1e-3)


def test_a_standstill_is_no_leap() -> None:
    assert limiter().step(8.0, START + STALL) == pytest.approx(1.0)
    assert limiter().step(8.0, START + STALL + 1) == pytest.approx(1.0, rel=1e-12)
    assert limiter().step(8.0, START + 3600 * S) == pytest.approx(1.0, rel=1e-12)
    assert limiter().step(8.0, START + 2**62) == pytest.approx(1.0, rel=1e-12)


def test_after_a_standstill_the_ramp_begins_from_rest() -> None:
    one = limiter(slew=4.0, jerk=8.0)
    for k in range(1, 6):
        one.step(8.0, START + k * 100 * MS)
    assert one.velocity == pytest.approx(4.0)
    value = one.value
    one.step(8.0, START + 500 * MS + STALL)
    assert one.value == pytest.approx(value + 1.0)  # just not a standstill
    assert one.velocity == pytest.approx(4.0)
    value = one.value
    one.step(8.0, START + 500 * MS + STALL + 2 * S)
    assert one.value == pytest.approx(value + 8.0 * 0.25 * 0.25)
    assert one.velocity == pytest.approx(8.0 * 0.25 * 0.25 / 2.0)


def test_jerk_binds_the_change_of_the_velocity() -> None:
    one = limiter(slew=4.0, jerk=2.0, high=100.0)
    seen = []
    for k in range(1, 24):
        one.step(100.0, START + k * 100 * MS)
        seen.append((one.value, one.velocity))
    for k, (value, velocity) in enumerate(seen, 1):
        steps = min(k, 20)
        assert velocity == pytest.approx(0.2 * steps)
        assert value == pytest.approx(0.02 * steps * (steps + 1) / 2 + 0.4 * (k - steps))


def test_jerk_of_zero_is_none() -> None:
    one = limiter(jerk=0.0)
    one.step(8.0, START + 10 * MS)
    assert one.velocity == pytest.approx(4.0)


@pytest.mark.parametrize(("start", "target"), [(0.0, 6.0), (8.0, 1.0), (2.0, 2.5), (8.0, 0.0), (0.0, 8.0)])
@pytest.mark.parametrize("period", [MS, 20 * MS, 100 * MS])
def test_it_arrives_without_overshoot_and_without_delay(start: float, target: float, period: int) -> None:
    """A way w from rest takes at least w/V + V/J, or 2 sqrt(w/J) where the slew V is not reached (jerk J)."""
    slew, jerk = 4.0, 8.0
    one = limiter(start, slew, jerk)
    way = abs(target - start)
    best = way / slew + slew / jerk if way > slew * slew / jerk else 2 * math.sqrt(way / jerk)
    now = START
    while abs(one.value - target) > 1e-6 * way:
        now += period
        one.step(target, now)
        assert min(start, target) <= one.value <= max(start, target)
    assert best - 2 * period / S <= (now - START) / S <= best + 5 * period / S + 0.1
    for _ in range(50):
        now += period
        one.step(target, now)
    assert one.value == target


def test_a_target_set_behind_is_passed_at_full_braking_only() -> None:
    one = limiter(slew=4.0, jerk=8.0)
    now = START
    for _ in range(30):
        now += 20 * MS
        one.step(8.0, now)
    turn, speed, highest = one.value, one.velocity, one.value
    for _ in range(200):
        now += 20 * MS
        highest = max(highest, one.step(turn - 0.5, now))
    assert highest <= turn + speed * speed / (2 * 8.0)
    assert one.value == turn - 0.5


def naive_step(one: Limiter, limits: Limits, target: float, dt: float) -> float:
    """Find the next velocity by bisection: the fastest towards the target that braking can still stop."""
    error = min(max(target, limits.minimum), limits.maximum) - one.value
    low, high = 0.0, abs(error) / dt
    for _ in range(200):
        middle = (low + high) / 2
        if middle * dt + middle * middle / (2 * limits.jerk) <= abs(error):
            low = middle
        else:
            high = middle
    wanted = math.copysign(min(low, limits.slew), error)
    return min(max(wanted, one.velocity - limits.jerk * dt), one.velocity + limits.jerk * dt)


@pytest.mark.parametrize("seed", range(6))
def test_random_walks_follow_the_law_and_keep_every_limit(seed: int) -> None:
    draw = random.Random(seed)
    limits = Limits(-2.0, 3.0, draw.choice([0.5, 4.0, 50.0]), draw.choice([0.5, 8.0, 200.0]))
    one = Limiter(limits, 0.0, START, STALL)
    now, target = START, 0.0
    for _ in range(400):
        elapsed = draw.choice([1000, MS, 5 * MS, 20 * MS, 100 * MS, draw.randrange(1, STALL)])
        if draw.random() < 0.1:
            target = draw.choice([-2.0, 3.0, draw.uniform(-4.0, 5.0)])
        now += elapsed
        dt = elapsed * 1e-9
        velocity, value = one.velocity, one.value
        expected = naive_step(one, limits, target, dt)
        one.step(target, now)
        assert one.velocity == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert limits.minimum <= one.value <= limits.maximum
        assert abs(one.value - value) <= limits.slew * dt * (1 + 1e-9) + slack(3.0)
        assert abs(one.velocity - velocity) <= limits.jerk * dt * (1 + 1e-9) + slack(velocity)


def test_jump_is_at_once_at_rest_and_within_bounds() -> None:
    one = limiter(value=2.0, jerk=8.0)
    one.step(8.0, START + 100 * MS)
    assert one.jump(7.0, START + 100 * MS) == 7.0
    assert one.value == 7.0
    assert one.velocity == 0.0
    assert one.jump(9.0, START) == 8.0
    assert one.jump(-1.0, START) == 0.0
    assert one.step(8.0, START + 100 * MS) == 0.0  # an earlier jump did not turn the time back
    assert one.step(8.0, START + 200 * MS) == pytest.approx(0.08)
    one.jump(0.0, START + S)
    assert one.step(8.0, START + S + 100 * MS) == pytest.approx(0.08)


def test_starts_within_its_bounds() -> None:
    assert limiter(value=9.0).value == 8.0
    assert limiter(value=9.0).velocity == 0.0


def moving(velocity: float, value: float = 4.0) -> Limiter:
    old = limiter(value, slew=100.0)
    old.step(value + velocity * 0.01, START + 10 * MS)
    assert old.velocity == pytest.approx(velocity)
    return old


@pytest.mark.parametrize("velocity", [3.0, -3.0])
def test_adopt_goes_on_with_output_velocity_and_time(velocity: float) -> None:
    old, new = moving(velocity), limiter(slew=4.0, jerk=8.0)
    new.adopt(old)
    assert new.value == old.value
    assert new.velocity == pytest.approx(velocity)
    assert new.step(4.0 + velocity, START + 10 * MS) == old.value
    new.step(4.0 + velocity, START + 20 * MS)
    assert new.velocity == pytest.approx(velocity, abs=0.081)


@pytest.mark.parametrize(("velocity", "kept"), [(6.0, 4.0), (-6.0, -4.0)])
def test_adopt_keeps_to_the_new_slew(velocity: float, kept: float) -> None:
    new = limiter(slew=4.0)
    new.adopt(moving(velocity))
    assert new.velocity == kept


@pytest.mark.parametrize(
    ("value", "velocity", "room"),
    [(7.5, 3.0, 0.47), (0.5, -3.0, 0.47), (7.991, 0.5, 0.004), (0.009, -0.5, 0.004)],
)
def test_adopt_keeps_to_the_braking_way_that_is_left(value: float, velocity: float, room: float) -> None:
    new = limiter(slew=4.0, jerk=8.0)
    new.adopt(moving(velocity, value))
    assert abs(new.velocity) == pytest.approx(math.sqrt(2 * 8.0 * room))
    assert math.copysign(1.0, new.velocity) == math.copysign(1.0, velocity)


@pytest.mark.parametrize(("value", "velocity"), [(9.0, 3.0), (-1.0, -3.0)])
@pytest.mark.parametrize("goal", [-50.0, 4.0, 50.0])
def test_adopted_outside_the_bounds_it_ramps_in_from_rest_and_never_away(
    value: float, velocity: float, goal: float
) -> None:
    old = limiter(value - velocity * 0.01, slew=100.0, low=-100.0, high=100.0)
    old.step(value, START + 10 * MS)
    for jerk in (0.0, 8.0):
        new = limiter(slew=4.0, jerk=jerk, low=1.0, high=7.0)
        new.adopt(old)
        assert new.value == value
        assert new.velocity == 0.0
        before, now = value, START + 10 * MS
        assert new.outside
        while new.outside:
            now += 10 * MS
            new.step(goal, now)
            assert 0 < (before - new.value) * math.copysign(1.0, velocity) <= 0.04 + 1e-9
            before = new.value
        assert (now - START) / S == pytest.approx(1.0 if jerk else 0.51, abs=0.15 if not jerk else 0.5)
        for _ in range(300):
            now += 10 * MS
            assert 1.0 <= new.step(goal, now) <= 7.0
        assert new.value == min(max(goal, 1.0), 7.0)


def test_at_a_bound_it_is_not_outside() -> None:
    assert not limiter(0.0).outside
    assert not limiter(8.0).outside


@pytest.mark.parametrize(("value", "velocity"), [(9.0, -3.0), (-1.0, 3.0)])
def test_adopted_outside_and_on_its_way_in_it_goes_on(value: float, velocity: float) -> None:
    old = limiter(value - velocity * 0.01, slew=100.0, low=-100.0, high=100.0)
    old.step(value, START + 10 * MS)
    new = limiter(slew=4.0, jerk=8.0, low=1.0, high=7.0)
    new.adopt(old)
    assert new.velocity == pytest.approx(velocity)
    assert new.step(4.0, START + 20 * MS) == pytest.approx(value + velocity * 0.01, abs=0.001)


@pytest.mark.parametrize(("value", "velocity"), [(7.0, 3.0), (1.0, -3.0)])
def test_adopted_at_a_bound_it_rests(value: float, velocity: float) -> None:
    old = limiter(value - velocity * 0.01, slew=100.0, low=-100.0, high=100.0)
    old.step(value, START + 10 * MS)
    for jerk in (0.0, 8.0):
        new = limiter(slew=4.0, jerk=jerk, low=1.0, high=7.0)
        new.adopt(old)
        assert new.velocity == 0.0


def test_adopt_keeps_to_the_braking_way_below_zero_too() -> None:
    old = limiter(-1.5, slew=100.0, low=-100.0, high=100.0)
    old.step(-1.47, START + 10 * MS)
    new = limiter(slew=4.0, jerk=8.0, low=-3.0, high=-1.0)
    new.adopt(old)
    assert new.velocity == pytest.approx(math.sqrt(2 * 8.0 * 0.47))
