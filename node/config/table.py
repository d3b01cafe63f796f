"""Reads one table of the file by the rules of a dataclass; every key that no rule knows is a problem."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from reflexarc.node.config.problems import Problems
from reflexarc.node.config.rules import NAME, Rule, RuleError, nearest, plain, show

MOST_TABLES = 1024


class Table:
    """A table at a dotted path. Keys are read through it; `end` then reports the ones nobody asked for."""

    def __init__(self, data: object, path: str, problems: Problems) -> None:
        self.path = path
        self.problems = problems
        self._known: dict[str, None] = {}
        self._data: dict[str, object] = data if isinstance(data, dict) else {}
        self._sound = isinstance(data, dict)
        if not self._sound:
            problems.add(path, f"{show(data)} is not a table")

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def at(self, key: str) -> str:
        """The path of a key of this table."""
        return f"{self.path}.{key}" if self.path else key

    def value(self, key: str) -> object:
        """The raw value of a required key; `None` with a problem where it is missing."""
        self._known[key] = None
        if self._sound and key not in self._data:
            self.problems.add(self.at(key), "is missing")
        return self._data.get(key)

    def read(self, key: str, rule: Rule) -> Any:
        """The value of a required key by a rule; `None` with a problem where it is missing or wrong."""
        value = self.value(key)
        if key not in self._data:
            return None
        try:
            return rule.read(value)
        except RuleError as error:
            for where, message in error.found:
                self.problems.add(self.at(key) + where, message)
            return None

    def fields(self, cls: type) -> dict[str, Any]:
        """The fields of a dataclass that have a rule, read; a wrong one is `None`, a problem recorded."""
        values: dict[str, Any] = {}
        for field in dataclasses.fields(cls):
            if "rule" not in field.metadata:
                continue
            key = field.name
            self._known[key] = None
            required = field.default is dataclasses.MISSING
            values[key] = self.read(key, field.metadata["rule"]) if required or key in self else field.default
        return values

    def table(self, key: str) -> "Table | None":
        """The table at a required key; `None` with a problem where it is missing."""
        value = self.value(key)
        return Table(value, self.at(key), self.problems) if key in self else None

    def optional(self, key: str) -> "Table | None":
        """The table at an optional key."""
        self._known[key] = None
        return Table(self._data[key], self.at(key), self.problems) if key in self else None

    def tables(self, key: str) -> Iterator[tuple[str, "Table"]]:
        """The named tables under an optional key: `[stream.wrist]` is ("wrist", its table) under "stream"."""
        group = self.optional(key)
        if group is None:
            return
        if len(group._data) > MOST_TABLES:
            self.problems.add(group.path, f"{len(group._data)} tables are above {MOST_TABLES}")
            return
        for name, data in group._data.items():
            if not NAME.fullmatch(name):
                self.problems.add(
                    group.at(plain(name)), "is not a name like upper_arm (a-z, 0-9, _, a letter first)"
                )
            else:
                yield name, Table(data, group.at(name), self.problems)

    def items(self) -> Iterator[tuple[str, object]]:
        """All keys with their raw values, each known by this: for tables whose keys the user chooses."""
        self._known.update(dict.fromkeys(self._data))
        yield from self._data.items()

    def end(self) -> None:
        """Report each key that was never asked for, with the nearest that was."""
        for key in self._data:
            if key not in self._known:
                self.problems.add(self.at(plain(key)), f"is not a known key{nearest(key, self._known)}")
