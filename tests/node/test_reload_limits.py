"""A real node takes narrower bounds and a renamed channel over without a step."""

import itertools
import time
from collections.abc import Iterable
from typing import Any

from harness import CONFIG, SECOND, running

NARROW = CONFIG.replace("max = 5", "max = 1")


def assert_no_step(plains: Iterable[dict[str, Any]], slew: float) -> None:
    for a, b in itertools.pairwise(plains):
        assert abs(b["value.force"] - a["value.force"]) <= slew * (b["t"] - a["t"]) / SECOND * 1.01


def test_narrower_bounds_and_a_renamed_channel_are_ramps(tmp_path):
    with running(tmp_path, slew=5, up=5, stale="ramp") as (made, _):
        made.commands_until(lambda p: p["value.force"] == 5, 8)
        begin = time.monotonic_ns()
        made.configure(NARROW, slew=5, up=1, stale="ramp")
        made.commands_until(lambda p: p["value.force"] == 1, 20, since=begin)
        plains = [m.plain for m in made.listener.of("control/lift", begin)]
        assert_no_step(plains, 5)
        for plain in plains:
            if plain["reason"] == "bounds":
                assert (plain["state"], plain["value.force"] > 1) == ("DEGRADED", True)
        assert any(plain["reason"] == "bounds" for plain in plains)
        begin = time.monotonic_ns()
        made.configure(NARROW.replace("channel.lift", "channel.hoist"), slew=5, up=1, stale="ramp")
        made.listener.wait("control/lift", lambda p: p["reason"] == "retired" and p["value.force"] == 0, 20)
        made.listener.wait("control/hoist", lambda p: p["value.force"] == 1, 10)
        plains = [m.plain for m in made.listener.of("control/lift", begin)]
        assert_no_step(plains, 5)
        assert (plains[-1]["state"], plains[-1]["reason"], plains[-1]["value.force"]) == (
            "SAFE",
            "retired",
            0,
        )
