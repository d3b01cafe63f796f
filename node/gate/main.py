"""From a configuration file to a running node: budgets, lock, latch, sockets, workers, then the loop."""

import gc
import resource
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from reflexarc.control.estop import EStop
from reflexarc.control.gate import Gate
from reflexarc.node import budget, cgroup, clock, realtime, wire
from reflexarc.node.budget import Allowed
from reflexarc.node.clock import MS
from reflexarc.node.config.load import load
from reflexarc.node.config.place import Placement, place
from reflexarc.node.config.schema import Config
from reflexarc.node.gate.channels import channel_specs
from reflexarc.node.gate.child import let_children_go
from reflexarc.node.gate.crew import Crew
from reflexarc.node.gate.fan import Fan
from reflexarc.node.gate.folder import check_room, runtime_folder, take
from reflexarc.node.gate.latch import Keeper, LatchFile
from reflexarc.node.gate.loop import Loop
from reflexarc.node.gate.process import Plan
from reflexarc.node.gate.reload import Reload
from reflexarc.node.gate.signals import Signals
from reflexarc.node.gate.watch import Watch
from reflexarc.node.say import say
from reflexarc.node.sockets import Sockets
from reflexarc.node.systemd import Notifier

FEW_FILES = 256
MOST_FILES = 65_536
QUEUE = 1000  # messages for a subscriber that is behind: a second or so


def run(path: Path) -> int:
    """Run the node until SIGTERM or SIGINT.

    Raises ConfigError, FolderError or BindError, before anything has begun.
    """
    config = load(path)
    allowed = budget.allowed()
    placement = place(config, allowed)
    with ExitStack() as stack:
        folder = runtime_folder()
        stack.callback(take(folder, config.node.name).release)
        let_children_go()
        notifier, heard = Notifier(), Signals()
        fifo = _sit(placement)
        sockets = stack.enter_context(Sockets(fifo=fifo, cores=placement.gate.cores))
        fan = Fan(sockets, config.node.publish, "node.publish", QUEUE, fifo)
        stack.callback(fan.close)
        stopper = None
        if (estop := config.gate.estop) is not None:
            stopper = sockets.puller(estop.endpoint, "gate.estop.endpoint", max_bytes=wire.MAX_BYTES)
        make = _maker(allowed, sockets, folder)
        crew = make(config)
        session, now = clock.fresh_session(), clock.now()
        latch = LatchFile(folder / f"{config.node.name}.estop")
        core = Gate(channel_specs(config), session, now, _estop(config, latch, now))
        keeper = Keeper(latch, core.estop)
        reload = Reload(Watch(path, now, allowed.cores), make)
        loop = Loop(session, crew, core, keeper, reload, notifier, heard, fan, stopper)
        stack.callback(loop.close)
        crew.start(now)
        gc.collect()
        gc.freeze()
        gc.disable()
        loop.run()
    return 0


def _sit(placement: Placement) -> int | None:
    """Take the gate's cores and priority; gives what its other threads are to have of SCHED_FIFO."""
    seat = placement.gate
    warnings = [*placement.warnings, *realtime.pin(seat.cores, "gate.cores")]
    priority, more = realtime.prioritize(seat.priority, "gate.priority", reset_on_fork=True)
    warnings += [*more, *realtime.lock_memory("gate")]
    realtime.sharpen_timers()
    warnings += _open_many()
    for warning in warnings:
        say(f"warning: {warning}")
    return priority.level if priority.realtime else None


def _open_many() -> list[str]:
    """Raise the soft limit of descriptors: each subscriber takes one, and an e-stop must always get one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if wanted < FEW_FILES:
        return [f"gate: {wanted} descriptors are few, below {FEW_FILES}: subscribers may keep an e-stop out"]
    return []


def _maker(allowed: Allowed, sockets: Sockets, folder: Path) -> Callable[[Config], Crew]:
    serial, group = count(), cgroup.delegated()

    def make(config: Config) -> Crew:
        for worker in config.workers:
            check_room(folder, config.node.name, worker)
        return Crew(Plan(config, place(config, allowed), allowed, group), sockets, folder, next(serial))

    return make


def _estop(config: Config, latch: LatchFile, now: int) -> EStop:
    """The e-stop as it was left; a latch that cannot be read is a stop."""
    heartbeat = 0 if config.gate.estop is None else config.gate.estop.heartbeat_ms * MS
    estop = EStop(now, heartbeat)
    kept = latch.read()
    if kept is not None:
        estop.restore(kept, now)
    return estop
