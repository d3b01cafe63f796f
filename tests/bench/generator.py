"""Feeds the node under load and times what comes back: `python -m reflexarc.bench.generator CONFIG SECONDS`.

Every ms one sample goes out on each stream. The last line of output is a JSON object.
"""

import json
import select
import sys
import time
from pathlib import Path

import msgpack

from reflexarc.node import wire
from reflexarc.node.config.load import load
from reflexarc.node.config.priority import Priority
from reflexarc.node.config.schema import Config
from reflexarc.node.player import stream_sockets
from reflexarc.node.realtime import prioritize
from reflexarc.node.sockets import Sockets, receive, wait_for_subscriber

PERIOD_NS = 1_000_000
BELOW_THE_NODE = Priority("fifo", 30)
WARM_UP_S = 2.0


class Generator:
    """Samples out, decisions and commands in."""

    def __init__(self, sockets: Sockets, config: Config) -> None:
        self._out = [(t.encode(), s) for t, s in stream_sockets(sockets, config).items()]
        for topic, socket in self._out:
            if not wait_for_subscriber(socket, topic, 60):
                raise TimeoutError(f"nobody subscribed {topic.decode()}")
        topics = [wire.CONTROL, wire.DECISION]
        self._ear = sockets.subscriber(config.node.publish, topics, max_bytes=wire.MAX_BYTES, queue=100_000)
        self._pack = msgpack.Packer().pack
        self.sent_at: list[int] = []
        self.newest: dict[str, int] = {}
        self.latency: list[tuple[int, int]] = []  # source_seq, ns
        self.commands = self.decisions = 0

    def send(self, seq: int) -> None:
        """One sample on each stream."""
        data = [(seq * 37 + k * 911) % 8000 - 4000 for k in range(6)]
        payload = self._pack({"seq": seq, "t": time.time_ns(), "data": data})
        self.sent_at.append(time.monotonic_ns())
        for topic, socket in self._out:
            socket.send_multipart((topic, payload))

    def listen(self, until: int) -> None:
        """Take what comes back until a time (monotonic ns)."""
        while True:
            while (parts := receive(self._ear)) is not None:
                self._take(parts, time.monotonic_ns())
            wait = until - time.monotonic_ns()
            if wait <= 0:
                return
            select.select([self._ear], [], [], wait / 1e9)

    def _take(self, parts: list[bytes], stamp: int) -> None:
        topic, plain = wire.decode(parts)
        if topic.startswith(wire.DECISION):
            self.decisions += 1
            return
        self.commands += 1
        seq = int(str(plain["source_seq"]))
        if seq > self.newest.get(topic, 0) and seq < len(self.sent_at):
            self.newest[topic] = seq
            self.latency.append((seq, stamp - self.sent_at[seq]))


def main() -> None:
    """Generate, listen, report."""
    config, seconds = load(Path(sys.argv[1])), float(sys.argv[2])
    prioritize(BELOW_THE_NODE, "generator")  # sensors and actuators do not wait for one another
    with Sockets() as sockets:
        generator = Generator(sockets, config)
        count = int((WARM_UP_S + seconds) * 1e9 / PERIOD_NS)
        begin = time.monotonic_ns()
        for seq in range(count):
            generator.listen(begin + seq * PERIOD_NS)
            generator.send(seq)
        generator.listen(time.monotonic_ns() + 300_000_000)
        print(json.dumps(report(generator, config, count)), flush=True)
        _stay(sockets)


def report(generator: Generator, config: Config, count: int) -> dict[str, object]:
    """What happened; latencies without the first seconds, in which the node wakes up."""
    first = int(WARM_UP_S * 1e9 / PERIOD_NS)
    ranked = sorted(ns / 1e6 for seq, ns in generator.latency if seq >= first)
    due = sum((count - p.window.length) // p.window.hop + 1 for p in config.pipelines.values())
    return {
        "sent": count * len(config.streams),
        "latency_ms": {
            "p50": ranked[len(ranked) // 2],
            "p99": ranked[len(ranked) * 99 // 100],
            "max": ranked[-1],
        },
        "commands": generator.commands,
        "decisions": generator.decisions,
        "decisions_due": due,
    }


def _stay(_sockets: Sockets) -> None:
    """Keep the streams connected until the parent has read the node's account."""
    time.sleep(5)


if __name__ == "__main__":
    main()
