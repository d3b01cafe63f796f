"""The only place that makes ZeroMQ contexts and sockets, with every bound set.

A `Sockets` owns its context, its sockets and the locks of what it has bound:

    with Sockets() as sockets:
        out = sockets.publisher("tcp://127.0.0.1:5556", "node.publish")
        wrist = sockets.subscriber("tcp://127.0.0.1:5555", ["imu/wrist"], max_bytes=1024, queue=1000)
        select.select([wrist.FD], [], [], seconds)
        while (parts := receive(wrist)) is not None: ...      # always to the end: FD is edge-triggered

ZeroMQ's defaults are not safe here: LINGER hangs the exit, queues are bounded in messages but not in bytes, a
second bind of an ipc path silently steals it from the first.
"""

import os
from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self

import zmq

from reflexarc.node.clock import MS, SECOND, now
from reflexarc.node.config.endpoint import is_local
from reflexarc.node.connections import Connections
from reflexarc.node.endpoints import BindError, Lock, lock_ipc
from reflexarc.node.wire import MAX_TOPIC

NODE_QUEUE: Final = 1000  # messages that wait for one slow peer of the node's own sockets
RECONNECT_MS: Final = 20
RECONNECT_MAX_MS: Final = 200
HANDSHAKE_MS: Final = 2000
HEARTBEAT_MS: Final = 1000
PARTS_KEPT: Final = 3  # enough to see that a message has more than two


