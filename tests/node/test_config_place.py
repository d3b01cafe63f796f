"""Every process gets its cores; real-time workers leave one free; what cannot be is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from node_config import TEXT

from reflexarc.node.budget import Allowed
from reflexarc.node.config.load import parse
from reflexarc.node.config.place import Placement, place
from reflexarc.node.config.problems import ConfigError


def placed(allowed: Allowed, *workers: str, gate: str = "") -> Placement:
    """The placement of workers w0, w1, ... each with these lines."""
    text = TEXT.replace("[gate]", f"[gate]\n{gate}")
    for i, lines in enumerate(workers):
        text += f"\n[worker.w{i}]\nmemory_mb = 64\n{lines}\n"
    text = text.replace('worker = "main"', 'worker = "w0"')
    start, end = text.index("[worker.main]"), text.index("[stream.imu]")
    return place(parse(text[:start] + text[end:], Path("/")), allowed)


def test_a_real_time_worker_leaves_a_core() -> None:
    placement = placed(Allowed((0, 1)), 'priority = "fifo:40"', 'priority = "fifo:30"')
    assert [seat.cores for seat in placement.workers.values()] == [(1,), (1,)]
    assert placement.gate.cores == (0, 1)
    assert placement.warnings == ()


def test_where_there_is_one_core_it_is_not_real_time() -> None:
    placement = placed(Allowed((3,)), 'priority = "fifo:40"')
    assert placement.workers["w0"].cores == (3,)
    assert str(placement.workers["w0"].priority) == "other"
    assert "worker.w0.priority: fifo:40" in placement.warnings[0]


def test_it_keeps_off_the_gate_and_off_the_others() -> None:
    placement = placed(Allowed((0, 1, 2, 3)), "cores = [3]", "", "threads = 2", gate="cores = [0]")
    assert [seat.cores for seat in placement.workers.values()] == [(3,), (2,), (1, 3)]


@pytest.mark.parametrize(
    ("workers", "gate", "problem"),
    [
        (["cores = [2]"], "", "worker.w0.cores: 2 is not among the allowed cores 0-1"),
        ([""], "cores = [0, 7]", "gate.cores: 7 is not among the allowed cores 0-1"),
        (["threads = 3"], "", "worker.w0.threads: 3 is above the 2 of the allowed cores 0-1"),
        (
            ['cores = [0]\npriority = "fifo:1"', 'cores = [1]\npriority = "fifo:2"'],
            "",
            "worker: the real-time ones (w0, w1) cover every allowed core (0-1)",
        ),
    ],
)
def test_what_cannot_be(workers: list[str], gate: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        placed(Allowed((0, 1)), *workers, gate=gate)
    assert caught.value.problems == [problem]


def test_a_quota_bounds_the_threads() -> None:
    assert Allowed((0, 1, 2, 3), 1.5).threads == 1
    assert Allowed((0, 1), 0.25).threads == 1
    assert Allowed((0, 1), 8.0).threads == 2
    with pytest.raises(ConfigError, match="2 is above the 1 of the control group's quota"):
        placed(Allowed((0, 1, 2, 3), 1.5), "threads = 2")


@given(
    st.sets(st.integers(0, 7), min_size=1),
    st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=5),
)
def test_real_time_workers_never_cover_every_core(cores: set[int], wanted: list[tuple[int, bool]]) -> None:
    workers = [f"threads = {n}" + ('\npriority = "fifo:9"' if urgent else "") for n, urgent in wanted]
    allowed = Allowed(tuple(sorted(cores)))
    if max(n for n, _ in wanted) > len(cores):
        with pytest.raises(ConfigError):
            placed(allowed, *workers)
        return
    placement = placed(allowed, *workers)
    seats = placement.workers.values()
    assert all(len(seat.cores) == seat.threads and set(seat.cores) <= cores for seat in seats)
    assert {core for seat in seats if seat.priority.realtime for core in seat.cores} < cores
