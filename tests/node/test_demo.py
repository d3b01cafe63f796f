"""The demo's account: who was right, and what it exits with."""

import json
import subprocess
import sys

import msgpack
import pytest

from reflexarc.node.demo.score import Score, Series, label_at, series_of
from reflexarc.node.log import Entry


def mark(t: int, label: str) -> Entry:
    return Entry("label/exercise", t, msgpack.packb({"seq": 0, "t": t, "label": label}))


def decision(t: int, label: str, available: bool = True) -> dict[str, object]:
    return {"source_t": t, "label": label, "available": available}


def test_series_are_the_stretches_with_a_label() -> None:
    marks = [mark(10, "A"), mark(20, ""), Entry("imu/wrist", 21, b""), mark(30, "B"), mark(40, "")]
    series = series_of(marks)
    assert series == [Series(10, 20, "A"), Series(30, 40, "B")]
    assert [label_at(series, t) for t in (5, 10, 20, 25, 35)] == ["", "A", "A", "", "B"]


def test_only_windows_inside_one_series_count_and_undecided_is_wrong() -> None:
    score = Score([Series(100, 200, "A"), Series(300, 400, "B")], window_ns=50)
    for t, label in ((149, "A"), (150, "A"), (200, "undecided"), (310, "A"), (360, "B"), (400, "A")):
        score.take(decision(t, label))
    score.take(decision(390, "unavailable", available=False))
    assert (score.decisions, score.judged, score.right) == (7, 4, 2)
    assert score.accuracy == 0.5


@pytest.mark.slow
def test_the_demo_meets_what_it_states_and_loses_nothing() -> None:
    line = [sys.executable, "-m", "reflexarc.node.cli", "demo", "--speed", "20", "--json"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert set(result) == {"accuracy", "decisions", "frames", "latency_ms", "rss_mb", "ready_s", "commands"}
    assert result["frames"]["received"] == result["frames"]["processed"] + result["frames"]["queued"]
    assert result["frames"]["dropped"] == {}
    assert result["rss_mb"]["gate"] <= 28
    assert result["rss_mb"]["worker"] <= 60
