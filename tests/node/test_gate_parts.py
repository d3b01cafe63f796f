"""The gate's parts that need no running node: latch, folder, watch of the file, relay, status."""

import json
import os
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zmq
from harness import CONFIG, DEFAULTS, write_mean_model

from reflexarc.control.decision import Decision
from reflexarc.control.estop import EStop
from reflexarc.control.gate import Gate
from reflexarc.node import clock, wire
from reflexarc.node.config.load import parse
from reflexarc.node.config.schema import Config
from reflexarc.node.gate import folder as runtime
from reflexarc.node.gate.channels import channel_specs
from reflexarc.node.gate.intake import MOST_A_TURN, Intake
from reflexarc.node.gate.latch import Keeper, LatchFile
from reflexarc.node.gate.main import _estop
from reflexarc.node.gate.reload import fixed_changes
from reflexarc.node.gate.report import status, streams_alive
from reflexarc.node.gate.watch import POLL_NS, Verdict, Watch
from reflexarc.node.sockets import Sockets

PORTS = {"publish": 5001, "estop": 5002, "sensor": 5003}


def text(**changes: Any) -> str:
    return CONFIG.format(**{**DEFAULTS, **PORTS, **changes})


def config(**changes: Any) -> Config:
    return parse(text(**changes), Path("/nowhere"))


# The latch.


def test_latch_outlives_and_ends(tmp_path):
    file = LatchFile(tmp_path / "latch")
    assert file.read() is None
    estop = EStop(0)
    keeper = Keeper(file, estop)
    keeper.write(0)
    assert file.read() is None, "nothing has changed"
    estop.message({"stop": True, "id": "button"}, 1)
    keeper.write(1)
    keeper.sync(1)
    assert _estop(config(), file, 5).words == "estop:button"
    estop.message({"stop": False, "id": "button"}, 10**10)
    keeper.write(2)
    assert _estop(config(), file, 5).words == ""
    assert [path.name for path in tmp_path.iterdir()] == ["latch"]


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff\xfe", b"[1]", b'"stop"', b'{"a": 1}', b"[" * 100_000])
def test_a_latch_that_cannot_be_read_is_a_stop(tmp_path, raw):
    (tmp_path / "latch").write_bytes(raw)
    assert _estop(config(), LatchFile(tmp_path / "latch"), 0).words == "estop:corrupt"


def test_a_latch_cut_at_any_byte_is_never_a_release(tmp_path):
    estop = EStop(0)
    estop.message({"stop": True, "id": "button"}, 1)
    whole = json.dumps(estop.to_map()).encode()
    for size in range(len(whole)):
        (tmp_path / "latch").write_bytes(whole[:size])
        assert _estop(config(), LatchFile(tmp_path / "latch"), 0).words != ""


def test_a_latch_that_cannot_be_written_still_acts_and_is_tried_again(tmp_path, capfd):
    file = LatchFile(tmp_path / "gone" / "latch")
    estop = EStop(0)
    keeper = Keeper(file, estop)
    estop.message({"stop": True, "id": "button"}, 1)
    for now in range(3):
        keeper.write(now)
    assert capfd.readouterr().err.count("would not outlive") == 1
    (tmp_path / "gone").mkdir()
    keeper.write(3)
    assert _estop(config(), file, 5).words == "estop:button"


# The runtime folder.


def test_folder_is_private_and_locked(tmp_path, monkeypatch):
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / "run"))
    folder = runtime.runtime_folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    lock = runtime.take(folder, "arm")
    with pytest.raises(runtime.FolderError, match="arm runs already"):
        runtime.take(folder, "arm")
    (folder / "arm.w.0.0.sock").touch()
    (folder / "leg.w.0.0.sock").touch()
    lock.release()
    runtime.take(folder, "arm").release()
    assert not (folder / "arm.w.0.0.sock").exists()
    assert (folder / "leg.w.0.0.sock").exists()


