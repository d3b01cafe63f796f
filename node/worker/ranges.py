"""Sequence numbers in order of receipt as a short text: "120-129,131"."""

from collections.abc import Iterable, Iterator, Sequence


def to_text(numbers: Sequence[int]) -> str:
    """Runs of numbers that rise by one as `first-last`, joined by commas; the order is kept."""
    return runs_to_text(_runs(numbers))


def runs_to_text(runs: Iterable[Sequence[int]]) -> str:
    """The same for runs that are already put together, each a first and a last number."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


MOST = 1 << 20  # numbers in one text


def from_text(text: str, most: int = MOST) -> list[int]:
    """The numbers of `to_text`, in order. Raises ValueError for anything else, or for more than `most`."""
    numbers: list[int] = []
    for part in text.split(",") if text else ():
        first, dash, last = part.partition("-")
        low, high = int(first), int(last if dash else first)
        if high < low or len(numbers) + high - low >= most:
            raise ValueError(f"{part!r} is no range, or the text holds more than {most} numbers")
        numbers.extend(range(low, high + 1))
    return numbers


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    if not numbers:
        return
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last
