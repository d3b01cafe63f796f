"""A sensor as a process: python publisher.py ENDPOINT TOPIC RATE_HZ VALUE... sends one sample a message.

It prints a line once somebody listens and the first message is out. After a stop of the process it goes on
with the present time and the next sequence number, as a sensor does.
"""

import sys
import time

import msgpack
import zmq


def main(endpoint: str, topic: str, rate_hz: float, values: list[float]) -> None:
    socket = zmq.Context().socket(zmq.XPUB)
    socket.bind(endpoint)
    socket.recv()  # the first subscription
    period = 1 / rate_hz
    due, seq = time.monotonic(), 0
    while True:
        message = {"seq": seq, "t": time.time_ns(), "data": values}
        socket.send_multipart([topic.encode(), msgpack.packb(message)])
        if seq == 0:
            print("sending", flush=True)
        seq += 1
        due = max(due + period, time.monotonic() - period)
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), [float(value) for value in sys.argv[4:]])