def test_folder_of_others_is_refused(tmp_path, monkeypatch):
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    for path in (open_to_all, link):
        monkeypatch.setenv("RUNTIME_DIRECTORY", str(path))
        with pytest.raises(runtime.FolderError, match="only this user can write"):
            runtime.runtime_folder()
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / "no" / "where"))
    with pytest.raises(runtime.FolderError, match="cannot be made"):
        runtime.runtime_folder()


def test_folder_with_too_long_a_path_is_refused():
    runtime.check_room(Path("/run/reflexarc"), "exosuit", "reflex")
    with pytest.raises(runtime.FolderError, match=r"may take \d+ bytes, above 107"):
        runtime.check_room(Path("/" + 80 * "x"), "exosuit", "reflex")


def test_folder_by_user(tmp_path, monkeypatch):
    monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert runtime.runtime_folder() == tmp_path / "reflexarc"
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert runtime.runtime_folder() == Path(f"/tmp/reflexarc-{os.geteuid()}")


# Children. In a process of their own: a thread of another library would swallow SIGCHLD.

CHILDREN = """
import os, select, signal, sys
from reflexarc.node.gate.child import Child, let_children_go

let_children_go()
ways = ("pass", "import sys; sys.exit(3)", "import os; os.kill(os.getpid(), 9)", "import os; os.abort()")
for code in ways:
    child = Child([sys.executable, "-c", code], {}, os.environ)
    assert select.select([child.fd], [], [], 10)[0]
    print(child.ended(), os.path.exists(f"/proc/{child.pid}"))
    child.send(9)
    child.close()

reader, writer = os.pipe()
code = "import signal, sys, time; print(signal.pthread_sigmask(0, ()), flush=True); time.sleep(60)"
child = Child([sys.executable, "-c", code], {1: writer}, os.environ)
print(os.read(reader, 100).decode().strip(), child.ended() == "", child.resident_mb() > 5)
child.send(signal.SIGTERM)
assert select.select([child.fd], [], [], 10)[0]
print(child.ended(), child.resident_mb())

child = Child([sys.executable, "-c", code], {1: writer}, os.environ)
child.close()
print(os.path.exists(f"/proc/{child.pid}"))
try:
    Child(["/no/where"], {}, {})
except OSError as error:
    print(error.strerror)
"""


def test_children_tell_how_they_ended_and_leave_no_zombie():
    done = subprocess.run([sys.executable, "-c", CHILDREN], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "exit code 0 False",
        "exit code 3 False",
        "killed by SIGKILL False",
        "killed by SIGABRT False",
        "set() True True",
        "killed by SIGTERM 0.0",
        "False",
        "No such file or directory",
    ]


# The watch over the file. The check is a real child process.


def verdict(watch: Watch, now: int) -> Verdict:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        now += POLL_NS
        if (found := watch.poll(now)) is not None:
            return found
        time.sleep(0.02)
    raise AssertionError("no verdict")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_mean_model(tmp_path / "mean.onnx")
    path = tmp_path / "node.toml"
    path.write_text(text())
    return path


def test_watch_checks_what_has_changed_and_kept_still(file):
    watch = Watch(file, 0, os.sched_getaffinity(0))
    assert watch.poll(POLL_NS) is None
    file.write_text(text(up=1))
    assert watch.poll(2 * POLL_NS) is None
    assert watch._check is None, "it may still be written"
    assert watch.poll(3 * POLL_NS) is None
    assert watch._check is not None
    found = verdict(watch, 4 * POLL_NS)
    assert found.error == ""
    assert found.config is not None
    assert found.config.text == text(up=1)
    assert watch.poll(10**12) is None
    assert watch._check is None, "once is enough"


