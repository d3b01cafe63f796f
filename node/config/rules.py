"""What a value in the configuration may be: each rule reads one value or says why it cannot.

A rule is a small object with `read(value)`; it returns the value as the program uses it or raises RuleError.
Rules know nothing of files or of each other; the schema puts one beside each field.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
TOPIC = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*")
LABEL = re.compile(r"[A-Za-z0-9_.+-]+")
UNIT = re.compile(r"[^\x00-\x1f\x7f]*")
MOST_SHOWN = 5  # wrong items of one list


class RuleError(Exception):
    """Why a value is refused: `found` holds (where inside the value, message) pairs."""

    def __init__(self, *found: tuple[str, str]) -> None:
        super().__init__(found)
        self.found = found


def wrong(message: str) -> RuleError:
    """A value wrong as a whole."""
    return RuleError(("", message))


class Rule(Protocol):
    """Reads one value of the file."""

    def read(self, value: object) -> Any:
        """The value as the program uses it. Raises RuleError."""


def show(value: object) -> str:
    """A value as a message shows it: short, on one line, true and false as TOML writes them."""
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, float):
        text = f"{value:g}"
    elif isinstance(value, int) and abs(value) >= 10**20:
        text = f"an integer of {value.bit_length()} bits"
    else:
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def plain(key: str) -> str:
    """A key as a path shows it: as it stands, quoted where it holds anything strange."""
    return key if LABEL.fullmatch(key) and len(key) <= 64 else show(key)


def nearest(word: object, known: Iterable[str]) -> str:
    """The end of a message that helps: the nearest known word, else the first of all."""
    from difflib import get_close_matches  # only an error pays for it

    options = list(known)
    close = get_close_matches(str(word)[:64], options, n=1, cutoff=0.5)
    if close:
        return f" (did you mean {close[0]}?)"
    return f" (known: {', '.join(options[:12])}{', ...' if len(options) > 12 else ''})" if options else ""


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number in [low, high], (low, high] with `above`; `whole` for an integer. A bool is none."""

    low: float
    high: float
    above: bool = False
    whole: bool = False

    def read(self, value: object) -> float | int:
        """A float, or an int with `whole`."""
        if isinstance(value, bool) or not isinstance(value, int if self.whole else (int, float)):
            raise wrong(f"{show(value)} is not {'an integer' if self.whole else 'a number'}")
        if isinstance(value, float) and not math.isfinite(value):
            raise wrong(f"{show(value)} is not finite")
        if value < self.low or (self.above and value == self.low):
            raise wrong(f"{show(value)} is {'not above' if self.above else 'below'} {self.low:.12g}")
        if value > self.high:
            raise wrong(f"{show(value)} is above {self.high:.12g}")
        return value if self.whole else float(value)


def integer(low: int, high: int) -> Number:
    """The rule for an integer in [low, high]."""
    return Number(low, high, whole=True)


@dataclass(frozen=True, slots=True)
class Bool:
    """true or false."""

    def read(self, value: object) -> bool:
        """A bool."""
        if not isinstance(value, bool):
            raise wrong(f"{show(value)} is not true or false")
        return value


@dataclass(frozen=True, slots=True)
class Text:
    """A string of at most `longest` characters that matches `pattern` whole; `what` says what that means."""

    pattern: re.Pattern[str]
    what: str
    longest: int

    def read(self, value: object) -> str:
        """A str."""
        if not isinstance(value, str):
            raise wrong(f"{show(value)} is not a string")
        if len(value) > self.longest:
            raise wrong(f"{len(value)} characters are above {self.longest}")
        if not self.pattern.fullmatch(value):
            raise wrong(f"{show(value)} is not {self.what}")
        return value


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    options: tuple[str, ...]

    def read(self, value: object) -> str:
        """The word."""
        if not isinstance(value, str) or value not in self.options:
            raise wrong(f"{show(value)} is not one of the known words{nearest(value, self.options)}")
        return value


@dataclass(frozen=True, slots=True)
class Many:
    """A list of `least` to `most` values that each obey `rule`; `unique` forbids the same one twice."""

    rule: Rule
    least: int
    most: int
    unique: bool = False

    def read(self, value: object) -> tuple[Any, ...]:
        """A tuple of what `rule` reads."""
        if not isinstance(value, list):
            raise wrong(f"{show(value)} is not a list")
        if not self.least <= len(value) <= self.most:
            limit = f"below {self.least}" if len(value) < self.least else f"above {self.most}"
            raise wrong(f"a list of {len(value)} is {limit}")
        items = self._items(value)
        if self.unique and len(set(items)) < len(items):
            raise wrong(f"{show(_twice(items))} stands there more than once")
        return items

    def _items(self, values: list[object]) -> tuple[Any, ...]:
        items: list[Any] = []
        found: list[tuple[str, str]] = []
        for i, value in enumerate(values):
            try:
                items.append(self.rule.read(value))
            except RuleError as error:
                found += [(f"[{i}]{where}", message) for where, message in error.found]
                if len(found) >= MOST_SHOWN:
                    break
        if found:
            raise RuleError(*found)
        return tuple(items)


def _twice(items: tuple[Any, ...]) -> Any:
    seen: set[Any] = set()
    for item in items:
        if item in seen:
            return item
        seen.add(item)
    raise AssertionError("all items differ")


@dataclass(frozen=True, slots=True)
class OneOrMany:
    """One value, or a list of them: `scale = 2` and `scale = [1, 1, 0.5]`."""

    many: Many

    def read(self, value: object) -> tuple[Any, ...]:
        """A tuple; of one value where the file holds a single one."""
        return self.many.read(value) if isinstance(value, list) else (self.many.rule.read(value),)
