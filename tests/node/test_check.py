"""`reflexarc check` shows the plan, or everything that stands against it, in under 2 s."""

import json
import shutil
import time
from pathlib import Path

import pytest

from reflexarc.node import cli

SHIPPED = Path(__file__).parents[2] / "configs" / "exosuit.toml"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The shipped configuration with its model, to be changed."""
    (tmp_path / "exosuit").mkdir()
    shutil.copy(SHIPPED.parent / "exosuit" / "exosuit.onnx", tmp_path / "exosuit")
    return Path(shutil.copy(SHIPPED, tmp_path / "node.toml"))


def change(path: Path, old: str, new: str) -> str:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return str(path)


def test_the_plan(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = time.perf_counter()
    assert cli.main(["check", str(config), "--json"]) == 0
    assert time.perf_counter() - start < 2
    plan = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert plan["ok"]
    assert plan["problems"] == []
    worker = plan["workers"]["reflex"]
    assert worker["memory_mb"] == 80
    assert set(worker["memory"]) == {"runtime", "weights", "arena", "windows", "queues"}
    assert (
        plan["channels"]["assist_torque"]["least_age_ms"] <= plan["channels"]["assist_torque"]["max_age_ms"]
    )
    assert cli.main(["check", str(config)]) == 0
    text = capsys.readouterr().out
    assert "worker reflex: cores" in text
    assert "channel assist_torque: 50 to 200 Hz from exercise" in text


def refused(path: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The problems that check finds, told alike as JSON and as lines."""
    assert cli.main(["check", path, "--json"]) == 2
    told = capsys.readouterr()
    found = json.loads(told.out.splitlines()[-1])
    assert not found["ok"]
    assert all(problem in told.err for problem in found["problems"])
    problems: list[str] = found["problems"]
    return problems


def test_a_model_that_is_not_there(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = change(config, "exosuit/exosuit.onnx", "none.onnx")
    assert refused(path, capsys) == [
        f"pipeline.exercise.model: {config.parent / 'none.onnx'}: No such file or directory"
    ]


def test_a_file_that_is_no_model(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (config.parent / "exosuit" / "exosuit.onnx").write_bytes(b"no model")
    (problem,) = refused(str(config), capsys)
    assert problem.startswith("pipeline.exercise.model: ")


def test_a_model_that_does_not_fit_the_window(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (problem,) = refused(change(config, "length_s = 4.0", "length_s = 2.0"), capsys)
    assert problem.startswith("pipeline.exercise")
    assert "100" in problem


def test_a_label_too_many(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (problem,) = refused(change(config, '"ROW"]', '"ROW", "JUMP"]'), capsys)
    assert problem.startswith("pipeline.exercise")
    assert "8" in problem


def test_memory_that_is_not_enough(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (problem,) = refused(change(config, "memory_mb = 80", "memory_mb = 17"), capsys)
    assert problem.startswith("worker.reflex.memory_mb: 17 is below the ")
    assert "runtime" in problem
    assert "arena" in problem


def test_cores_that_are_not_there(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (problem,) = refused(change(config, "threads = 1", "threads = 1\ncores = [4095]"), capsys)
    assert problem.startswith("worker.reflex.cores: 4095 is not among the allowed cores")


def test_what_takes_part_in_nothing_is_a_warning(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert cli.main(["check", path]) == 0
    text = capsys.readouterr().out
    assert "warning: worker.idle: runs no pipeline" in text
    assert "warning: stream.spare: no pipeline reads it" in text
