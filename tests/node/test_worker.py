"""The worker's inputs and loop: every message is accounted for, whatever it is. Real sockets, no model."""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
import zmq
from harness import free_ports

from reflexarc.node import clock, wire
from reflexarc.node.budget import resident
from reflexarc.node.clock import MS, SECOND
from reflexarc.node.config.schema import Classify, Pipeline, Stream, Window
from reflexarc.node.sockets import Sockets, receive, wait_for_subscriber
from reflexarc.node.worker import pipeline as step
from reflexarc.node.worker.inputs import Input, open_sources
from reflexarc.node.worker.loop import Loop
from reflexarc.node.worker.order import Order
from reflexarc.node.worker.task import Task, Timed

MIB = 1 << 20


class Info:
    def __init__(self, shape: tuple[int, ...]) -> None:
        self.name, self.shape, self.dtype = "x", shape, "f32"


class Mean:
    inputs = (Info((1, 10, 2)),)
    outputs = (Info((1, 2)),)

    def run(self, x: Any) -> list[Any]:
        return [x.mean(axis=1)]

    def raw(self, index: int) -> None:
        return None


class Rig:
    """A worker's loop with one stream, a sensor before it and a gate behind it."""

    def __init__(self, sockets: Sockets, folder: Path, queue: int = 1000) -> None:
        (port,) = free_ports(1)
        endpoint = f"tcp://127.0.0.1:{port}"
        stream = Stream(
            name="arm",
            endpoint=endpoint,
            topic="imu/arm",
            shape=(2,),
            rate_hz=1000.0,
            max_age_ms=200.0,
            queue=queue,
        )
        pipeline = Pipeline(
            name="move",
            worker="w",
            model=folder,
            window=Window(stream="arm", length_s=0.01, hop_s=0.005, length=10, hop=5),
            decide=Classify(kind="classify", labels=("UP", "DOWN")),
            deadline_ms=50.0,
        )
        model = Timed(Mean())  # type: ignore[arg-type]
        task = Task(step.Pipeline(pipeline, stream, model, session=7), model, 50 * MS)
        self.input = Input(stream, task.pipeline.windower)
        self.pull = sockets.puller(f"ipc://{folder}/gate.sock", "w", max_bytes=wire.MAX_BYTES)
        push = sockets.pusher(f"ipc://{folder}/gate.sock")
        self.sensor = sockets.announcing_publisher(endpoint, "s", queue=100_000)
        self.sources = open_sources(sockets, [stream], [self.input])
        self.loop = Loop("w", 7, 100 * MS, push, self.sources, [self.input], [task])
        assert wait_for_subscriber(self.sensor, b"imu/arm", 5)
        assert push.poll(1000, zmq.POLLOUT)
        self.seq = 0

    def good(self, count: int) -> None:
        for _ in range(count):
            message = {"seq": self.seq, "t": 10**18 + self.seq * MS, "data": [1.0, 0.0]}
            self.sensor.send_multipart([b"imu/arm", msgpack.packb(message)])
            self.seq += 1

    def turn(self, until: int, timeout_s: float = 5.0) -> None:
        """Turn until so many messages have been received."""
        end = time.monotonic() + timeout_s
        while self.input.account()["received"] < until:
            assert time.monotonic() < end, self.input.account()
            self.loop.turn(clock.now())

    def said(self) -> list[tuple[str, dict[str, object]]]:
        time.sleep(0.05)
        found = []
        while (parts := receive(self.pull)) is not None:
            found.append(wire.decode(parts))
        return found

    def account(self) -> dict[str, int]:
        account = self.input.account()
        dropped = sum(count for key, count in account.items() if key.startswith("dropped."))
        assert account["received"] == account["processed"] + dropped + account["queued"], account
        return account


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Sockets() as sockets:
        yield Rig(sockets, tmp_path)


def test_frames_become_decisions_and_traces(rig):
    rig.good(20)
    rig.turn(20)
    said = rig.said()
    decisions = [plain for topic, plain in said if topic == "decision/move"]
    traces = [plain for topic, plain in said if topic == "trace/move"]
    assert [plain["source_seq"] for plain in decisions] == [9, 14, 19]
    assert [plain["tick"] for plain in traces] == [0, 1, 2]
    assert {plain["label"] for plain in decisions} == {"UP"}
    health = [plain for topic, plain in said if topic == "health/w"][-1]
    assert health["stream.arm.received"] <= 20
    assert health["session"] == 7
    assert rig.account()["processed"] == 20


def test_whatever_comes_is_counted(rig):
    rig.good(3)
    frame = {"seq": 3, "t": 1, "data": [1.0, 2.0]}
    odd = [
        [b"imu/arm"],
        [b"imu/arm", b"", b""],
        [b"imu/arm", b"\xc1"],
        [b"imu/arm", msgpack.packb({**frame, "data": [1.0, 2.0, 3.0]})],
        [b"imu/arm", msgpack.packb({**frame, "data": [1.0, float("nan")]})],
        [b"imu/arm", msgpack.packb({**frame, "seq": -1})],
        [b"imu/arm", msgpack.packb([1])],
        [b"imu/arm", b"\x81" * 400],
        [b"imu/army", msgpack.packb(frame)],
    ]
    for parts in odd:
        rig.sensor.send_multipart(parts)
    rig.good(3)
    rig.turn(3 + len(odd) - 1 + 3)
    account = rig.account()
    assert account["dropped.parts"] == 2
    assert account["dropped.finite"] == account["dropped.seq"] == 1
    assert rig.sources[0].stray == 1
    assert rig.input.health.state(clock.now()).alive


