"""The gate's loop: e-stop, decisions, commands; around them workers, configuration and service manager.

Each turn reads every socket to its end (a ZeroMQ descriptor is edge-triggered), but no more than a turn's
share of each, so that no peer can keep a command waiting. Nothing in it blocks.
"""

import gc
import os
from collections.abc import Sequence

import zmq

from reflexarc.control.estop import EStop
from reflexarc.control.gate import Gate
from reflexarc.node import clock, wire
from reflexarc.node.clock import MS, SECOND, US
from reflexarc.node.gate import signals
from reflexarc.node.gate.channels import channel_specs
from reflexarc.node.gate.child import open_statm, resident_mb
from reflexarc.node.gate.crew import Crew
from reflexarc.node.gate.fan import Fan
from reflexarc.node.gate.intake import Intake
from reflexarc.node.gate.latch import Keeper
from reflexarc.node.gate.reload import Reload
from reflexarc.node.gate.report import channels_map, status, streams_alive, workers_map
from reflexarc.node.gate.signals import Signals
from reflexarc.node.gate.stop_log import StopLog
from reflexarc.node.gate.waiting import wait_readable
from reflexarc.node.say import say
from reflexarc.node.sockets import receive
from reflexarc.node.systemd import Notifier

CHORES_NS = 50 * MS  # between looks at processes, files and the service manager
REPORT_NS = SECOND
OVERTIME_NS = 500 * MS  # for the last command, after the time that a ramp may take
REST_NS = 100 * US  # at least, between turns without a message: at SCHED_FIFO nothing else runs on the core
STOPS_A_TURN = 64  # messages of the e-stop in one turn


