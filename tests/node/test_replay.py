"""Replay decides what was decided live, whatever happened to the frames on their way."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgpack
import pytest
from harness import Node, node

from reflexarc.node.log import Entry, LogWriter, read_log
from reflexarc.node.sockets import Sockets, wait_for_subscriber

PERIOD_NS = 10_000_000


def run(*arguments: object, code: int = 0) -> dict[str, Any]:
    """What a command says with --json."""
    line = [sys.executable, "-m", "reflexarc.node.cli", *map(str, arguments), "--json"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def frame(seq: int, t: int, rng: random.Random) -> bytes:
    up = 1.0 if (seq // 150) % 2 else 0.0
    data = [up + rng.gauss(0, 0.4), 1.0 - up + rng.gauss(0, 0.4)]
    return msgpack.packb({"seq": seq, "t": t, "data": data})


def disturbed(count: int, rng: random.Random) -> list[bytes]:
    """Frames with jitter in their stamps, some lost, twice, out of order or broken, and one long gap."""
    begin = time.time_ns()
    frames = []
    for seq in range(count):
        if 700 <= seq < 740 or rng.random() < 0.004:
            continue
        t = begin + seq * PERIOD_NS + rng.randrange(2_000_000)
        frames.append(frame(seq, t, rng))
        if rng.random() < 0.01:
            frames.append(frames[-1])
        if rng.random() < 0.01:
            frames.append(b"\xc1 not msgpack")
    for at in range(0, len(frames) - 1, 37):
        frames[at], frames[at + 1] = frames[at + 1], frames[at]
    return frames


def live(made: Node, log: Path, frames: list[bytes], record_from: int) -> list[dict[str, Any]]:
    """Play frames into a node with a recorder beside it from some frame on; gives the decisions."""
    made.start()
    recorder = None
    with Sockets() as sockets:
        out = sockets.announcing_publisher(made.sensor, "test")
        assert wait_for_subscriber(out, b"imu/arm", 60)
        for i, payload in enumerate(frames):
            if i == record_from:
                line = ["record", str(made.config), "-o", str(log)]
                recorder = subprocess.Popen([sys.executable, "-m", "reflexarc.node.cli", *line])
                assert wait_for_subscriber(out, b"imu/arm", 30)
            out.send_multipart([b"imu/arm", payload])
            time.sleep(0.003)
        time.sleep(0.5)
        assert recorder is not None
        recorder.send_signal(signal.SIGTERM)
        assert recorder.wait(10) == 0
    return [message.plain for message in made.listener.of("decision/move")]


@pytest.mark.slow
@pytest.mark.parametrize("record_from", [0, 500])
def test_a_trace_gives_the_live_decisions_under_loss_jitter_and_disorder(
    tmp_path: Path, record_from: int
) -> None:
    rng = random.Random(record_from)
    with node(tmp_path) as made:
        made.config.write_text(
            made.config.read_text().replace("rate_hz = 100\n", "rate_hz = 100\nlate_ms = 25\n")
        )
        live(made, tmp_path / "x.mcap", disturbed(1500, rng), record_from)
    result = run("replay", tmp_path / "x.mcap", "--config", made.config)
    account = result["live"]["move"]
    assert account["different"] == 0
    assert account["missing_frames"] == 0
    assert account["compared"] > (1250 if record_from == 0 else 800)
    again = run("replay", tmp_path / "x.mcap", "--config", made.config, "--threads", 2)
    assert again["digest"] == result["digest"]


def test_missing_frames_end_an_interval_and_the_rest_still_agrees(tmp_path: Path) -> None:
    rng = random.Random(3)
    frames = [frame(seq, 1_000_000_000 + seq * PERIOD_NS, rng) for seq in range(900)]
    with node(tmp_path) as made:
        live(made, tmp_path / "x.mcap", frames, 0)
    entries, _ = read_log(tmp_path / "x.mcap")
    with LogWriter(tmp_path / "holed.mcap") as log:
        for entry in entries:
            seq = msgpack.unpackb(entry.payload).get("seq") if entry.topic == "imu/arm" else None
            if seq not in (300, 301):
                log.write(*entry)
    result = run("replay", tmp_path / "holed.mcap", "--config", made.config)
    account = result["live"]["move"]
    assert account["missing_frames"] == 2
    assert account["intervals"] == 2
    assert account["different"] == 0
    assert account["compared"] > 800


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A log without a trace, and the configuration to replay it with."""
    folder = tmp_path_factory.mktemp("quiet")
    rng = random.Random(5)
    with node(folder) as made:
        config = made.config
    with LogWriter(folder / "x.mcap") as log:
        for seq in range(1000):
            t = 1_000_000_000 + seq * PERIOD_NS
            log.write("imu/arm", t, frame(seq, t, rng))
            if seq % 50 == 0:
                log.flush()
    return folder / "x.mcap", config