def test_watch_gives_the_words_of_the_check(file):
    watch = Watch(file, 0, os.sched_getaffinity(0))
    file.write_text(text(max_age_ms=1))
    found = verdict(watch, 0)
    assert found.config is None
    assert "channel.lift.max_age_ms: 1 is below 50" in found.error
    file.unlink()
    assert "cannot be read" in verdict(watch, 10**12).error


def test_watch_asked_checks_at_once(file):
    watch = Watch(file, 0, os.sched_getaffinity(0))
    watch.request()
    watch.poll(1)
    assert verdict(watch, 1).config is not None
    watch.request()
    watch.poll(2)
    watch.close()
    assert watch._check is None


def test_a_file_that_changes_under_the_check_is_not_taken(file):
    watch = Watch(file, 0, os.sched_getaffinity(0))
    watch.request()
    watch.poll(1)
    file.write_text(text(up=1))
    assert "changed while it was checked" in verdict(watch, 1).error
    assert verdict(watch, 10**12).config is not None


def test_what_cannot_change():
    assert list(fixed_changes(config(), config(up=1, shutdown_ms=1))) == []
    other = config(publish=6001, heartbeat_ms=500)
    assert list(fixed_changes(config(), other)) == ["node.publish", "gate.estop"]


# What workers send.


class Bench:
    """A worker as the gate knows it, its socket and the test at the other end; no process."""

    def __init__(self, sockets: Sockets, path: Path, acts: bool = True) -> None:
        self.core = Gate(channel_specs(config()), 1, clock.now())
        self.sent: list[Any] = []
        self.intake = Intake(self.core if acts else None)
        endpoint = f"ipc://{path}"
        self.process: Any = SimpleNamespace(
            name="reflex",
            session=7,
            pipelines=frozenset(("move",)),
            socket=sockets.puller(endpoint, "w", max_bytes=wire.MAX_BYTES),
            counts=Counter(),
            greeted=0,
            heard=0,
            epoch=0,
            health={},
            answering=set(),
        )
        self.push = sockets.pusher(endpoint)

    def send(self, *parts: bytes) -> bool:
        assert self.push.poll(1000, zmq.POLLOUT)
        self.push.send_multipart(parts)
        assert self.process.socket.poll(1000)
        more = self.intake.drain(self.process)
        self.sent += self.intake.passed()
        return more

    def decide(self, session: int = 7, epoch: int = 0, seq: int = 0, received: int | None = None) -> None:
        decision = Decision(
            pipeline="move",
            session=session,
            seq=seq,
            t=1,
            source_t=2,
            source_seq=3,
            received=clock.now() if received is None else received,
            epoch=epoch,
            label="UP",
            confidence=1.0,
            available=True,
            values={},
        )
        self.send(*wire.encode("decision/move", decision.to_map()))

    def taken(self) -> int:
        return self.core.channels["lift"].counts["taken"]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Sockets() as sockets:
        yield Bench(sockets, tmp_path / "w.sock")


def test_decisions_count_after_the_hello_with_its_session(bench):
    bench.decide()
    bench.send(*wire.encode("hello/reflex", {"session": 6}))
    bench.decide()
    assert bench.process.counts["session"] == 3
    bench.send(*wire.encode("hello/reflex", {"session": 7}))
    bench.decide(session=6)
    assert bench.taken() == 0
    assert bench.sent == []
    bench.decide(seq=1)
    assert bench.taken() == 1
    assert bench.process.answering == {"move"}
    assert [topic for topic, _ in bench.sent] == [b"decision/move"]


def test_what_was_received_before_the_hello_does_not_act(bench):
    before = clock.now()
    bench.send(*wire.encode("hello/reflex", {"session": 7}))
    bench.decide(received=before)
    assert bench.core.channels["lift"].counts["old"] == 1


