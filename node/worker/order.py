"""What the gate tells a worker at its start: one line of JSON on standard input."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Order:
    """Which worker of which configuration to be, and where the gate listens.

    `text` and `base` are those of the configuration (`load.parse`), `endpoint` is the gate's PULL socket,
    `session` the number that all messages of the worker bear, `gate` the process to live and die with. Its
    seat is `cores`, `threads` and the priority; until its models are loaded it may use all `allowed` cores.
    """

    text: str
    base: str
    worker: str
    endpoint: str
    session: int
    gate: int
    allowed: tuple[int, ...]
    cores: tuple[int, ...]
    threads: int
    priority_kind: str
    priority_level: int

    def to_line(self) -> bytes:
        """The line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> "Order":
        """Read the line. Raises ValueError for what is none."""
        plain = json.loads(line)
        if not isinstance(plain, dict):
            raise ValueError("the order is no map")
        try:
            return cls(**plain)
        except TypeError as error:
            raise ValueError(f"the order is not whole: {error}") from None
