"""ZeroMQ endpoints: which spellings are understood, and which stay on this machine."""

import re
from dataclasses import dataclass

from reflexarc.node.config.rules import show, wrong

TCP = re.compile(r"tcp://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+|\*):(?P<port>[0-9]{1,5})")
IPC = re.compile(r"ipc://(?P<path>@[\x21-\x7e]+|/[^\x00\n]+)")
LONGEST_IPC = 107  # sizeof(sun_path) - 1


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`tcp://ADDRESS:PORT` or `ipc:///absolute/path` (or `ipc://@abstract`)."""

    def read(self, value: object) -> str:
        """The endpoint as it stands; whether it may leave the machine is `is_local`'s question."""
        if not isinstance(value, str):
            raise wrong(f"{show(value)} is not a string")
        if tcp := TCP.fullmatch(value):
            if not 1 <= int(tcp["port"]) <= 65535:
                raise wrong(f"port {tcp['port']} is not in 1 to 65535")
            return value
        if ipc := IPC.fullmatch(value):
            size = len(ipc["path"].encode(errors="replace"))
            if size > LONGEST_IPC:
                raise wrong(f"an ipc path of {size} bytes is above {LONGEST_IPC}")
            return value
        raise wrong(f"{show(value)} is not tcp://ADDRESS:PORT or ipc:///absolute/path")


def is_local(endpoint: str) -> bool:
    """Whether only this machine can reach the endpoint: ipc, or tcp on a numeric loopback address."""
    tcp = TCP.fullmatch(endpoint)
    if tcp is None:
        return endpoint.startswith("ipc://")
    return tcp["host"] == "[::1]" or re.fullmatch(r"127(\.[0-9]{1,3}){3}", tcp["host"]) is not None


def ipc_path(endpoint: str) -> str | None:
    """The path in the file system of an ipc endpoint; `None` for tcp and for abstract sockets."""
    return endpoint.removeprefix("ipc://") if endpoint.startswith("ipc:///") else None
