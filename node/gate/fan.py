"""Hands the gate's messages on to the subscribers, on a thread of its own that runs no Python.

libzmq takes in subscriptions, and forgets those of a subscriber that leaves, on the thread that sends; a peer
with many of them would hold up the commands. So the loop sends to an inner socket, which never waits, and
libzmq's own proxy carries on from there.
"""

import contextlib
import os
import threading
from collections.abc import Sequence
from time import sleep
from typing import Any, Final

import zmq
from zmq import backend

from reflexarc.node.sockets import Sockets

INNER: Final = "inproc://fan"
STEERING: Final = "inproc://fan-steering"
BACKLOG: Final = 1000  # messages that may wait for the thread
CLOSE_S: Final = 2.0
FLUSH_S: Final = 0.05  # for the last messages, at the end


class Fan:
    """The gate's publisher. A message that cannot even be handed to the thread is counted in `lost`."""

    def __init__(self, sockets: Sockets, endpoint: str, key: str, queue: int, fifo: int | None) -> None:
        """Binds `endpoint`; `fifo` is the thread's SCHED_FIFO priority. Raises BindError."""
        self.lost = 0
        self.clogged = False
        """Whether the last message could not be handed over: nobody hears of the commands."""
        self._publisher = sockets.publisher(endpoint, key, queue=queue)
        self._inner = sockets.inner(zmq.PULL, INNER, BACKLOG)
        self._outer = sockets.inner(zmq.PUSH, INNER, BACKLOG)
        self._steered = sockets.inner(zmq.PULL, STEERING, 1)
        self._steering = sockets.inner(zmq.PUSH, STEERING, 1)
        self._fifo = fifo
        self._thread = threading.Thread(target=self._carry, name="fan", daemon=True)
        self._thread.start()

    def send(self, parts: Sequence[bytes]) -> None:
        """Publish one message; never waits."""
        try:
            self._outer.send_multipart(parts, zmq.NOBLOCK)
        except zmq.Again:
            self.lost += 1
            self.clogged = True
        else:
            self.clogged = False

    def close(self) -> None:
        """Let the last messages out and end the thread."""
        sleep(FLUSH_S)
        self._steering.send(b"TERMINATE")
        self._thread.join(CLOSE_S)

    def _carry(self) -> None:
        if self._fifo is not None:
            with contextlib.suppress(OSError):  # slower is better than silent
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(self._fifo))
        carry: Any = backend.proxy_steerable  # the stubs call it a string, too
        with contextlib.suppress(zmq.ZMQError):  # its way to end
            carry(self._inner, self._publisher, None, self._steered)
