"""From the gate's order to a running loop: budgets first, then models, then sockets, then hello."""

import gc
import os
from pathlib import Path

import zmq

from reflexarc.inference.build.spawn import Built
from reflexarc.inference.image import ImageStore
from reflexarc.inference.selftest import with_fallback
from reflexarc.inference.session import Session, plan
from reflexarc.inference.team import Team
from reflexarc.node import budget, realtime, wire
from reflexarc.node.clock import MS
from reflexarc.node.config.load import parse
from reflexarc.node.config.priority import Priority
from reflexarc.node.config.schema import Config, Worker
from reflexarc.node.plan import footprint
from reflexarc.node.say import say
from reflexarc.node.sockets import Sockets
from reflexarc.node.worker.inputs import Input, open_sources
from reflexarc.node.worker.loop import Loop
from reflexarc.node.worker.order import Order
from reflexarc.node.worker.pipeline import Pipeline
from reflexarc.node.worker.task import Task, Timed
from reflexarc.sensors.window import Windower

GATE_MS = 5000  # how long the gate may take to be there
QUEUE = 2000  # messages to the gate
STACKS = 32 * budget.MIB  # of the threads of ZeroMQ: reserved, hardly touched


def main(line: bytes) -> int:
    """Be the worker that the order names until the gate is gone. Gives the exit code."""
    try:
        order = Order.from_line(line)
    except ValueError as error:
        say(f"worker: {error}: it is started by the gate")
        return 2
    if not realtime.die_with_parent(order.gate):
        return 0
    try:
        _work(order)
    except Exception as error:
        if os.environ.get("REFLEXARC_DEBUG"):
            raise
        say(f"worker.{order.worker}: {str(error) or type(error).__name__}")
        return 1
    return 0


def _work(order: Order) -> None:
    config = parse(order.text, Path(order.base))
    worker = config.workers[order.worker]
    streams = config.streams_of(worker.name)
    realtime.pin(order.allowed, "")  # kernels that have to be built are built on all cores
    tasks = _tasks(config, worker, order)
    inputs = [Input(stream, _windower(tasks, stream.name)) for stream in streams]
    _sit(worker, order)
    with Sockets() as sockets:
        gate = sockets.pusher(order.endpoint, queue=QUEUE)
        sources = open_sources(sockets, streams, inputs)
        _greet(gate, worker.name, order.session)
        loop = Loop(worker.name, order.session, worker.stall_ms * MS, gate, sources, inputs, tasks)
        gc.collect()
        gc.freeze()
        gc.disable()
        loop.run(order.gate)


def _tasks(config: Config, worker: Worker, order: Order) -> list[Task]:
    """Every pipeline of the worker with its model loaded; one team of threads runs them all."""
    pipelines = config.pipelines_of(worker.name)

    def load(images: ImageStore) -> list[Task]:
        _preflight(config, worker, images)
        team = Team(images.load(["team"])["team"], order.threads, order.cores, worker.spin_us)
        models = [Timed(Session.load(each.model, images=images, team=team)) for each in pipelines]
        return [
            Task(
                Pipeline(each, config.streams[each.window.stream], model, order.session),
                model,
                round(each.deadline_ms * MS),
            )
            for each, model in zip(pipelines, models, strict=True)
        ]

    return with_fallback(load, progress=_built, warn=say)


def _preflight(config: Config, worker: Worker, images: ImageStore) -> None:
    """Refuse models that cannot fit the memory of the worker, before any is loaded. Raises BudgetError."""
    plans = [plan(pipeline.model, images.tier) for pipeline in config.pipelines_of(worker.name)]
    parts = {"runtime": budget.resident(), **footprint(config, worker.name, plans)}
    budget.preflight(f"worker.{worker.name}.memory_mb", worker.memory_mb, parts)


def _sit(worker: Worker, order: Order) -> None:
    """Take the cores, the priority and the limits of the worker, with every thread there is."""
    key = f"worker.{worker.name}"
    priority = Priority(order.priority_kind, order.priority_level)
    warnings = realtime.pin(order.cores, f"{key}.cores")
    granted, more = realtime.prioritize(priority, f"{key}.priority", fallback_nice=realtime.FALLBACK_NICE)
    if granted.realtime:
        for thread in Path("/proc/self/task").iterdir():  # the team's helpers
            os.sched_setscheduler(int(thread.name), os.SCHED_FIFO, os.sched_param(granted.level))
    realtime.sharpen_timers()
    warnings += [*more, *realtime.lock_memory(key)]
    budget.cap_growth(worker.memory_mb * budget.MIB, STACKS)
    for warning in warnings:
        say(f"warning: {warning}")


def _windower(tasks: list[Task], stream: str) -> Windower:
    """That of the first pipeline which reads the stream."""
    return next(task.pipeline.windower for task in tasks if task.pipeline.stream == stream)


def _built(built: Built) -> None:
    """Tell of a kernel image that had to be built."""
    how = built.error or f"built in {built.seconds:.1f} s"
    say(f"kernels {built.family} for {built.tier}: {how}")


def _greet(gate: zmq.Socket[bytes], name: str, session: int) -> None:
    """Say hello once the gate is there. Raises RuntimeError where it is not."""
    if not gate.poll(GATE_MS, zmq.POLLOUT):
        raise RuntimeError(f"the gate does not answer within {GATE_MS} ms")
    gate.send_multipart(wire.encode(wire.HELLO + name, {"session": session, "pid": os.getpid()}))