def test_the_digest_is_the_same_again_and_changes_with_the_samples(
    quiet: tuple[Path, Path], tmp_path: Path
) -> None:
    log, config = quiet
    first = run("replay", log, "--config", config)
    assert first == {**run("replay", log, "--config", config), "wall_s": first["wall_s"]}
    assert first["decisions"] == 981
    assert first["log_s"] == 9.99
    with LogWriter(tmp_path / "y.mcap") as other:
        for i, entry in enumerate(read_log(log)[0]):
            changed = msgpack.packb({**msgpack.unpackb(entry.payload), "data": [5.0, 0.0]})
            other.write(entry.topic, entry.time, changed if 350 <= i < 400 else entry.payload)
    assert run("replay", tmp_path / "y.mcap", "--config", config)["digest"] != first["digest"]


def test_a_cut_log_replays_up_to_the_cut_and_says_so(quiet: tuple[Path, Path], tmp_path: Path) -> None:
    log, config = quiet
    data = log.read_bytes()
    for share in (0.3, 0.6, 0.9):
        (tmp_path / "cut.mcap").write_bytes(data[: int(len(data) * share)])
        result = run("replay", tmp_path / "cut.mcap", "--config", config)
        assert result["truncated"]
        assert 0 < result["decisions"] < 981


def test_diff_shows_what_changed(quiet: tuple[Path, Path], tmp_path: Path) -> None:
    log, config = quiet
    run("replay", log, "--config", config, "-o", tmp_path / "before.mcap")
    same = run("replay", log, "--config", config, "--diff", tmp_path / "before.mcap")
    assert same["changed"] == 0
    other = config.parent / "other.toml"
    other.write_text(config.read_text().replace("threshold = 0.6", "threshold = 0.9"))
    run("replay", log, "--config", other, "--diff", tmp_path / "before.mcap", code=1)


def test_output_is_a_log_of_decisions_and_traces(quiet: tuple[Path, Path], tmp_path: Path) -> None:
    log, config = quiet
    run("replay", log, "--config", config, "-o", tmp_path / "out.mcap")
    entries: list[Entry] = read_log(tmp_path / "out.mcap")[0]
    assert {entry.topic for entry in entries} == {"decision/move", "trace/move"}
    assert len(entries) == 2 * 981


def test_a_recording_is_never_written_over(quiet: tuple[Path, Path], tmp_path: Path) -> None:
    log, config = quiet
    before = log.read_bytes()
    (tmp_path / "link.mcap").symlink_to(log)
    for output in (log, tmp_path / "link.mcap"):
        line = ["replay", log, "--config", config, "-o", output, "--force"]
        done = subprocess.run(
            [sys.executable, "-m", "reflexarc.node.cli", *map(str, line)], capture_output=True, text=True
        )
        assert done.returncode == 2
        assert "is the file of LOG" in done.stderr
    assert log.read_bytes() == before
    (tmp_path / "there.mcap").write_bytes(b"mine")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "reflexarc.node.cli",
            "record",
            str(config),
            "-o",
            str(tmp_path / "there.mcap"),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "is there already" in done.stderr
    assert (tmp_path / "there.mcap").read_bytes() == b"mine"
