"""`reflexarc doctor` tells what is there, and what to change."""

import json
import os
from pathlib import Path

import pytest

from reflexarc.inference.image import ImageStore
from reflexarc.inference.isa import runnable
from reflexarc.node import cli
from reflexarc.node.commands import doctor
from reflexarc.node.measure import best, int8_gops, read_gb_s


def test_the_facts(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--quick", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert facts["isa"]["chosen"] in facts["isa"]["runnable"]
    assert facts["cores"]["allowed"] == sorted(os.sched_getaffinity(0))
    assert facts["memory"]["total_mb"] > 100
    assert isinstance(facts["realtime"]["fifo"], bool)
    assert all(size["kib"] > 0 for size in facts["caches"].values())
    assert cli.main(["doctor", "--quick"]) == 0
    text = capsys.readouterr().out
    assert all(word in text for word in ("instructions", "cores", "real time", "kernels", "not measured"))


def test_looking_changes_nothing() -> None:
    before = os.sched_getscheduler(0), os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)
    doctor.gather()
    assert (os.sched_getscheduler(0), os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)) == before


def test_an_impossible_instruction_set_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = "avx2" if runnable()[0].arm else "neon"
    monkeypatch.setenv("REFLEXARC_ISA", foreign)
    assert cli.main(["doctor", "--quick", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["isa"]["chosen"] is None
    assert any(foreign in line for line in facts["advice"])


def test_advice() -> None:
    facts = doctor.gather()
    good = {
        **facts,
        "isa": {"chosen": "avx2", "runnable": ["avx2"], "error": None},
        "kernels": {"missing": [], "found": 9, "numba": None, "cache": ""},
        "realtime": {"fifo": True, "share": 0.95},
        "memory": {**facts["memory"], "lockable_mb": None, "swap_mb": 0},
        "cores": {**facts["cores"], "governor": "performance", "allowed": [0, 1]},
        "temperatures": {"cpu": 50.0},
    }
    assert doctor.advice(good) == []
    bad = {
        **good,
        "kernels": {"missing": ["conv8"], "found": 8, "numba": None, "cache": ""},
        "realtime": {"fifo": False, "share": 0.95},
        "memory": {**facts["memory"], "lockable_mb": 8.0, "swap_mb": 100},
        "cores": {**facts["cores"], "governor": "powersave", "allowed": [0]},
        "temperatures": {"cpu": 90.0},
    }
    assert len(doctor.advice(bad)) == 7


def test_measures_are_positive(tmp_path: Path) -> None:
    assert read_gb_s(1, 8 << 20) > 0.1
    assert read_gb_s(2, 8 << 20) > 0.1
    pytest.importorskip("numba")
    (tmp_path / "cache").mkdir(mode=0o700)
    images = ImageStore(cache=tmp_path / "cache")
    assert int8_gops(images) > 0.5
    assert int8_gops(images, 2) > 0.5


def test_jobs_run_side_by_side() -> None:
    seen: list[int] = []
    assert best([lambda: seen.append(1), lambda: seen.append(2)], rounds=3) >= 0
    assert sorted(seen) == [1, 1, 1, 2, 2, 2]
