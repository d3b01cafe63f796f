"""Replay of an hour of the demo's pipeline on one core.

The log is the demo's recording again and again, its stamps and sequence numbers going on, with a pause
between. The row's p50 is the wall time in s; `times_real_time` is the log's length over it.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import msgpack

from reflexarc.bench.rows import Row
from reflexarc.node.log import LogWriter, read_log

PAUSE_NS = 2_000_000_000


def write_log(path: Path, topic: str, recording: Path, seconds: float) -> None:
    """Repeat a recording until the log is that long."""
    frames = [msgpack.unpackb(e.payload) for e in read_log(recording)[0] if e.topic == topic]
    span = frames[-1]["t"] - frames[0]["t"] + PAUSE_NS
    with LogWriter(path) as log:
        seq = 0
        for turn in range(int(seconds * 1e9 / span) + 1):
            for frame in frames:
                t = frame["t"] + turn * span
                log.write(topic, t, msgpack.packb({**frame, "seq": seq, "t": t}))
                seq += 1


def run(seconds: float) -> Iterator[Row]:
    """One replay, pinned to one core."""
    configs = Path(str(files("reflexarc.configs")))
    with tempfile.TemporaryDirectory(prefix="reflexarc-bench-") as folder:
        path = Path(folder) / "hour.mcap"
        write_log(path, "imu/wrist", configs / "exosuit" / "exosuit.mcap", seconds)
        core = min(os.sched_getaffinity(0))
        command = ["replay", str(path), "--config", str(configs / "exosuit.toml"), "--json"]
        done = subprocess.run(
            ["taskset", "-c", str(core), sys.executable, "-m", "reflexarc.node.cli", *command],
            capture_output=True,
            text=True,
            check=True,
        )
    result = json.loads(done.stdout.splitlines()[-1])
    wall, log_s = result["wall_s"], result["log_s"]
    yield Row("replay", 1, {"p50": wall, "log_s": log_s, "times_real_time": log_s / wall})
