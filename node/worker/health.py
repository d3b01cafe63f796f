"""What a worker tells of itself once a second: one flat map of plain numbers and words."""

from collections.abc import Iterable

from reflexarc.node.worker.inputs import Input
from reflexarc.node.worker.task import Task

Plain = bool | int | float | str


def streams_map(inputs: Iterable[Input]) -> dict[str, Plain]:
    """The keys stream.NAME.KEY: the account of messages since the start, and the health as last looked at."""
    return {f"stream.{each.name}.{key}": value for each in inputs for key, value in _stream(each).items()}


def pipelines_map(tasks: Iterable[Task]) -> dict[str, Plain]:
    """The keys pipeline.NAME.KEY, counted since the start; run_p50_ns and run_p99_ns over the latest runs."""
    return {
        f"pipeline.{task.pipeline.name}.{key}": value
        for task in tasks
        for key, value in _pipeline(task).items()
    }


def _stream(each: Input) -> dict[str, Plain]:
    seen = each.seen
    plain: dict[str, Plain] = {
        **each.account(),
        "alive": seen.alive,
        "rate_hz": seen.rate_hz,
        "gaps": seen.gaps,
        "frozen": seen.frozen,
        "warnings": ",".join(seen.warnings),
        "connected": each.connections.connected,
        "disconnects": each.connections.disconnects,
    }
    if seen.skew_ms is not None:
        plain["skew_ms"] = seen.skew_ms
    return plain


def _pipeline(task: Task) -> dict[str, Plain]:
    pipeline = task.pipeline
    p50, p99 = task.model.percentiles_ns()
    return {
        "ticks": pipeline.ticks,
        "decisions": pipeline.decided,
        "unavailable": pipeline.unavailable,
        "deadline_missed": task.missed,
        "run_p50_ns": p50,
        "run_p99_ns": p99,
        "lost": pipeline.windower.lost,
        **{f"breaks.{reason}": count for reason, count in sorted(pipeline.windower.breaks.items())},
    }
