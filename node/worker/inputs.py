"""The sensor topics that a worker reads: sockets, decoding, health, and an account of every message.

Streams of one endpoint share a socket, so that an idle turn asks once and the order of receipt is kept. At
every moment, per stream, received = processed + dropped(reason) + queued.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import zmq

from reflexarc.node.config import schema
from reflexarc.node.connections import Connections
from reflexarc.node.sockets import Sockets
from reflexarc.node.worker.pipeline import stream_spec
from reflexarc.sensors.frame import Frame, Refused, decode
from reflexarc.sensors.health import StreamHealth
from reflexarc.sensors.window import Windower

MOST_A_TURN = 256  # messages of one socket in one turn of the loop


class Input:
    """One stream: what has come and what became of it, as the windower of its first pipeline counts it."""

    connections: Connections
    """Of the socket that it comes from, set by its `Source`."""

    def __init__(self, stream: schema.Stream, windower: Windower) -> None:
        self.name = stream.name
        self.spec = stream_spec(stream)
        self.health = StreamHealth(self.spec)
        self.inbox: list[Frame] = []  # decoded, not yet taken by the pipelines
        self.seen = self.health.state(0)  # as of the last `changed`
        self._windower = windower
        self._received = 0
        self._refused: Counter[str] = Counter()

    def take(self, payload: bytes, now: int) -> None:
        """Decode one message received at `now` (monotonic ns); its age counts from when it could be here."""
        self._received += 1
        try:
            frame = decode(payload, self.spec, now)
        except Refused as refused:
            self._refused[refused.reason] += 1
            self.health.on_refused(refused.reason)
            return
        self.health.on_frame(frame)
        frame.received = now - self.health.delay_ns(frame)
        self.inbox.append(frame)

    def discard(self, reason: str) -> None:
        """Count one message that is thrown away unread."""
        self._received += 1
        self._refused[reason] += 1

    def abandon(self, reason: str) -> None:
        """Throw away what is decoded and not yet taken."""
        if self.inbox:
            self._refused[reason] += len(self.inbox)
            self.inbox.clear()

    @property
    def alive(self) -> bool:
        """Whether the stream was alive at the last `changed`."""
        return self.seen.alive

    def changed(self, now: int, wall: int) -> bool:
        """Look at the health; gives whether anything but its numbers is other than at the last look."""
        before, after = self.seen, self.health.state(now, wall)
        self.seen = after
        return (before.alive, before.frozen, before.warnings) != (after.alive, after.frozen, after.warnings)

    def account(self) -> dict[str, int]:
        """The messages: received, processed, dropped.REASON, queued."""
        windower = self._windower
        dropped = self._refused + windower.dropped
        return {
            "received": self._received,
            "processed": windower.processed,
            "queued": windower.queued + len(self.inbox),
            **{f"dropped.{reason}": count for reason, count in sorted(dropped.items())},
        }


class Source:
    """The socket of one endpoint and the streams that come from it."""

    def __init__(self, sockets: Sockets, endpoint: str, inputs: Sequence[Input], queue: int) -> None:
        self._queue = queue
        self.stray = 0  # messages with a topic that is none of the streams', or of one part
        self.socket = sockets.subscriber(
            endpoint,
            [each.spec.topic for each in inputs],
            max_bytes=max(each.spec.max_bytes for each in inputs),
            queue=queue,
            watched=True,
        )
        self.fd = int(self.socket.get(zmq.FD))
        self.connections = sockets.watch(self.socket)
        self._inputs = {each.spec.topic.encode(): each for each in inputs}
        for each in inputs:
            each.connections = self.connections

    def drain(self, now: int) -> bool:
        """Take what has come, but no more than a turn's share; gives whether more may wait."""
        receive, more, inputs = self.socket.recv, self.socket.getsockopt, self._inputs
        for _ in range(MOST_A_TURN):
            try:
                topic = receive(zmq.NOBLOCK)
            except zmq.Again:
                return False
            each = inputs.get(topic)
            payload = receive() if more(zmq.RCVMORE) else None
            if payload is None or more(zmq.RCVMORE):
                self._odd(each)
            elif each is None:
                self.stray += 1
            else:
                each.take(payload, now)
        return True

    def discard(self, reason: str) -> None:
        """Throw away what waits, as far as it can have waited: the queue's length."""
        receive, more = self.socket.recv, self.socket.getsockopt
        for _ in range(self._queue):
            try:
                each = self._inputs.get(receive(zmq.NOBLOCK))
            except zmq.Again:
                return
            while more(zmq.RCVMORE):
                receive()
            if each is None:
                self.stray += 1
            else:
                each.discard(reason)

    def _odd(self, each: Input | None) -> None:
        """A message of one part, or of more than two."""
        while self.socket.getsockopt(zmq.RCVMORE):
            self.socket.recv()
        if each is None:
            self.stray += 1
        else:
            each.discard("parts")
            each.health.on_refused("parts")


def open_sources(sockets: Sockets, streams: Iterable[schema.Stream], inputs: Sequence[Input]) -> list[Source]:
    """One source for each endpoint of the streams."""
    of_name = {each.name: each for each in inputs}
    grouped: dict[str, list[schema.Stream]] = {}
    for stream in streams:
        grouped.setdefault(stream.endpoint, []).append(stream)
    return [
        Source(sockets, endpoint, [of_name[s.name] for s in group], sum(s.queue for s in group))
        for endpoint, group in grouped.items()
    ]
