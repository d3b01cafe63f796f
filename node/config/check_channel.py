"""Checks of a channel against its pipeline, and of its values against their own bounds."""

import math

from reflexarc.node.config.problems import Section
from reflexarc.node.config.rules import nearest
from reflexarc.node.config.schema import Channel, Config, FromLabels, Pipeline, Value

LABELLED = "write { LABEL = number, otherwise = number }"


def channel(config: Config, channel: Channel, at: Section) -> None:
    """Add every problem of a channel that more than one key is part of."""
    if at.clean("max_rate_hz", "rate_hz") and channel.max_rate_hz < channel.rate_hz:
        at.add("max_rate_hz", f"{channel.max_rate_hz:g} is below rate_hz {channel.rate_hz:g}")
    if at.clean("ttl_ms", "rate_hz") and channel.ttl_ms < 1000 / channel.rate_hz:
        at.add("ttl_ms", f"{channel.ttl_ms:g} is below the {1000 / channel.rate_hz:g} ms between commands")
    if not channel.values and at.clean("values"):
        at.add("values", "is empty: a command needs at least one value")
    for value in channel.values.values():
        _value(value, at.section(f"values.{value.name}"))
    pipeline = config.pipelines.get(channel.pipeline)
    if pipeline is not None:
        _lifetime(config, channel, pipeline, at)
        _labels(channel, pipeline, at)
    elif at.clean("pipeline"):
        at.add(
            "pipeline", f"{channel.pipeline} is not a pipeline{nearest(channel.pipeline, config.pipelines)}"
        )


def jitter_ms(config: Config, pipeline: Pipeline) -> float:
    """How much later than regular an input may complete a window: one message and the wait for late ones."""
    stream = config.streams[pipeline.window.stream]
    return stream.period_ms + stream.late_ms


def _lifetime(config: Config, channel: Channel, pipeline: Pipeline, at: Section) -> None:
    """A decision must outlive the wait for its successor: hop, deadline, and the jitter of its input."""
    source = Section(at.problems, f"pipeline.{pipeline.name}")
    stream = Section(at.problems, f"stream.{pipeline.window.stream}")
    if pipeline.window.stream not in config.streams or not (
        at.clean("max_age_ms")
        and source.clean("window.hop_s", "window.stream", "deadline_ms")
        and stream.clean("rate_hz", "frame", "late_ms")
    ):
        return
    hop, jitter = 1000 * pipeline.window.hop_s, jitter_ms(config, pipeline)
    least = hop + pipeline.deadline_ms + jitter
    if channel.max_age_ms < least and not math.isclose(channel.max_age_ms, least):
        at.add(
            "max_age_ms",
            f"{channel.max_age_ms:g} is below {least:g}, the {hop:g} of {source.path}.window.hop_s"
            f" + deadline_ms {pipeline.deadline_ms:g} + {jitter:g} of jitter",
        )


def _labels(channel: Channel, pipeline: Pipeline, at: Section) -> None:
    source = f"pipeline.{pipeline.name}"
    if not at.problems.clean(f"{source}.decide"):
        return
    for value in channel.values.values():
        if not isinstance(value.source, FromLabels):
            if at.clean(f"values.{value.name}.from"):
                why = f"{source} decides a label, its decisions hold no values"
                at.add(f"values.{value.name}.from", f"value.{value.source.name}: {why}; {LABELLED}")
            continue
        for label in value.source.values:
            if label not in pipeline.decide.labels:
                known = nearest(label, pipeline.decide.labels)
                at.add(f"values.{value.name}.from.{label}", f"is not a label of {source}{known}")


def _value(value: Value, at: Section) -> None:
    if not at.clean("min", "max"):
        return
    if value.max < value.min:
        at.add("max", f"{value.max:g} is below min {value.min:g}")
        return
    targets = {"safe": value.safe}
    if isinstance(value.source, FromLabels) and at.clean("scale", "offset", "from"):
        raw = {**value.source.values, "otherwise": value.source.otherwise}
        targets |= {f"from.{label}": value.scale * number + value.offset for label, number in raw.items()}
    for key, target in targets.items():
        if not at.clean(key):
            continue
        if target < value.min:
            at.add(key, f"{target:g} is below min {value.min:g}")
        elif target > value.max:
            at.add(key, f"{target:g} is above max {value.max:g}")
