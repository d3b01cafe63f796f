"""`reflexarc check` shows the plan, or everything that stands against it, in under 2 s."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

SHIPPED = Path(__file__).parents[2] / "configs" / "exosuit.toml"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The shipped configuration with its model, to be changed."""
    (tmp_path / "exosuit").mkdir()
    shutil.copy(SHIPPED.parent / "exosuit" / "exosuit.onnx", tmp_path / "exosuit")
    return Path(shutil.copy(SHIPPED, tmp_path / "node.toml"))


def check(*arguments: object) -> "subprocess.CompletedProcess[str]":
    """In a process of its own, for its memory stands for a worker's."""
    line = [sys.executable, "-m", "reflexarc.node.cli", "check", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def change(path: Path, old: str, new: str) -> str:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return str(path)


def test_the_plan(config: Path) -> None:
    start = time.perf_counter()
    done = check(config, "--json")
    assert time.perf_counter() - start < 2
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout.splitlines()[-1])
    assert plan["ok"]
    assert plan["problems"] == []
    worker = plan["workers"]["reflex"]
    assert worker["memory_mb"] == 80
    assert set(worker["memory"]) == {"runtime", "weights", "arena", "windows", "queues"}
    channel = plan["channels"]["assist_torque"]
    assert channel["least_age_ms"] <= channel["max_age_ms"]
    text = check(config).stdout
    assert "worker reflex: cores" in text
    assert "channel assist_torque: 50 to 1000 Hz from exercise" in text


def refused(path: object) -> list[str]:
    """The problems that check finds, told alike as JSON and as lines."""
    done = check(path, "--json")
    assert done.returncode == 2
    found = json.loads(done.stdout.splitlines()[-1])
    assert not found["ok"]
    assert all(problem in done.stderr for problem in found["problems"])
    problems: list[str] = found["problems"]
    return problems


def test_a_model_that_is_not_there(config: Path) -> None:
    path = change(config, "exosuit/exosuit.onnx", "none.onnx")
    assert refused(path) == [
        f"pipeline.exercise.model: {config.parent / 'none.onnx'}: No such file or directory"
    ]


def test_a_file_that_is_no_model(config: Path) -> None:
    (config.parent / "exosuit" / "exosuit.onnx").write_bytes(b"no model")
    (problem,) = refused(config)
    assert problem.startswith("pipeline.exercise.model: ")


def test_a_model_that_does_not_fit_the_window(config: Path) -> None:
    (problem,) = refused(change(config, "length_s = 4.0", "length_s = 2.0"))
    assert problem.startswith("pipeline.exercise")
    assert "100" in problem


def test_a_label_too_many(config: Path) -> None:
    (problem,) = refused(change(config, '"ROW"]', '"ROW", "JUMP"]'))
    assert problem.startswith("pipeline.exercise")
    assert "8" in problem


def test_memory_that_is_not_enough(config: Path) -> None:
    (problem,) = refused(change(config, "memory_mb = 80", "memory_mb = 17"))
    assert problem.startswith("worker.reflex.memory_mb: 17 is below the ")
    assert "runtime" in problem
    assert "arena" in problem


def test_cores_that_are_not_there(config: Path) -> None:
    (problem,) = refused(change(config, "threads = 1", "threads = 1\ncores = [4095]"))
    assert problem.startswith("worker.reflex.cores: 4095 is not among the allowed cores")


def test_what_takes_part_in_nothing_is_a_warning(config: Path) -> None:
    extra = """[worker.idle]
memory_mb = 64

[stream.spare]
endpoint = "tcp://127.0.0.1:5999"
topic = "x"
shape = [1]
rate_hz = 1
max_age_ms = 1000
"""
    path = change(config, "[pipeline.exercise]", f"{extra}\n[pipeline.exercise]")
    done = check(path)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert "warning: worker.idle: runs no pipeline" in text
    assert "warning: stream.spare: no pipeline reads it" in text
