"""The benchmarks' arithmetic."""

import pytest

from reflexarc.bench.rows import Row, percentiles, summary


def test_a_ratio_is_ours_over_the_best_peer() -> None:
    row = Row("x", 1, {"p50": 2.0}, {"a": {"p50": 8.0}, "b": {"p50": 4.0}})
    assert row.ratio == 0.5
    assert row.to_map()["ratio_best_peer"] == 0.5
    assert Row("x", 1, {"p50": 2.0}).ratio is None


def test_the_summary_is_a_geometric_mean_by_threads() -> None:
    rows = [
        Row("x", 1, {"p50": 1.0}, {"a": {"p50": 4.0}}),
        Row("y", 1, {"p50": 1.0}, {"a": {"p50": 1.0}}),
        Row("y", 2, {"p50": 3.0}, {"a": {"p50": 1.0}}),
        Row("z", 2, {"p50": 3.0}),
    ]
    assert summary(rows) == {"geomean_ratio": {"1": 0.5, "2": 3.0}, "worst_ratio": 3.0}


def test_percentiles() -> None:
    assert percentiles([float(i) for i in range(100)]) == {"p50": 50.0, "p99": 99.0, "min": 0.0, "max": 99.0}
    with pytest.raises(IndexError):
        percentiles([])