class Loop:
    """A running node. `run` returns when it has been told to stop and everything is at safe."""

    def __init__(
        self,
        session: int,
        crew: Crew,
        core: Gate,
        keeper: Keeper,
        reload: Reload,
        notifier: Notifier,
        heard: Signals,
        fan: Fan,
        stopper: zmq.Socket[bytes] | None,
    ) -> None:
        self._session = session
        self._crew = crew
        self._core = core
        self._keeper = keeper
        self._reload = reload
        self._notifier = notifier
        self._signals = heard
        self._statm = open_statm(os.getpid())
        self._fan = fan
        self._stopper = stopper
        self._stopper_fd = [] if stopper is None else [int(stopper.get(zmq.FD))]
        self._stop_log = StopLog(core.estop)
        self._intake = Intake(core)
        self._wings = Intake()
        self._stall_ns = crew.config.gate.stall_ms * MS
        self._started = clock.now()
        self._ready = self._stopping = False
        self._commands = self._fed = self._stalls = self._latest = self._reports = 0
        self._next_chores = self._next_report = self._end = self._quiet_until = 0

    def run(self) -> None:
        """Turn after turn until everything is at safe after a signal to stop."""
        due = clock.now()
        while not self._ended(clock.now()):
            now = clock.now()
            if now - due > self._stall_ns:
                self._stalled(now, now - due)
            elif now - due > self._latest:
                self._latest = now - due
            due = self._turn(now)
            wait = due - clock.now()
            if wait > 0:
                self._wait(wait)

    def _wait(self, ns: int) -> None:
        """Until something comes, at most so long; the end of a worker brings the chores forward."""
        processes = list(self._crew.processes())
        ends = [each.end_fd for each in processes if each.end_fd >= 0]
        fds = [*self._stopper_fd, self._signals.fd, *(each.fd for each in processes), *ends]
        ready = wait_readable(fds, ns)
        if not set(ends).isdisjoint(ready):
            self._next_chores = 0

    def _ended(self, now: int) -> bool:
        """Whether all is at safe after a signal to stop, or has had the time for it."""
        return self._stopping and (self._core.done or now > self._end)

    def close(self) -> None:
        """End all workers and whatever else is under way."""
        self._reload.close()
        self._crew.close()

    def _turn(self, now: int) -> int:
        """Everything that is due; gives when the next turn is (monotonic ns)."""
        heard = self._signals.take()
        if heard:
            self._heed(heard, now)
        more = self._stops()
        for process in self._crew.processes():
            more |= self._intake.drain(process)
        self._command()
        for parts in self._intake.passed():
            self._publish(parts)
        if now >= self._next_chores or heard:
            self._chores(now)
        if now >= self._next_report:
            self._report(now)
        if more:
            return now
        due = self._core.next_deadline()
        if due is None:
            return self._next_chores
        return min(max(due, now + REST_NS), self._next_chores)

    def _stops(self) -> bool:
        """Read the e-stop's socket; gives whether more may wait."""
        self._stop_log.summarize(self._core.estop, clock.now())
        if self._stopper is None:
            return False
        for _ in range(STOPS_A_TURN):
            parts = receive(self._stopper)
            if parts is None:
                return False
            now = clock.now()
            word = self._core.message(wire.decode_stop(parts), now)
            self._stop_log.note(word, self._core.estop, now)
        return True

    def _command(self) -> None:
        """Publish what is due. A stop is on its file before a command shows it, and on the disk after."""
        now = clock.now()
        commands = self._core.step(now, clock.wall())
        self._keeper.write(now)
        for command in commands:
            self._publish(wire.encode(wire.CONTROL + command.channel, command.to_map()))
        self._commands += len(commands)
        self._keeper.sync(now)

    def _publish(self, parts: Sequence[bytes]) -> None:
        self._fan.send(parts)

    def _heed(self, heard: frozenset[int], now: int) -> None:
        if heard & signals.STOP and not self._stopping:
            self._stopping = True
            say("stopping")
            self._notifier.stopping("stopping: ramps to safe")
            limit = self._crew.config.node.shutdown_ms * MS
            self._core.shutdown(now, limit)
            self._end = now + limit + OVERTIME_NS
            self._crew.stop(now)
        elif heard & signals.RELOAD:
            self._reload.request()

    def _chores(self, now: int) -> None:
        self._next_chores = now + CHORES_NS
        try:
            self._tend(now)
        except Exception as error:  # whatever it is, it must not end the loop that commands
            if now >= self._quiet_until:
                self._quiet_until = now + SECOND
                say(f"a chore failed, the gate goes on: {type(error).__name__}: {error}")
        self._feed(now)

    def _tend(self, now: int) -> None:
        for end in self._crew.poll(now):
            if not self._stopping:
                again = f"next start in {end.wait_ns / SECOND:g} s"
                say(f"worker {end.worker} (pid {end.pid}) ended: {end.how}; {again}")
        if not self._stopping:
            self._renew(now)
            self._get_ready(now)

    def _renew(self, now: int) -> None:
        """Go on with a new configuration, if there is one."""
        before = self._reload.error
        staged = self._reload.staged
        if staged is not None:
            for process in staged.processes():
                self._wings.drain(process)
        crew = self._reload.poll(self._crew.config, now)
        if self._reload.error != before and self._reload.error:
            say(f"new configuration refused, the old one stays: {self._reload.error}")
        if crew is not None:
            self._swap(crew, now)

    def _swap(self, crew: Crew, now: int) -> None:
        config = crew.config
        heartbeat = config.gate.estop.heartbeat_ms * MS if config.gate.estop is not None else 0
        core = Gate(channel_specs(config), self._session, now, EStop(now, heartbeat))
        core.adopt(self._core)
        self._keeper.follow(core.estop)
        self._reload.retire(self._crew, now)
        self._core, self._crew = core, crew
        self._intake = Intake(core)
        say(f"configuration taken over: {', '.join(crew.posts)}")

    def _get_ready(self, now: int) -> None:
        if self._ready:
            return
        grace = self._crew.config.node.ready_grace_ms * MS
        if all(streams_alive(self._crew).values()) or now - self._started > grace:
            self._ready = True
            self._notifier.ready(status(self._core, self._crew, self._reload.error))

    def _feed(self, now: int) -> None:
        """Feed the watchdog while commands really go out, or none is due."""
        due = self._core.next_deadline()
        if not self._fan.clogged and (self._commands != self._fed or due is None or due > now):
            self._fed = self._commands
            self._notifier.watchdog()

    def _report(self, now: int) -> None:
        self._next_report = now + REPORT_NS
        line = status(self._core, self._crew, self._reload.error)
        if not self._stopping:
            self._notifier.status(line)
        plain: dict[str, object] = {
            "session": self._session,
            "seq": self._reports,
            "t": clock.wall(),
            "status": line,
            "ready": self._ready,
            "refused": self._reload.error[:1000],
            "commands": self._commands,
            "unsent": self._fan.lost,
            "stalls": self._stalls,
            "latest_ms": self._latest / MS,
            "resident_mb": round(resident_mb(self._statm), 2),
            **channels_map(self._core),
            **workers_map(self._crew),
        }
        self._publish(wire.encode(wire.HEALTH + "gate", plain))
        self._reports += 1
        self._latest = 0
        gc.collect(0)

    def _stalled(self, now: int, late: int) -> None:
        """The loop stood still: what was decided before now does not act any more."""
        self._stalls += 1
        self._core.discard_before(now)
        self._crew.forgive(now)
        say(f"the loop stood still for {late / MS:.0f} ms: decisions made before are void")
