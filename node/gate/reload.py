"""From one configuration to the next in a running node: the old one works on until the new one is ready."""

from collections.abc import Callable, Iterator
from dataclasses import fields

from reflexarc.node.config.problems import ConfigError
from reflexarc.node.config.schema import Config
from reflexarc.node.gate.crew import Crew
from reflexarc.node.gate.watch import Verdict, Watch


class Reload:
    """Starts the workers of a checked configuration beside the old ones; hands over when all answer."""

    def __init__(self, watch: Watch, make: Callable[[Config], Crew]) -> None:
        self.error = ""  # why the last new configuration was refused; empty once one is accepted
        self.staged: Crew | None = None
        self._watch = watch
        self._make = make
        self._retired: list[Crew] = []

    def request(self) -> None:
        """Take the configuration's file in again, changed or not."""
        self._watch.request()

    def poll(self, current: Config, now: int) -> Crew | None:
        """Go on with what is to be done; a crew once it can take over."""
        for crew in self._retired:
            crew.poll(now)
        self._retired = [crew for crew in self._retired if not crew.gone]
        verdict = self._watch.poll(now)
        if verdict is not None:
            self._judge(verdict, current, now)
        staged = self.staged
        if staged is None:
            return None
        staged.poll(now)
        if staged.failure:
            self._refuse(staged.failure, now)
        elif staged.ready(now):
            self.staged, self.error = None, ""
            return staged
        return None

    def retire(self, crew: Crew, now: int) -> None:
        """End a crew without waiting for it."""
        crew.stop(now)
        self._retired.append(crew)

    def close(self) -> None:
        """End everything that is under way."""
        self._watch.close()
        for crew in (*self._retired, *([self.staged] if self.staged else [])):
            crew.close()

    def _judge(self, verdict: Verdict, current: Config, now: int) -> None:
        if verdict.config is None:
            self._refuse(verdict.error, now)
        elif changed := list(fixed_changes(current, verdict.config)):
            self._refuse("; ".join(f"{name}: needs a restart" for name in changed), now)
        else:
            if self.staged is not None:
                self.retire(self.staged, now)
                self.staged = None
            try:
                self.staged = self._make(verdict.config)
            except (ConfigError, RuntimeError) as error:
                self._refuse(str(error), now)
            else:
                self.staged.start(now)

    def _refuse(self, error: str, now: int) -> None:
        self.error = error
        if self.staged is not None:
            self.retire(self.staged, now)
            self.staged = None


def fixed_changes(old: Config, new: Config) -> Iterator[str]:
    """The keys that differ and cannot change while the node runs."""
    for name in ("name", "publish"):
        if getattr(old.node, name) != getattr(new.node, name):
            yield f"node.{name}"
    for field in fields(old.gate):
        if getattr(old.gate, field.name) != getattr(new.gate, field.name):
            yield f"gate.{field.name}"
