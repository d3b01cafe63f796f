"""The one shape of every suite's result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log

Numbers = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: ours, the peers' on the same input in the same run, and the limit.

    `p50` in each decides the ratio; `share_of_limit` is the limit's time over ours, None where there is no
    limit.
    """

    name: str
    threads: int
    ours: Numbers
    peers: Mapping[str, Numbers] = field(default_factory=dict)
    share_of_limit: float | None = None

    @property
    def ratio(self) -> float | None:
        """Our p50 over the best peer's: below 1 is faster."""
        best = min((peer["p50"] for peer in self.peers.values()), default=None)
        return None if best is None else self.ours["p50"] / best

    def to_map(self) -> dict[str, object]:
        """The row as --json prints it."""
        return {
            "name": self.name,
            "threads": self.threads,
            "ours": _rounded(self.ours),
            "peers": {name: _rounded(numbers) for name, numbers in self.peers.items()},
            "ratio_best_peer": _round(self.ratio),
            "share_of_limit": _round(self.share_of_limit),
        }


def summary(rows: Sequence[Row]) -> dict[str, object]:
    """Geometric mean of the ratios by thread count, and the worst ratio."""
    ratios: dict[int, list[float]] = {}
    for row in rows:
        if row.ratio is not None:
            ratios.setdefault(row.threads, []).append(row.ratio)
    every = [ratio for group in ratios.values() for ratio in group]
    means = {str(threads): round(exp(sum(map(log, g)) / len(g)), 3) for threads, g in sorted(ratios.items())}
    return {"geomean_ratio": means, "worst_ratio": _round(max(every, default=None))}


def percentiles(samples: Sequence[float]) -> dict[str, float]:
    """p50, p99, minimum and maximum."""
    ranked = sorted(samples)
    last = len(ranked) - 1
    return {
        "p50": ranked[len(ranked) // 2],
        "p99": ranked[min(last, len(ranked) * 99 // 100)],
        "min": ranked[0],
        "max": ranked[last],
    }


def _round(number: float | None) -> float | None:
    return None if number is None else round(number, 4)


def _rounded(numbers: Numbers) -> dict[str, float]:
    return {name: round(number, 4) for name, number in numbers.items()}
