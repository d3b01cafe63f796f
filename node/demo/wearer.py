"""The wearer of the demo: plays the recording as the watch would, and feels the commands that come back.

A process of its own, so that nothing on the screen can delay a sample or a time stamp. It reads one JSON line
(config, recording, speed) and writes one at the end: what was sent, how many commands came, and the
latencies.
"""

import json
import select
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

import msgpack
import zmq

from reflexarc.node import wire
from reflexarc.node.clock import SECOND, now
from reflexarc.node.config.load import load
from reflexarc.node.config.priority import Priority
from reflexarc.node.config.schema import Config
from reflexarc.node.endpoints import BindError
from reflexarc.node.log import read_log
from reflexarc.node.player import Player, stream_sockets
from reflexarc.node.realtime import prioritize
from reflexarc.node.sockets import Sockets, receive, wait_for_subscriber

BELOW_THE_NODE = Priority("fifo", 30)  # where permitted: a sensor and an actuator have cores of their own
JOIN_S = 60.0  # for the node to subscribe
LINGER_NS = SECOND  # for the last commands


@dataclass(slots=True)
class Felt:
    """Samples sent and commands received: the time from the one to the first command made of it, in ns."""

    sent: dict[int, int] = field(default_factory=dict)
    latency: list[int] = field(default_factory=list)
    commands: int = 0
    _newest: int = -1

    def on_sent(self, _topic: str, stamp: int, payload: bytes) -> None:
        """Note when a sample left."""
        self.sent[msgpack.unpackb(payload)["seq"]] = stamp

    def on_command(self, plain: dict[str, object], stamp: int) -> None:
        """Note a command, and its latency if it is the first of its sample."""
        self.commands += 1
        seq = plain["source_seq"]
        if isinstance(seq, int) and seq > self._newest and seq in self.sent:
            self._newest = seq
            self.latency.append(stamp - self.sent[seq])


def wear(config: Config, recording: Path, speed: float) -> dict[str, object]:
    """Play the recording once; gives the account."""
    entries, _ = read_log(recording)
    felt = Felt()
    with Sockets() as sockets:
        out = stream_sockets(sockets, config)
        commands = sockets.subscriber(config.node.publish, [wire.CONTROL], max_bytes=wire.MAX_BYTES)
        for topic, socket in out.items():
            if not wait_for_subscriber(socket, topic.encode(), JOIN_S):
                raise TimeoutError(f"the node did not subscribe {topic} within {JOIN_S:g} s")
        player = Player(entries, out, speed)
        while (due := player.send(now(), felt.on_sent)) is not None:
            _feel(commands, felt, due)
        end = now() + LINGER_NS
        while now() < end:
            _feel(commands, felt, end)
    return {"sent": player.sent, "commands": felt.commands, "latency_ns": felt.latency}


def _feel(commands: zmq.Socket[bytes], felt: Felt, until: int) -> None:
    """Wait for `until` or a command, and take what has come."""
    select.select([commands], [], [], max(0, until - now()) / SECOND)
    while (parts := receive(commands)) is not None:
        felt.on_command(wire.decode(parts)[1], now())


def main() -> None:
    """Read the order, play, write the account; Ctrl-C is the parent's to hear."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    order = json.loads(sys.stdin.readline())
    prioritize(BELOW_THE_NODE, "wearer")
    try:
        account = wear(load(Path(order["config"])), Path(order["recording"]), order["speed"])
    except (BindError, TimeoutError) as error:
        sys.exit(str(error))
    print(json.dumps(account), flush=True)


if __name__ == "__main__":
    main()
