"""A press of a node's e-stop from outside, and the wait for its effect."""

import select
from dataclasses import dataclass, field

import zmq

from reflexarc.control.estop import shown
from reflexarc.node import wire
from reflexarc.node.clock import MS, now
from reflexarc.node.config.schema import Config
from reflexarc.node.sockets import Sockets, receive

AGAIN_NS = (
    400 * MS
)  # a reset is refused shortly after a stop, and one message to a gate that hangs may be lost


@dataclass(slots=True)
class Press:
    """One stop or reset, and what the node's commands say of it."""

    config: Config
    endpoint: str
    stop: bool
    id: str
    reason: str
    sent: bool = False
    known: bool = True  # the id of a reset is latched
    reasons: dict[str, str] = field(default_factory=dict)  # of each channel's latest command

    def send(self, timeout: int) -> bool:
        """Send it, again and again, until every channel shows it; False after `timeout` ns."""
        parts = wire.encode(wire.ESTOP, {"stop": self.stop, "id": self.id, "reason": self.reason})
        deadline = now() + timeout
        with Sockets() as sockets:
            publish = self.config.node.publish
            commands = sockets.subscriber(publish, [wire.CONTROL], max_bytes=wire.MAX_BYTES)
            button = sockets.pusher(self.endpoint)
            while not self.stop and not self._heard and now() < deadline:
                self._listen(commands)
            self.known = self.stop or not self._heard or self._word in self._words
            due = now()
            while self.known and not self.done and now() < deadline:
                if now() >= due:
                    if not (self.sent and self.stop):
                        self.reasons.clear()
                    self.sent = _push(button, parts) or self.sent
                    due = now() + (AGAIN_NS if self.sent else 10 * MS)
                self._listen(commands)
        return self.done

    @property
    def done(self) -> bool:
        """Whether the latest command of every channel shows it."""
        shown = [(self._word in reason.split(",")) == self.stop for reason in self.reasons.values()]
        return self.sent and self._heard and all(shown)

    def outcome(self) -> str:
        """What has come of it, in one line."""
        node = self.config.node.name
        stops = ", ".join(sorted(word[6:] for word in self._words if word.startswith("estop:")))
        if not self.known:
            return f"reflexarc estop: {self.id} is none of the stops of {node}, which are {stops or 'none'}"
        if not self.sent:
            return f"reflexarc estop: nothing answers at {self.endpoint}, the e-stop of {node}"
        if not self.reasons:
            return f"reflexarc estop: sent, but {node} publishes no commands at {self.config.node.publish}"
        if self.done:
            still = "is" if self.stop else f"is released from {self.id}, still"
            return f"{node} {still} stopped by {stops}" if stops else f"{node} is released"
        if self.stop:
            return f"reflexarc estop: sent, but not every channel of {node} has stopped"
        return f"reflexarc estop: refused, {node} is still stopped by {stops}"

    @property
    def _word(self) -> str:
        return "estop:" + shown(self.id)

    @property
    def _words(self) -> set[str]:
        return {word for reason in self.reasons.values() for word in reason.split(",")}

    @property
    def _heard(self) -> bool:
        """Whether every channel has published since."""
        return bool(self.reasons) and len(self.reasons) == len(self.config.channels)

    def _listen(self, commands: zmq.Socket[bytes]) -> None:
        select.select([commands.FD], [], [], 0.005)
        while (parts := receive(commands)) is not None:
            self.reasons |= _reason(parts)


def _push(socket: zmq.Socket[bytes], parts: list[bytes]) -> bool:
    try:
        socket.send_multipart(parts, zmq.NOBLOCK)
    except zmq.Again:  # not connected yet
        return False
    return True


def _reason(parts: list[bytes]) -> dict[str, str]:
    """The channel of a command and its reason; nothing for what is no command."""
    try:
        topic, plain = wire.decode(parts)
    except wire.Refused:
        return {}
    return {topic.removeprefix(wire.CONTROL): str(plain.get("reason", ""))}
