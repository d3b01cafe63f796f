"""From a TOML file to a Config, with every problem found on the way shown at once.

    config = load(Path("exosuit.toml"))          # ConfigError: one line a problem

`parse` needs no machine and opens no file: paths of models are made absolute, not looked for, and cores are
not compared with the ones there are (`place` does that).
"""

import dataclasses
import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reflexarc.node.config import check
from reflexarc.node.config.problems import ConfigError, Problems
from reflexarc.node.config.rules import LABEL, Number, show, wrong
from reflexarc.node.config.schema import (
    MAX_RATE_HZ,
    Channel,
    Classify,
    Config,
    Estop,
    FromLabels,
    FromValue,
    Gate,
    Node,
    Pipeline,
    Stream,
    Value,
    Window,
    Worker,
)
from reflexarc.node.config.table import Table

LARGEST_FILE = 1 << 20
TOLERANCE = 1e-6  # of a sample, relative: how far a window's length may be from whole samples
_REAL = Number(-1e12, 1e12)


def load(path: Path) -> Config:
    """The configuration in a file. Raises ConfigError with every problem, an unreadable file included."""
    return parse(read(path), path.parent, str(path))


def read(path: Path) -> str:
    """The text of a configuration file; never waits and is never large. Raises ConfigError."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigError(["is not a regular file"], str(path))
            raw = file.read(LARGEST_FILE + 1)
        if len(raw) > LARGEST_FILE:
            raise ConfigError([f"the file is above {LARGEST_FILE} bytes"], str(path))
        return raw.decode()
    except OSError as error:
        raise ConfigError([f"cannot be read: {error.strerror or error}"], str(path)) from None
    except UnicodeDecodeError as error:
        raise ConfigError([f"byte {error.start} is not UTF-8"], str(path)) from None


def parse(text: str, base: Path, where: str = "configuration") -> Config:
    """The configuration in a text; relative paths in it start at `base`. Raises ConfigError."""
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise ConfigError(["is nested too deeply"], where) from None
    except ValueError as error:
        raise ConfigError([f"is not TOML: {error}"], where) from None
    return build(data, text, base, where)


def build(data: Mapping[str, Any], text: str, base: Path, where: str = "configuration") -> Config:
    """The configuration in what tomllib made of a text. Raises ConfigError."""
    problems = Problems()
    root = Table(data, "", problems)
    streams = {name: _plain(table, Stream, name) for name, table in root.tables("stream")}
    config = Config(
        node=_plain(root.table("node") or Table({}, "node", Problems()), Node),
        gate=_gate(root.optional("gate") or Table({}, "gate", problems)),
        workers={name: _plain(table, Worker, name) for name, table in root.tables("worker")},
        streams=streams,
        pipelines={name: _pipeline(table, name, streams, base) for name, table in root.tables("pipeline")},
        channels={name: _channel(table, name) for name, table in root.tables("channel")},
        text=text,
        base=base,
    )
    root.end()
    check.across(config, problems)
    if problems.items:
        raise ConfigError(problems.lines(), where)
    return config


def _plain(table: Table, cls: type, name: str | None = None) -> Any:
    """A table that holds nothing but the keys of a dataclass."""
    values = table.fields(cls)
    table.end()
    return cls(**values) if name is None else cls(name=name, **values)


def _gate(table: Table) -> Gate:
    values = table.fields(Gate)
    estop = table.optional("estop")
    table.end()
    return Gate(estop=None if estop is None else _plain(estop, Estop), **values)


def _pipeline(table: Table, name: str, streams: Mapping[str, Stream], base: Path) -> Pipeline:
    values = table.fields(Pipeline)
    model = table.read("model", _Path())
    window = table.table("window")
    decide = table.table("decide")
    table.end()
    return Pipeline(
        name=name,
        model=base if model is None else base.absolute() / model,
        window=_broken(Window) if window is None else _window(window, streams),
        decide=_broken(Classify) if decide is None else _plain(decide, Classify),
        **values,
    )


def _window(table: Table, streams: Mapping[str, Stream]) -> Window:
    values = table.fields(Window)
    table.end()
    stream = streams.get(values["stream"])
    rate = None if stream is None else stream.rate_hz
    length, hop = (_samples(table, key, values[key], rate) for key in ("length_s", "hop_s"))
    return Window(length=length, hop=hop, **values)


def _samples(table: Table, key: str, seconds: float | None, rate: float | None) -> int:
    """Seconds as a whole number of samples, at least 1; 0 where it cannot be told."""
    if seconds is None or rate is None:
        return 0
    count = seconds * rate
    whole = round(count)
    if whole < 1 or abs(count - whole) > TOLERANCE * max(1, whole):
        near = max(1, whole) / rate
        table.problems.add(
            table.at(key),
            f"{seconds:g} s at {rate:g} Hz is {count:g} samples, not a whole number (nearest: {near:.9g})",
        )
        return 0
    return whole


def _channel(table: Table, name: str) -> Channel:
    fields = table.fields(Channel)
    if fields["max_rate_hz"] == 0.0 and fields["rate_hz"] is not None:
        fields["max_rate_hz"] = max(MAX_RATE_HZ, fields["rate_hz"])
    values = {key: _value(entry, key) for key, entry in table.tables("values")}
    if not values and "values" not in table:
        table.problems.add(table.at("values"), "is missing")
    table.end()
    return Channel(name=name, values=values, **fields)


def _value(table: Table, name: str) -> Value:
    fields = table.fields(Value)
    source = _source(table)
    table.end()
    return Value(name=name, source=source, **fields)


def _source(table: Table) -> FromLabels | FromValue:
    raw = table.value("from")
    if isinstance(raw, dict):
        labels = Table(raw, table.at("from"), table.problems)
        otherwise = labels.read("otherwise", _REAL)
        values = {label: labels.read(label, _REAL) for label, _ in labels.items() if label != "otherwise"}
        return FromLabels(values, otherwise)
    name = raw.removeprefix("value.") if isinstance(raw, str) and raw.startswith("value.") else ""
    if "from" in table and not LABEL.fullmatch(name):
        table.problems.add(
            table.at("from"), f'{show(raw)} is neither {{ LABEL = number, otherwise = number }} nor "value.X"'
        )
    return FromValue(name)


def _broken(cls: type) -> Any:
    """A stand-in for a missing table, whose absence is already a problem."""
    return cls(**dict.fromkeys(field.name for field in dataclasses.fields(cls)))


class _Path:
    """A path without NUL, at most 1024 characters."""

    def read(self, value: object) -> str:
        if not isinstance(value, str) or not value or len(value) > 1024 or "\0" in value:
            raise wrong(f"{show(value)} is not the path of a file")
        return value