def test_a_standstill_throws_away_and_begins_an_epoch(rig):
    rig.good(12)
    rig.turn(12)
    rig.said()
    rig.good(30)
    time.sleep(0.2)
    rig.loop._stalled(clock.now())
    said = rig.said()
    assert said[0][0] == "health/w"
    assert said[0][1]["epoch"] == 1
    assert said[1][1]["available"] is False
    assert said[2][1]["interrupt"] == "stall"
    rig.turn(42)
    account = rig.account()
    assert account["dropped.stall"] == 30
    assert rig.said() == [] or all(topic == "health/w" for topic, _ in rig.said())
    rig.good(10)
    rig.turn(52)
    (decision,) = [p for topic, p in rig.said() if topic == "decision/move" and p["available"]]
    assert (decision["epoch"], decision["source_seq"]) == (1, 51)


def test_a_silent_stream_is_said_once(rig):
    rig.good(12)
    rig.turn(12)
    rig.said()
    end = time.monotonic() + 0.4
    while time.monotonic() < end:
        rig.loop.turn(clock.now())
        time.sleep(0.01)
    said = rig.said()
    assert [plain["interrupt"] for topic, plain in said if topic == "trace/move"] == ["dead"]
    assert [plain["available"] for topic, plain in said if topic == "decision/move"] == [False]
    assert any(topic == "health/w" and plain["stream.arm.alive"] is False for topic, plain in said)


def test_a_gate_that_does_not_read_costs_messages_not_time(tmp_path):
    with Sockets() as sockets:
        rig = Rig(sockets, tmp_path)
        for _ in range(200):
            rig.good(100)
            rig.turn(rig.seq)
        assert rig.loop.unsent > 0
        assert rig.account()["processed"] == 20_000


def test_hostile_frames(tmp_path):
    """100,000 fuzzed messages: no exception, every one counted, memory stays."""
    with Sockets() as sockets:
        rig = Rig(sockets, tmp_path, queue=100_000)
        rig.good(100)
        rig.turn(100)
        chance = random.Random(1)
        good = [msgpack.packb({"seq": i, "t": i * MS, "data": [float(i), -1.0]}) for i in range(100, 150)] + [
            msgpack.packb({"seq": 1, "t": 1, "data": {"dtype": "<f4", "shape": [2], "data": b"\0" * 8}}),
            msgpack.packb({b"nd": True, b"type": "<i2", b"shape": [2], b"data": b"\0" * 4}),
            b"\xdf\xff\xff\xff\xff",
            b"\xdd\x00\xff\xff\xff",
            b"\x91" * 300,
            b"\x80" * 500,
            b"\x85" + b"\xa1a\x80" * 60,
        ]
        before = resident()
        sent = 100
        begin = time.monotonic()
        for _ in range(1000):
            for _ in range(100):
                raw = bytearray(chance.choice(good))
                for _ in range(chance.randrange(4)):
                    raw[chance.randrange(len(raw))] = chance.randrange(256)
                rig.sensor.send_multipart([b"imu/arm", bytes(raw[: chance.randrange(1, len(raw) + 1)])])
            sent += 100
            rig.turn(sent)
            while receive(rig.pull) is not None:
                pass
        assert (resident() - before) / MIB <= 20
        assert rig.account()["received"] == 100_100
        assert time.monotonic() - begin < 120


def test_the_wall_clock_decides_nothing(rig, monkeypatch):
    """Stamps of decisions follow the wall clock; which windows are decided and when does not."""
    steps = iter([10**18, 0, 2 * 10**18, 5, 10**17])
    monkeypatch.setattr(clock, "wall", lambda: next(steps, 10**18))
    rig.good(20)
    rig.turn(20)
    decisions = [plain for topic, plain in rig.said() if topic == "decision/move"]
    assert [plain["source_seq"] for plain in decisions] == [9, 14, 19]
    received = [int(str(plain["received"])) for plain in decisions]
    assert received == sorted(received)
    assert clock.now() - received[-1] < 5 * SECOND


def test_order_goes_through_a_line():
    order = Order("text\n", "/base", "w", "ipc://x", 7, os.getpid(), (0, 1), (1,), 1, "fifo", 40)
    assert order.to_line().count(b"\n") == 1
    back = Order.from_line(order.to_line())
    assert np.array_equal(back.cores, order.cores)
    assert back.text == order.text
    for bad in (b"", b"[]", b"{}", b'{"text": 1}'):
        with pytest.raises(ValueError, match=r"."):
            Order.from_line(bad)
