"""What a replay decides otherwise than an earlier one."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from reflexarc.node import wire
from reflexarc.node.clock import SECOND
from reflexarc.node.log import Entry
from reflexarc.node.replay.results import Result

LINES = 1000

Key = tuple[int, int]  # source_t, source_seq


class Diff:
    """Compares results, as they come, with the decisions that an earlier replay kept.

    Decisions belong together by the newest sample they were made of. One that only one of the two has is a
    change too.
    """

    def __init__(self, before: Iterable[Entry]) -> None:
        self.compared = self.changed = 0
        self.lines: list[str] = []
        self._begin = 0
        self._before: dict[str, deque[Mapping[str, object]]] = {}
        for name, plain in _decisions(before):
            self._before.setdefault(name, deque()).append(plain)

    def take(self, result: Result) -> None:
        """Compare the next result of a pipeline."""
        self._begin = self._begin or result.decision.source_t
        mine = result.decision.to_map()
        waiting = self._before.get(result.pipeline, deque())
        while waiting and _key(waiting[0]) < _key(mine):
            self._change(result.pipeline, waiting.popleft(), None)
        self.compared += 1
        if not waiting or _key(waiting[0]) != _key(mine):
            self._change(result.pipeline, None, mine)
            return
        earlier = waiting.popleft()
        if any(earlier.get(key) != mine[key] for key in ("label", "confidence", "available")):
            self._change(result.pipeline, earlier, mine)

    def finish(self) -> None:
        """Count what only the earlier run has."""
        for name, waiting in self._before.items():
            while waiting:
                self._change(name, waiting.popleft(), None)

    def _change(self, name: str, old: Mapping[str, object] | None, new: Mapping[str, object] | None) -> None:
        self.changed += 1
        if len(self.lines) < LINES:
            t, seq = _key(new or old or {})
            at = (t - self._begin) / SECOND
            self.lines.append(f"{name} {at:8.2f} s, sample {seq}: {_show(old)} -> {_show(new)}")


def _decisions(entries: Iterable[Entry]) -> Iterator[tuple[str, Mapping[str, object]]]:
    for entry in entries:
        if entry.topic.startswith(wire.DECISION):
            yield entry.topic.removeprefix(wire.DECISION), wire.decode([b"", entry.payload])[1]


def _key(plain: Mapping[str, object]) -> Key:
    return int(str(plain.get("source_t", 0))), int(str(plain.get("source_seq", 0)))


def _show(plain: Mapping[str, object] | None) -> str:
    return "nothing" if plain is None else f"{plain.get('label')} {float(str(plain.get('confidence'))):.3f}"
