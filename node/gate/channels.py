"""The channels of a configuration as the pure core wants them."""

from reflexarc.control.limiter import Limits
from reflexarc.control.source import make_source
from reflexarc.control.spec import ChannelSpec, ValueSpec
from reflexarc.node.config.schema import Channel, Config, FromLabels, Value


def channel_specs(config: Config) -> list[ChannelSpec]:
    """One spec a channel, times in ns, in the order of the file."""
    return [_channel(channel, config.gate.stall_ms) for channel in config.channels.values()]


def _channel(channel: Channel, stall_ms: int) -> ChannelSpec:
    return ChannelSpec(
        name=channel.name,
        pipeline=channel.pipeline,
        period_ns=round(1e9 / channel.rate_hz),
        gap_ns=round(1e9 / channel.max_rate_hz),
        max_age_ns=round(1e6 * channel.max_age_ms),
        ttl_ms=max(1, round(channel.ttl_ms)),
        stale="jump" if channel.stale == "jump" else "ramp",
        estop="jump" if channel.estop == "jump" else "ramp",
        stall_ns=stall_ms * 1_000_000,
        values=tuple(_value(value) for value in channel.values.values()),
    )


def _value(value: Value) -> ValueSpec:
    source = value.source
    return ValueSpec(
        name=value.name,
        limits=Limits(minimum=value.min, maximum=value.max, slew=value.slew, jerk=value.jerk),
        safe=value.safe,
        source=make_source(
            {**source.values, "otherwise": source.otherwise}
            if isinstance(source, FromLabels)
            else f"value.{source.name}",
            value.scale,
            value.offset,
        ),
    )
