"""The plan of a configuration on this machine, as a map for programs and as lines for people."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from reflexarc.inference.isa import choose
from reflexarc.node import budget
from reflexarc.node.budget import MIB, ranges
from reflexarc.node.config.check_channel import jitter_ms
from reflexarc.node.config.place import Placement, Seat
from reflexarc.node.config.schema import Channel, Config, Pipeline, Stream
from reflexarc.node.plan import Outline, footprint, outline

Plan = dict[str, Any]

STREAM = (
    "stream {name}: {topic} at {endpoint}, {shape} x {rate_hz:g} Hz, alive within {max_age_ms:g} ms,"
    " a message at most {max_bytes} bytes"
)
PIPELINE = (
    "pipeline {name}: {length} samples of {stream} every {hop} -> {model} {input} -> {output},"
    " within {deadline_ms:g} ms"
)
CHANNEL = (
    "channel {name}: {rate_hz:g} to {max_rate_hz:g} Hz from {pipeline}; a decision lives {max_age_ms:g} ms"
    " (at least {least_age_ms:g}), a command {ttl_ms:g} ms; stale: {stale}, e-stop: {estop}"
)
VALUE = "  {name}: {min:g} to {max:g} {unit}, slew {slew:g}/s, {jerk}, safe {safe:g}"


def describe(config: Config, placement: Placement) -> tuple[Plan, list[str]]:
    """The plan, and what is wrong with the models or the memory (then the plan is not whole)."""
    problems: list[str] = []
    models = dict(_outlines(config, problems))
    runtime = budget.resident()  # this process has read the models with the code the workers run
    workers = {}
    for name, worker in config.workers.items():
        own = [models[p.name].memory for p in config.pipelines_of(name) if p.name in models]
        parts = {"runtime": runtime, **footprint(config, name, own)}
        try:
            budget.preflight(f"worker.{name}.memory_mb", worker.memory_mb, parts)
        except budget.BudgetError as error:
            problems.append(str(error))
        memory = {part: round(size / MIB, 2) for part, size in parts.items()}
        workers[name] = {**_seat(placement.workers[name], worker.memory_mb), "memory": memory}
    plan = {
        "node": config.node.name,
        "isa": choose().name,
        "gate": _seat(placement.gate, config.gate.memory_mb),
        "workers": workers,
        "streams": {stream.name: _stream(stream) for stream in config.streams.values()},
        "pipelines": {p.name: _pipeline(p, models.get(p.name)) for p in config.pipelines.values()},
        "channels": {c.name: _channel(config, c) for c in config.channels.values()},
        "warnings": [*placement.warnings, *_unused(config)],
    }
    return plan, problems


def show(plan: Plan) -> None:
    """Print the plan, one thing a line."""
    for name, seat in [("gate", plan["gate"]), *((f"worker {n}", w) for n, w in plan["workers"].items())]:
        print(f"{name}: {_seat_line(seat)}")
    for stream in plan["streams"].values():
        print(STREAM.format(**stream))
    for name, pipeline in plan["pipelines"].items():
        print(PIPELINE.format(name=name, **pipeline))
    for channel in plan["channels"].values():
        print(CHANNEL.format(**channel))
        for value in channel["values"].values():
            jerk = f"jerk {value['jerk']:g}/s^2" if value["jerk"] else "no limit of jerk"
            print(VALUE.format(**{**value, "jerk": jerk}))
    for warning in plan["warnings"]:
        print(f"warning: {warning}")


def _seat_line(seat: Plan) -> str:
    memory = f"{seat['memory_mb']} MiB"
    if "memory" in seat:
        parts = " + ".join(f"{size:g} {part}" for part, size in seat["memory"].items())
        memory = f"{sum(seat['memory'].values()):.1f} of {memory} ({parts})"
    threads = f"{seat['threads']} thread{'' if seat['threads'] == 1 else 's'}"
    return f"cores {ranges(seat['cores'])}, {threads}, {seat['priority']}, {memory}"


def _outlines(config: Config, problems: list[str]) -> Iterable[tuple[str, Outline]]:
    tier = choose()
    for pipeline in config.pipelines.values():
        key = f"pipeline.{pipeline.name}.model"
        try:
            yield pipeline.name, outline(pipeline, config.streams[pipeline.window.stream], tier)
        except OSError as error:
            problems.append(f"{key}: {pipeline.model}: {error.strerror or error}")
        except (ValueError, RuntimeError) as error:
            text = str(error)
            problems.append(text if text.startswith("pipeline.") else f"{key}: {text}")


def _seat(seat: Seat, memory_mb: int) -> Plan:
    return {
        "cores": list(seat.cores),
        "threads": seat.threads,
        "priority": str(seat.priority),
        "memory_mb": memory_mb,
    }


def _stream(stream: Stream) -> Plan:
    return {**asdict(stream), "shape": list(stream.shape), "max_bytes": stream.max_bytes}


def _pipeline(pipeline: Pipeline, model: Outline | None) -> Plan:
    return {
        "worker": pipeline.worker,
        "stream": pipeline.window.stream,
        "length": pipeline.window.length,
        "hop": pipeline.window.hop,
        "model": pipeline.model.name,
        "input": [list(tensor.shape) for tensor in model.inputs] if model else [],
        "output": [list(tensor.shape) for tensor in model.outputs] if model else [],
        "deadline_ms": pipeline.deadline_ms,
        "labels": list(pipeline.decide.labels),
    }


def _channel(config: Config, channel: Channel) -> Plan:
    pipeline = config.pipelines[channel.pipeline]
    least = 1000 * pipeline.window.hop_s + pipeline.deadline_ms + jitter_ms(config, pipeline)
    return {**asdict(channel), "least_age_ms": least}


def _unused(config: Config) -> list[str]:
    """What stands in the file and takes part in nothing: likely a mistake, never a danger."""
    warnings = [
        f"worker.{name}: runs no pipeline" for name in config.workers if not config.pipelines_of(name)
    ]
    read = {pipeline.window.stream for pipeline in config.pipelines.values()}
    return warnings + [f"stream.{name}: no pipeline reads it" for name in config.streams if name not in read]