def test_a_new_epoch_voids_what_was_before(bench):
    bench.send(*wire.encode("hello/reflex", {"session": 7}))
    bench.decide()
    before = clock.now()
    bench.send(*wire.encode("health/reflex", {"session": 7, "epoch": 1}))
    bench.decide(seq=1, epoch=1, received=before)
    assert bench.core.channels["lift"].counts["old"] == 1
    bench.decide(seq=2, epoch=2)
    assert bench.taken() == 2
    bench.decide(seq=3, epoch=1)
    assert bench.taken() == 2


def test_only_its_own_is_handed_on(bench):
    bench.send(*wire.encode("hello/reflex", {"session": 7}))
    for parts in (
        wire.encode("control/lift", {"state": "NORMAL"}),
        wire.encode("trace/other", {}),
        wire.encode("health/gate", {"session": 7}),
        wire.encode("health/move", {"session": 7}),
        wire.encode("hello/other", {"session": 7}),
        wire.encode("reflex", {}),
    ):
        bench.send(*parts)
    assert bench.process.counts == {"topic": 6}
    assert bench.sent == []
    bench.send(*wire.encode("trace/move", {"seq": 0}))
    bench.send(*wire.encode("health/reflex", {"session": 7}))
    assert [topic for topic, _ in bench.sent] == [b"trace/move", b"health/reflex"]


def test_a_flood_is_read_in_turns(bench):
    assert bench.push.poll(1000, zmq.POLLOUT)
    for _ in range(3 * MOST_A_TURN):
        bench.push.send_multipart([b"trace/move", b""])
    time.sleep(0.2)
    assert bench.intake.drain(bench.process)
    assert len(bench.intake.passed()) == MOST_A_TURN


def test_a_worker_in_the_wings_changes_nothing(tmp_path):
    with Sockets() as sockets:
        bench = Bench(sockets, tmp_path / "w.sock", acts=False)
        bench.send(*wire.encode("hello/reflex", {"session": 7}))
        bench.send(*wire.encode("health/reflex", {"session": 7, "epoch": 1}))
        bench.decide(epoch=1)
        assert bench.process.greeted
        assert bench.process.answering == {"move"}
        assert bench.taken() == 0
        assert bench.sent == []


# What the gate tells.


def crew(health: dict[str, Any] | None, greeted: int = 1) -> Any:
    process = None if health is None else SimpleNamespace(health=health, greeted=greeted)
    made = config()
    post = SimpleNamespace(worker=made.workers["reflex"], process=process, last_end="killed by SIGKILL")
    return SimpleNamespace(config=made, posts={"reflex": post})


def test_status_follows_the_data():
    core = Gate(channel_specs(config()), 1, 0)
    alive = crew({"stream.arm.alive": True, "stream.arm.rate_hz": 100.2})
    assert streams_alive(alive) == {"arm": True}
    assert streams_alive(crew({})) == streams_alive(crew(None)) == {"arm": False}
    assert status(core, alive, "") == "no channel; input: arm 100 Hz"
    core.step(0, 0)
    assert status(core, alive, "") == "SAFE (lift: waiting); input: arm 100 Hz"
    assert status(core, crew({}, 0), "") == "SAFE (lift: waiting); no input: arm; worker reflex: starting"
    line = status(core, crew(None), "node.name: x\nmore")
    assert line.endswith("; worker reflex: killed by SIGKILL; new configuration refused: node.name: x")


def test_channels_have_the_numbers_of_the_file():
    text_with_rate = text(max_age_ms=150, stale="ramp").replace("ttl_ms", "max_rate_hz = 200\nttl_ms")
    (spec,) = channel_specs(parse(text_with_rate, Path("/nowhere")))
    assert (spec.name, spec.pipeline, spec.period_ns, spec.gap_ns) == ("lift", "move", 20_000_000, 5_000_000)
    assert (spec.max_age_ns, spec.ttl_ms, spec.stale, spec.estop) == (150_000_000, 100, "ramp", "jump")
    (value,) = spec.values
    assert (value.name, value.safe, value.limits.slew, value.limits.maximum) == ("force", 0, 100, 5)
