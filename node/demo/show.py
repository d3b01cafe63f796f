"""Runs the demo: a node, a wearer, a screen; then the account."""

import json
import select
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import zmq

from reflexarc.node import wire
from reflexarc.node.budget import MIB, resident
from reflexarc.node.clock import MS, SECOND, now
from reflexarc.node.config.schema import Config
from reflexarc.node.demo.score import Score, label_at
from reflexarc.node.demo.screen import Screen, View
from reflexarc.node.demo.started import StartedNode
from reflexarc.node.sockets import Sockets, receive

FRAME_NS = 100 * MS
ACCOUNT_NS = 3 * SECOND  # for the last health message after the wearer is done


class DemoError(RuntimeError):
    """The demo could not be played to its end; the message says why."""


@dataclass(slots=True)
class Outcome:
    """What the demo measured; times in ms, memory in MiB."""

    accuracy: float
    decisions: int
    judged: int
    sent: int
    frames: dict[str, object]
    latency_ms: dict[str, float]
    rss_mb: dict[str, float]
    ready_s: float
    commands: int

    @property
    def dropped(self) -> dict[str, int]:
        """Frames by why they were dropped."""
        dropped = self.frames["dropped"]
        assert isinstance(dropped, dict)
        return dropped

    def to_map(self) -> dict[str, object]:
        """The object that --json prints."""
        return {
            "accuracy": round(self.accuracy, 4),
            "decisions": self.decisions,
            "frames": self.frames,
            "latency_ms": self.latency_ms,
            "rss_mb": self.rss_mb,
            "ready_s": round(self.ready_s, 3),
            "commands": self.commands,
        }


