"""A real node takes a new configuration over, or refuses it and goes on."""

import itertools
import os
import signal
import time

import pytest
from harness import CONFIG, SECOND, lives, node, running


def refusal(made) -> str:  # type: ignore[no-untyped-def]
    return made.listener.wait("health/gate", lambda p: p["refused"] != "", 15).plain["refused"]


def test_a_changed_file_is_taken_over_without_a_step(tmp_path):
    with running(tmp_path, slew=5) as (made, _):
        made.commands_until(lambda p: p["value.force"] == 4, 5)
        old = made.worker_pid()
        begin = time.monotonic_ns()
        made.configure(slew=5, up=2)
        made.commands_until(lambda p: p["value.force"] == 2, 20, since=begin)
        plains = [m.plain for m in made.listener.of("control/lift", begin)]
        assert {p["state"] for p in plains} == {"NORMAL"}
        assert len({p["session"] for p in plains}) == 1
        assert [p["seq"] for p in plains] == list(range(plains[0]["seq"], plains[0]["seq"] + len(plains)))
        for a, b in itertools.pairwise(plains):
            assert abs(b["value.force"] - a["value.force"]) <= 5 * (b["t"] - a["t"]) / SECOND * 1.01
        assert made.worker_pid() != old
        time.sleep(0.7)
        assert not lives(old)
        assert made.gate()["refused"] == ""


def test_the_check_may_use_more_cores_than_the_gate(tmp_path):
    first, *others = sorted(os.sched_getaffinity(0))
    if not others:
        pytest.skip("one core is too few to tell")
    seats = CONFIG.replace("[gate]", f"[gate]\ncores = [{first}]")
    seats = seats.replace("[worker.reflex]", f"[worker.reflex]\ncores = [{others[0]}]")
    with node(tmp_path) as made:
        made.configure(seats)
        made.sense()
        made.start().wait_normal()
        made.configure(seats, up=2)
        made.commands_until(lambda p: p["value.force"] == 2, 20)
        assert made.gate()["refused"] == ""


def test_a_mistake_changes_nothing(tmp_path):
    with running(tmp_path) as (made, _):
        worker = made.worker_pid()
        begin = time.monotonic_ns()
        made.configure(max_age_ms=5)
        made.kill(signal.SIGHUP)
        assert "channel.lift.max_age_ms: 5 is below 50" in refusal(made)
        assert "new configuration refused" in made.gate()["status"]
        assert "channel.lift.max_age_ms: 5 is below 50" in made.log.read_text()
        made.configure(CONFIG.replace("hop_s", "hopp_s"))
        made.listener.wait("health/gate", lambda p: "did you mean hop_s" in p["refused"], 15)
        assert made.worker_pid() == worker
        assert {m.plain["state"] for m in made.listener.of("control/lift", begin)} == {"NORMAL"}
        made.configure(up=1)
        made.commands_until(lambda p: p["value.force"] == 1, 20)
        assert made.gate()["refused"] == ""


def test_what_needs_a_restart_is_named(tmp_path):
    with running(tmp_path) as (made, _):
        made.configure(CONFIG.replace('name = "test"', 'name = "other"'), publish=made.ports["publish"] + 1)
        assert refusal(made) == "node.name: needs a restart; node.publish: needs a restart"
        made.configure(CONFIG.replace("stall_ms = 200\nestop", "stall_ms = 300\nestop"))
        assert made.listener.wait(
            "health/gate", lambda p: p["refused"] == "gate.stall_ms: needs a restart", 15
        )


def test_a_model_that_does_not_load_leaves_the_old_one(tmp_path):
    with running(tmp_path) as (made, _):
        worker = made.worker_pid()
        begin = time.monotonic_ns()
        (tmp_path / "broken.onnx").write_bytes((tmp_path / "mean.onnx").read_bytes()[:40])
        made.configure(CONFIG.replace("mean.onnx", "broken.onnx"))
        assert "broken.onnx" in refusal(made)
        assert made.worker_pid() == worker
        assert {m.plain["state"] for m in made.listener.of("control/lift", begin)} == {"NORMAL"}


def test_hangup_without_a_change_takes_the_model_anew(tmp_path):
    with running(tmp_path) as (made, _):
        old = made.worker_pid()
        made.kill(signal.SIGHUP)
        made.listener.wait("health/gate", lambda p: p["worker.reflex.pid"] not in (0, old), 20)
        assert made.wait_normal(1).plain["value.force"] == 4
