"""The recorder: a subscriber like any other that keeps what it hears in an MCAP file."""

import errno
import os
import select
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

import zmq

from reflexarc.node.clock import MS, SECOND, now, wall
from reflexarc.node.config.schema import Config
from reflexarc.node.log import LogWriter
from reflexarc.node.sockets import Sockets, receive
from reflexarc.node.wire import Refused, decode_topic

FLUSH_NS: Final = 500 * MS  # what a kill can lose, at most
SPACE_NS: Final = SECOND  # how often the free space is looked at
QUEUE: Final = 20_000
MAX_BYTES: Final = 1 << 20
TURN: Final = 1000  # messages taken from one socket before the next has its turn


class Source(NamedTuple):
    """A publisher to listen to; a topic of None takes all it has."""

    endpoint: str
    topic: str | None = None


def sources(config: Config) -> list[Source]:
    """What a node hears and says: every stream, and all topics of the node itself."""
    streams = [Source(stream.endpoint, stream.topic) for stream in config.streams.values()]
    return [*dict.fromkeys(streams), Source(config.node.publish)]


class Recorder:
    """Writes what the sources publish into a file until told to stop, or `floor` bytes of disk are left."""

    def __init__(self, path: Path, wanted: Iterable[Source], prefixes: Iterable[str], floor: int) -> None:
        """OSError where the file cannot be made."""
        self.counts: Counter[str] = Counter()
        self.refused = 0
        self.why = ""
        self._path = path
        self._floor = floor
        self._flush = self._space = 0
        self._prefixes = tuple(prefixes)
        self._log = LogWriter(path)
        self._sockets = Sockets()
        self._inputs = [self._listen(source) for source in wanted]
        self._connections = [self._sockets.watch(socket) for socket, _ in self._inputs]

    def run(self, stopped: Callable[[], bool]) -> None:
        """Record until `stopped`; then the file is complete. `why` says what else ended it."""
        fds = [socket.FD for socket, _ in self._inputs]
        more = False
        try:
            while not self.why and not stopped():
                if not more:
                    select.select(fds, [], [], 0.1)
                more = sum(self._take(socket, topic) for socket, topic in self._inputs) > 0
                self._keep_up(now())
        except OSError as error:
            self.why = f"{self._path}: {error.strerror or error}"
        finally:
            self._close()

    def _listen(self, source: Source) -> tuple[zmq.Socket[bytes], bytes | None]:
        wanted = [source.topic or ""]
        socket = self._sockets.subscriber(
            source.endpoint, wanted, max_bytes=MAX_BYTES, queue=QUEUE, watched=True
        )
        return socket, None if source.topic is None else source.topic.encode()

    def _take(self, socket: zmq.Socket[bytes], topic: bytes | None) -> bool:
        """Write what waits in a socket, at most TURN messages; True where more may wait."""
        for _ in range(TURN):
            parts = receive(socket)
            if parts is None:
                return False
            if topic is None or parts[0] == topic:
                self._keep(parts)
        return True

    def _keep(self, parts: list[bytes]) -> None:
        try:
            name = decode_topic(parts[0])
        except Refused:
            self.refused += 1
            return
        if len(parts) != 2:
            self.refused += 1
        elif not self._prefixes or name.startswith(self._prefixes):
            self._log.write(name, wall(), parts[1])
            self.counts[name] += 1

    def _keep_up(self, at: int) -> None:
        if at >= self._flush:
            self._flush = at + FLUSH_NS
            self._log.flush()
            for connections in self._connections:
                connections.update()
        if at >= self._space:
            self._space = at + SPACE_NS
            self._look_at_space()

    def _look_at_space(self) -> None:
        stat = os.statvfs(self._path)
        free = stat.f_bavail * stat.f_frsize
        if free < self._floor:
            self.why = f"{self._path}: {free >> 20} MiB are free, the floor is {self._floor >> 20} MiB"

    def _close(self) -> None:
        self._sockets.close()
        try:
            self._log.close()
        except OSError as error:
            full = error.errno == errno.ENOSPC
            self.why = f"{self._path}: {'the disk is full' if full else error.strerror or error}"
