"""What the gate publishes goes out on a thread of its own: subscribers cannot hold the loop up."""

import os
import time
from pathlib import Path

import zmq

from reflexarc.node.gate.fan import Fan
from reflexarc.node.sockets import Sockets, receive


def test_messages_arrive_in_order_and_the_last_ones_before_the_end(tmp_path: Path) -> None:
    endpoint = f"ipc://{tmp_path}/pub"
    with Sockets() as ears:
        with Sockets() as sockets:
            fan = Fan(sockets, endpoint, "node.publish", 1000, None)
            ear = ears.subscriber(endpoint, [""], max_bytes=100)
            while receive(ear) is None:
                fan.send([b"first", b""])
                time.sleep(0.01)
            for i in range(500):
                fan.send([b"n", i.to_bytes(2)])
            fan.close()
        time.sleep(0.1)
        heard = []
        while (parts := receive(ear)) is not None:
            heard += [parts[1]] if parts[0] == b"n" else []
    assert heard == [i.to_bytes(2) for i in range(500)]
    assert fan.lost == 0


def test_a_flood_of_subscriptions_does_not_hold_up_who_sends(tmp_path: Path) -> None:
    endpoint = f"ipc://{tmp_path}/pub"
    with Sockets() as sockets:
        fan = Fan(sockets, endpoint, "node.publish", 1000, None)
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        peer = context.socket(zmq.XSUB)
        peer.set(zmq.SNDHWM, 0)
        peer.connect(endpoint)
        for _ in range(50_000):
            peer.send(b"\1" + os.urandom(150))
        longest = 0.0
        end = time.monotonic() + 2
        while time.monotonic() < end:
            begin = time.monotonic()
            fan.send([b"n", b""])
            longest = max(longest, time.monotonic() - begin)
            time.sleep(0.005)
        peer.close(linger=0)
        context.term()
        fan.close()
    assert longest < 0.1
