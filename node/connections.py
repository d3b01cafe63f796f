"""What happened to a socket's connections: how many there are, and how many were lost.

libzmq drops a connection whose peer sends a part above ZMQ_MAXMSGSIZE or no ZMTP at all. It says so only to a
monitor, and it never connects again: after one over-size frame a stream would be silent for ever. So an
over-size frame is a disconnect counted here and a gap in the sequence numbers, and `update` connects anew.
"""

import struct
from typing import Final

import zmq

UP: Final = int(zmq.EVENT_HANDSHAKE_SUCCEEDED)
DOWN: Final = int(zmq.EVENT_DISCONNECTED)
RETRY: Final = int(zmq.EVENT_CONNECT_RETRIED)
REFUSED: Final = int(
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)


class Connections:
    """Counts the events of one socket. Call `update` some times a second: 3 us when nothing has happened."""

    def __init__(self, socket: zmq.Socket[bytes], endpoint: str | None = None) -> None:
        """`endpoint`: where the socket is connected to, to connect anew; `None` for a bound one."""
        self._socket = socket
        self._endpoint = endpoint
        self._events = socket.get_monitor_socket(UP | DOWN | RETRY | REFUSED)
        self._given_up = 0  # updates since a connection ended without a retry
        self.connected = 0
        self.disconnects = 0
        self.refused = 0

    def update(self) -> None:
        """Take in every event so far; connect anew where libzmq has not by the next call."""
        if self._given_up:
            self._given_up += 1
        while (event := self._next()) is not None:
            self._count(event)
        if self._given_up > 1 and self._endpoint is not None:
            self._given_up = 0
            self._socket.disconnect(self._endpoint)
            self._socket.connect(self._endpoint)

    def close(self) -> None:
        """Stop counting; the socket stays."""
        if not self._socket.closed:
            self._socket.disable_monitor()
        self._events.close(linger=0)

    def _next(self) -> int | None:
        try:
            head = self._events.recv_multipart(zmq.NOBLOCK)[0]
        except zmq.Again:
            return None
        return int(struct.unpack_from("=H", head)[0])

    def _count(self, event: int) -> None:
        if event == UP:
            self.connected += 1
            self._given_up = 0
        elif event == RETRY:
            self._given_up = 0
        elif event == DOWN:
            self.connected = max(0, self.connected - 1)
            self.disconnects += 1
            self._given_up = 1
        else:
            self.refused += 1
            self._given_up = 1