class Show:
    """The demo while it runs: what the node says, and what is made of it."""

    def __init__(self, config: Config, path: Path, recording: Path, speed: float, score: Score) -> None:
        self._config, self._path, self._recording, self._speed = config, path, recording, speed
        self._score = score
        self._stream = next(iter(config.streams.values()))
        self._view = View(next(iter(config.channels.values())))
        self._health: dict[str, dict[str, object]] = {}
        self._topics = {
            wire.DECISION + self._view.channel.pipeline: self._on_decision,
            wire.CONTROL + self._view.channel.name: self._on_command,
        }

    def run(self, screen: Screen) -> Outcome:
        """Start everything, show it, stop it. Raises DemoError."""
        _need_endpoints(self._config)
        with ExitStack() as stack:
            runtime = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reflexarc-demo-")))
            sockets = stack.enter_context(Sockets())
            wearer = _start_wearer(self._path, self._recording, self._speed)
            stack.callback(wearer.kill)
            ear = sockets.subscriber(self._config.node.publish, [""], max_bytes=wire.MAX_BYTES)
            node = StartedNode(self._path, runtime)
            stack.callback(node.stop)
            stack.callback(screen.close)
            account = self._watch(node, wearer, ear, screen)
            self._settle(node, ear, account["sent"])
            return self._outcome(node, account)

    def _watch(
        self, node: StartedNode, wearer: "subprocess.Popen[str]", ear: zmq.Socket[bytes], screen: Screen
    ) -> dict[str, object]:
        """Show what comes until the wearer is done; gives the wearer's account."""
        assert wearer.stdout is not None
        shown = 0
        while True:
            heard = [ear.fileno(), node.fileno(), wearer.stdout.fileno()]
            readable, _, _ = select.select(heard, [], [], FRAME_NS / SECOND)
            self._listen(node, ear)
            if node.ended:
                raise DemoError(f"the node ended: {node.log()}")
            if wearer.stdout.fileno() in readable:
                line = wearer.stdout.readline()
                if not line:
                    assert wearer.stderr is not None
                    raise DemoError(f"the wearer ended: {wearer.stderr.read().strip() or 'without a word'}")
                account: dict[str, object] = json.loads(line)
                return account
            if now() - shown > FRAME_NS:
                shown = now()
                screen.show(self._view)

    def _settle(self, node: StartedNode, ear: zmq.Socket[bytes], sent: object) -> None:
        """Wait for the health message that accounts for the last sample."""
        end = now() + ACCOUNT_NS
        while now() < end and self._frames().get("received") != sent:
            select.select([ear], [], [], FRAME_NS / SECOND)
            self._listen(node, ear)

    def _listen(self, node: StartedNode, ear: zmq.Socket[bytes]) -> None:
        node.listen()
        while (parts := receive(ear)) is not None:
            topic, plain = wire.decode(parts)
            handler = self._topics.get(topic)
            if handler is not None:
                handler(plain)
            elif topic.startswith(wire.HEALTH):
                self._health[topic.removeprefix(wire.HEALTH)] = plain

    def _on_decision(self, plain: dict[str, object]) -> None:
        self._score.take(plain)
        view, series = self._view, self._score.series
        view.decision = plain
        t = int(str(plain["source_t"]))
        if not t:  # the worker began anew and knows of no sample
            return
        view.truth = label_at(series, t)
        view.elapsed_s = (t - series[0].begin) / SECOND
        view.note = f"of {(series[-1].end - series[0].begin) / SECOND:.0f} s, {self._speed:g} times as fast"

    def _on_command(self, plain: dict[str, object]) -> None:
        self._view.command = plain

    def _frames(self) -> dict[str, object]:
        """The worker's account of the stream, as `demo --json` shows it."""
        worker = self._health.get(next(iter(self._config.workers)), {})
        at = f"stream.{self._stream.name}."
        plain = {key.removeprefix(at): value for key, value in worker.items() if key.startswith(at)}
        dropped = {key.removeprefix("dropped."): n for key, n in plain.items() if key.startswith("dropped.")}
        counts = {key: plain.get(key, 0) for key in ("received", "processed", "queued")}
        return {**counts, "dropped": dropped}

    def _outcome(self, node: StartedNode, account: dict[str, object]) -> Outcome:
        worker = next(iter(self._config.workers))
        pid = int(str(self._health.get("gate", {}).get(f"worker.{worker}.pid", 0)))
        processes = {"gate": node.pid, "worker": pid}
        latency = account["latency_ns"]
        assert isinstance(latency, list)
        if not latency or node.ready_s is None:
            raise DemoError(f"no command came of the recording: {node.log()}")
        return Outcome(
            accuracy=self._score.accuracy,
            decisions=self._score.decisions,
            judged=self._score.judged,
            sent=int(str(account["sent"])),
            frames=self._frames(),
            latency_ms=_percentiles(latency),
            rss_mb={name: round(resident(each) / MIB, 2) for name, each in processes.items()},
            ready_s=node.ready_s,
            commands=int(str(account["commands"])),
        )


def _need_endpoints(config: Config) -> None:
    """Refuse to begin where another process holds an endpoint: its messages would be taken for the demo's."""
    wanted = {"node.publish": config.node.publish}
    wanted |= {f"stream.{each.name}.endpoint": each.endpoint for each in config.streams.values()}
    if config.gate.estop is not None:
        wanted["gate.estop.endpoint"] = config.gate.estop.endpoint
    with Sockets() as sockets:
        for key, endpoint in wanted.items():
            sockets.publisher(endpoint, key)


def _start_wearer(config: Path, recording: Path, speed: float) -> "subprocess.Popen[str]":
    wearer = subprocess.Popen(
        [sys.executable, "-m", "reflexarc.node.demo.wearer"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert wearer.stdin is not None
    wearer.stdin.write(
        json.dumps({"config": str(config), "recording": str(recording), "speed": speed}) + "\n"
    )
    wearer.stdin.flush()
    return wearer


def _percentiles(ns: list[int]) -> dict[str, float]:
    """p50, p99 and the maximum, in ms."""
    ranked = sorted(ns)
    at = {"p50": len(ranked) // 2, "p99": len(ranked) * 99 // 100, "max": len(ranked) - 1}
    return {name: round(ranked[index] / MS, 3) for name, index in at.items()}