class Sockets:
    """A context with its sockets. Not thread-safe; never to be used across a fork.

    `fifo` and `cores` place ZeroMQ's I/O thread: libzmq aborts the process where SCHED_FIFO is not permitted,
    so give a priority only after the process itself has got it (`realtime.apply`). Without them the thread
    inherits both.
    """

    def __init__(self, *, fifo: int | None = None, cores: Iterable[int] = ()) -> None:
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context(1)
        if fifo is not None:
            self.context.set(zmq.THREAD_SCHED_POLICY, os.SCHED_FIFO)
            self.context.set(zmq.THREAD_PRIORITY, fifo)
        for core in cores:
            self.context.set(zmq.THREAD_AFFINITY_CPU_ADD, core)
        self._open: dict[zmq.Socket[bytes], str] = {}  # with the endpoint
        self._locks: dict[zmq.Socket[bytes], Lock] = {}
        self._watched: dict[zmq.Socket[bytes], Connections] = {}

    def publisher(self, endpoint: str, key: str, *, queue: int = NODE_QUEUE) -> zmq.Socket[bytes]:
        """A bound PUB; drops for a peer more than `queue` messages behind. Raises BindError, naming `key`."""
        return self._bound(zmq.PUB, endpoint, key, queue, max_bytes=1 + MAX_TOPIC)

    def inner(self, kind: int, endpoint: str, queue: int) -> zmq.Socket[bytes]:
        """One end between two threads of this process: a PULL binds the inproc endpoint, a PUSH connects."""
        socket = self._make(kind, endpoint, queue, max_bytes=-1)
        if kind == zmq.PULL:
            socket.bind(endpoint)
        else:
            socket.connect(endpoint)
        return socket

    def announcing_publisher(self, endpoint: str, key: str, *, queue: int = NODE_QUEUE) -> zmq.Socket[bytes]:
        """The same as a XPUB, from which `wait_for_subscriber` learns who listens."""
        socket = self._make(zmq.XPUB, endpoint, queue, max_bytes=1 + MAX_TOPIC)
        socket.set(zmq.XPUB_VERBOSE, 1)
        return self._bind(socket, endpoint, key)

    def subscriber(
        self,
        endpoint: str,
        topics: Iterable[str],
        *,
        max_bytes: int,
        queue: int = NODE_QUEUE,
        watched: bool = False,
    ) -> zmq.Socket[bytes]:
        """A connected SUB. A topic is a prefix to ZeroMQ: compare it whole on receipt.

        A peer that sends a part above `max_bytes` is disconnected, and connected again only by the
        `Connections` of a `watched` socket: get them with `watch`, and call their `update` often.
        """
        socket = self._make(zmq.SUB, endpoint, queue, max_bytes)
        if watched:
            self.watch(socket)
        for topic in topics:
            socket.subscribe(topic)
        return self._connect(socket, endpoint)

    def puller(
        self, endpoint: str, key: str, *, max_bytes: int, queue: int = NODE_QUEUE
    ) -> zmq.Socket[bytes]:
        """A bound PULL: loses nothing to a slow joiner. Raises BindError, naming `key`."""
        return self._bound(zmq.PULL, endpoint, key, queue, max_bytes)

    def pusher(self, endpoint: str, *, queue: int = NODE_QUEUE) -> zmq.Socket[bytes]:
        """A connected PUSH; sends raise zmq.Again at once while there is no peer or its queue is full."""
        socket = self._make(zmq.PUSH, endpoint, queue, max_bytes=1024)
        socket.set(zmq.IMMEDIATE, 1)
        socket.set(zmq.SNDTIMEO, 0)
        return self._connect(socket, endpoint)

    def watch(self, socket: zmq.Socket[bytes]) -> Connections:
        """The connections of one of these sockets, counted from the first call on; closed with it.

        Nobody may forget to `update` them: libzmq's I/O thread waits when 2000 events are not read.
        """
        if socket not in self._watched:
            connects = socket.type in (zmq.SUB, zmq.PUSH)
            self._watched[socket] = Connections(socket, self._open[socket] if connects else None)
        return self._watched[socket]

    def close(self, socket: zmq.Socket[bytes] | None = None) -> None:
        """Close one socket and free its endpoint, or, without one, all of them and the context."""
        for each in [socket] if socket is not None else list(self._open):
            del self._open[each]
            if each in self._watched:
                self._watched.pop(each).close()
            each.close(linger=0)
            if each in self._locks:
                self._locks.pop(each).release()
        if socket is None:
            self.context.term()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def _make(self, kind: int, endpoint: str, queue: int, max_bytes: int) -> zmq.Socket[bytes]:
        socket = self.context.socket(kind)
        socket.set(zmq.LINGER, 0)
        socket.set(zmq.SNDHWM, queue)
        socket.set(zmq.RCVHWM, queue)
        socket.set(zmq.MAXMSGSIZE, max_bytes)
        socket.set(zmq.RECONNECT_IVL, RECONNECT_MS)
        socket.set(zmq.RECONNECT_IVL_MAX, RECONNECT_MAX_MS)
        socket.set(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
        if endpoint.startswith("tcp://["):
            socket.set(zmq.IPV6, 1)
        if not is_local(
            endpoint
        ):  # a pulled cable is silent; on one machine a stopped peer must not be cut off
            socket.set(zmq.HEARTBEAT_IVL, HEARTBEAT_MS)
            socket.set(zmq.HEARTBEAT_TIMEOUT, 3 * HEARTBEAT_MS)
            socket.set(zmq.TCP_KEEPALIVE, 1)
        self._open[socket] = endpoint
        return socket

    def _bound(self, kind: int, endpoint: str, key: str, queue: int, max_bytes: int) -> zmq.Socket[bytes]:
        return self._bind(self._make(kind, endpoint, queue, max_bytes), endpoint, key)

    def _bind(self, socket: zmq.Socket[bytes], endpoint: str, key: str) -> zmq.Socket[bytes]:
        try:
            if (lock := lock_ipc(endpoint, key)) is not None:
                self._locks[socket] = lock
            mask = os.umask(0o117)  # an ipc path: owner and group, from its first moment on
            try:
                socket.bind(endpoint)
            finally:
                os.umask(mask)
        except zmq.ZMQError as error:
            self.close(socket)
            taken = error.errno == zmq.EADDRINUSE
            why = "is in use: another process has bound it" if taken else f"cannot be bound: {error.strerror}"
            raise BindError(f"{key}: {endpoint} {why}") from None
        except BindError:
            self.close(socket)
            raise
        return socket

    def _connect(self, socket: zmq.Socket[bytes], endpoint: str) -> zmq.Socket[bytes]:
        socket.connect(endpoint)
        return socket


def receive(socket: zmq.Socket[bytes]) -> list[bytes] | None:
    """The next message's parts (at most PARTS_KEPT of them), or `None` where there is none now."""
    try:
        parts = [socket.recv(zmq.NOBLOCK)]
    except zmq.Again:
        return None
    while socket.getsockopt(zmq.RCVMORE):
        part = socket.recv()
        if len(parts) < PARTS_KEPT:
            parts.append(part)
    return parts


def drain(sockets: Iterable[zmq.Socket[bytes]]) -> int:
    """Throw away everything that waits in the sockets; gives the number of messages."""
    count = 0
    for socket in sockets:
        while receive(socket) is not None:
            count += 1
    return count


def wait_for_subscriber(socket: zmq.Socket[bytes], prefix: bytes, timeout_s: float) -> bool:
    """Wait until an announcing publisher has a subscriber for `prefix`; False at the timeout."""
    deadline = now() + int(timeout_s * SECOND)
    while (left := deadline - now()) > 0:
        if socket.poll(max(1, left // MS)):
            message = socket.recv()
            if message[:1] == b"\x01" and prefix.startswith(message[1:]):
                return True
    return False
