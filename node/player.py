"""Publishes a recording's messages at their recorded pace, as the sensors did."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from time import sleep
from typing import Final

import zmq

from reflexarc.node.clock import MS, SECOND, now
from reflexarc.node.config.schema import Config
from reflexarc.node.log import Entry
from reflexarc.node.sockets import Sockets, wait_for_subscriber

NAP_NS: Final = 50 * MS  # how long a stop can go unnoticed

Sent = Callable[[str, int, bytes], None]


class Player:
    """Sends entries on the sockets of their topics; entries of other topics are passed over.

    An entry is due `(time - time of the first) / speed` after the first call of `send`.
    """

    def __init__(
        self, entries: Iterable[Entry], sockets: Mapping[str, zmq.Socket[bytes]], speed: float
    ) -> None:
        if not 0 < speed < float("inf"):
            raise ValueError(f"speed {speed} is not above 0")
        self.sent = 0
        self._rest = (entry for entry in entries if entry.topic in sockets)
        self._next = next(self._rest, None)
        self._first = self._next.time if self._next else 0
        self._sockets = {topic: (topic.encode(), socket) for topic, socket in sockets.items()}
        self._speed = speed
        self._begin: int | None = None

    def send(self, at: int, on_sent: Sent | None = None) -> int | None:
        """Send what is due at `at` (monotonic ns); gives when the next is due, None at the end."""
        if self._begin is None:
            self._begin = at
        while (entry := self._next) is not None:
            due = self._begin + round((entry.time - self._first) / self._speed)
            if due > at:
                return due
            topic, socket = self._sockets[entry.topic]
            stamp = now()
            socket.send_multipart((topic, entry.payload))
            self.sent += 1
            if on_sent is not None:
                on_sent(entry.topic, stamp, entry.payload)
            self._next = next(self._rest, None)
        return None


def stream_sockets(sockets: Sockets, config: Config) -> dict[str, zmq.Socket[bytes]]:
    """A publisher for each stream of a configuration, by topic. Raises BindError where one is taken."""
    bound: dict[str, zmq.Socket[bytes]] = {}
    out: dict[str, zmq.Socket[bytes]] = {}
    for stream in config.streams.values():
        if stream.endpoint not in bound:
            key = f"stream.{stream.name}.endpoint"
            bound[stream.endpoint] = sockets.announcing_publisher(stream.endpoint, key, queue=100_000)
        out[stream.topic] = bound[stream.endpoint]
    return out


def play(
    entries: Iterable[Entry], config: Config, speed: float, stopped: Callable[[], bool], wait_s: float
) -> int:
    """Play to whoever subscribes the configuration's streams; gives the number of messages sent.

    Waits at most `wait_s` for a subscriber of each stream: a slow joiner would miss the first messages.
    """
    with ExitStack() as stack:
        sockets = stack.enter_context(Sockets())
        out = stream_sockets(sockets, config)
        for topic, socket in out.items():
            if not wait_for_subscriber(socket, topic.encode(), wait_s):
                raise ValueError(f"nobody subscribed {topic} within {wait_s:g} s: is the node running?")
        player = Player(entries, out, speed)
        while not stopped() and (due := player.send(now())) is not None:
            sleep(max(0, min(due - now(), NAP_NS)) / SECOND)
        return player.sent
