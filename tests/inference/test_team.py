"""The team: programs run by all threads in step, alone, asleep or spinning; refusals; a clean end."""

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from compile_for import compile_for
from numpy.typing import NDArray

from reflexarc.inference.image import Image, ImageStore, open_image
from reflexarc.inference.image_file import write
from reflexarc.inference.isa import choose
from reflexarc.inference.team import Team, TeamError
from reflexarc.inference.team_block import ALONE, ARRIVALS, JOIN, LINES

KERNELS = Path(__file__).parent / "team_kernels.py"
CORES = sorted(os.sched_getaffinity(0))
two_cores = pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Image:
    cache = tmp_path_factory.mktemp("cache")
    cache.chmod(0o700)
    return ImageStore(cache=cache).load(["team"])["team"]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Image:
    built = compile_for(choose(), KERNELS)
    return open_image(write(tmp_path_factory.mktemp("k"), "team", choose(), "", built.code, built.entries))


@pytest.fixture(autouse=True)
def all_cores() -> Iterator[None]:
    yield
    os.sched_setaffinity(0, CORES)


def program(*instructions: list[int]) -> NDArray[np.int64]:
    words = np.zeros((len(instructions), 8), np.int64)
    for row, instruction in zip(words, instructions, strict=True):
        row[: len(instruction)] = instruction
    return words


def counting(kernels: Image, flags: int = JOIN) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    counters = np.zeros((8, 8), np.int64)
    return program([kernels.address("count") | flags, counters.ctypes.data]), counters


def test_one_thread(loop: Image, kernels: Image) -> None:
    words, counters = counting(kernels, ALONE | JOIN)
    before = threading.active_count()
    team = Team(loop)
    assert (team.threads, threading.active_count()) == (1, before)
    team.run(words.ctypes.data, 1)
    team.bind(words.ctypes.data, 1)()
    assert counters[0, :2].tolist() == [2, 1]
    assert os.sched_getaffinity(0) == set(CORES)


@two_cores
@pytest.mark.parametrize("spin_us", [0, 50, 100_000])
def test_threads_run_in_step(loop: Image, kernels: Image, spin_us: int) -> None:
    """Each sum sees what all threads wrote just before it, and none of what they write just after."""
    slots, sums = np.zeros((2, 8), np.int64), np.zeros(8, np.int64)
    mark, total = kernels.address("mark") | JOIN, kernels.address("total") | ALONE | JOIN
    instructions = []
    for value in range(1, 21):
        instructions += [[mark, slots.ctypes.data, value], [total, slots.ctypes.data, sums.ctypes.data, 2]]
    words = program(*instructions)
    team = Team(loop, 2, spin_us=spin_us)
    rounds = 200 if spin_us else 20
    run = team.bind(words.ctypes.data, len(words))
    for _ in range(rounds):
        run()
    team.close()
    assert sums[0] == rounds * 2 * sum(range(1, 21))


@two_cores
def test_alone_and_asleep(loop: Image, kernels: Image) -> None:
    team = Team(loop, 2, spin_us=1)
    words, counters = counting(kernels, ALONE)
    team.run(words.ctypes.data, 1)
    assert counters[:2, 0].tolist() == [1, 0]
    assert counters[0, 1] == 1
    team.run(words.ctypes.data, 1, together=False)
    team.bind(words.ctypes.data, 1, together=False)()
    assert counters[:2, 0].tolist() == [3, 0]
    assert counters[0, 1] == 1
    words, counters = counting(kernels)
    for _ in range(3):
        team.run(words.ctypes.data, 1)
        time.sleep(0.01)  # the helper is asleep by now
    assert counters[:2, 0].tolist() == [3, 3]
    team.close()


@two_cores
def test_threads_are_pinned_and_freed(loop: Image) -> None:
    team = Team(loop, 2, cores=CORES[:2])
    assert os.sched_getaffinity(0) == {CORES[0]}
    time.sleep(0.05)
    (helper,) = (t for t in threading.enumerate() if t.name == "team-1")
    assert os.sched_getaffinity(helper.native_id or 0) == {CORES[1]}
    team.close()
    team.close()
    assert not helper.is_alive()
    assert os.sched_getaffinity(0) == set(CORES)
    with pytest.raises(TeamError, match="closed"):
        team.run(0, 0)


@two_cores
def test_counters_wrap(loop: Image, kernels: Image) -> None:
    """After 2**31 barriers, which is a month at 1 kHz."""
    words, counters = counting(kernels)
    words = np.concatenate([words] * 3)
    team = Team(loop, 2)
    for thread in range(2):
        team._block[ARRIVALS + LINES * thread] = 0x7FFFFFFE
    for _ in range(5):
        team.run(words.ctypes.data, 3)
    team.close()
    assert counters[:2, 0].tolist() == [15, 15]


@two_cores
@pytest.mark.parametrize("fifo", [False, True])
def test_threads_on_one_core_do_not_hang_it(loop: Image, kernels: Image, fifo: bool) -> None:
    """Both threads forced on one core, real-time or not: the barrier sleeps, so both get their turn."""
    words, counters = counting(kernels)
    words = np.concatenate([words] * 4)
    team = Team(loop, 2, spin_us=20)
    time.sleep(0.05)
    (helper,) = (t for t in threading.enumerate() if t.name == "team-1")
    os.sched_setaffinity(helper.native_id or 0, {CORES[0]})
    if fifo:
        try:
            for thread in (0, helper.native_id or 0):
                os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(1))
        except PermissionError:
            team.close()
            pytest.skip("SCHED_FIFO is not permitted")
    try:
        for _ in range(50):
            team.run(words.ctypes.data, 4)
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    team.close()
    assert counters[:2, 0].tolist() == [200, 200]


@two_cores
def test_a_second_run_meanwhile_is_refused(loop: Image, kernels: Image) -> None:
    words = program([kernels.address("linger"), 200_000_000])
    words[0, 0] |= ALONE
    team = Team(loop, 2)
    first = threading.Thread(target=team.run, args=(words.ctypes.data, 1))
    first.start()
    time.sleep(0.02)
    with pytest.raises(TeamError, match="running a program for another thread"):
        team.run(words.ctypes.data, 1)
    first.join()
    team.close()


@two_cores
def test_no_gil_while_running(loop: Image, kernels: Image) -> None:
    words = program([kernels.address("linger"), 100_000_000])
    team = Team(loop)
    runner = threading.Thread(target=team.run, args=(words.ctypes.data, 1))
    runner.start()
    turns = 0
    while runner.is_alive():
        turns += 1
    assert turns > 1000


def test_threads_are_at_most_the_cores(loop: Image) -> None:
    with pytest.raises(
        TeamError, match=rf"threads = {len(CORES) + 1}: it must be between 1 and the {len(CORES)} cores"
    ):
        Team(loop, len(CORES) + 1)
    with pytest.raises(TeamError, match="threads = 2: it must be between 1 and the 1 cores"):
        Team(loop, 2, cores=[CORES[0], 4000])
    with pytest.raises(TeamError, match="threads = 0"):
        Team(loop, 0)


@two_cores
def test_forgotten_teams_end(loop: Image) -> None:
    team = Team(loop, 2)
    assert team.threads == 2
    del team
    gc.collect()
    assert not [t for t in threading.enumerate() if t.name == "team-1"]


@two_cores
def test_a_process_that_forgets_its_team_ends(loop: Image) -> None:
    code = f"""
from pathlib import Path
from reflexarc.inference.image import open_image
from reflexarc.inference.team import Team
team = Team(open_image(Path({str(loop.path)!r})), 2, spin_us=1_000_000)
team.run(0, 0)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=20)


@two_cores
def test_no_processor_time_when_idle(loop: Image) -> None:
    team = Team(loop, 2, spin_us=100)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.05
    team.close()
