"""What the demo shows while it runs: a live panel on a terminal, a line at each change elsewhere."""

from collections.abc import Mapping
from typing import Protocol, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from reflexarc.node.config.schema import Channel

WIDTH = 30
_COLOURS = {"NORMAL": "green", "DEGRADED": "yellow", "SAFE": "cyan", "ESTOP": "red"}


class View:
    """The latest decision and command, as they are to be shown."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.elapsed_s = 0.0
        self.truth = ""
        self.decision: Mapping[str, object] = {}
        self.command: Mapping[str, object] = {}
        self.note = "starting"

    @property
    def label(self) -> str:
        """What was recognised."""
        return str(self.decision.get("label", ""))

    @property
    def confidence(self) -> float:
        """How sure it is, 0 to 1."""
        return float(str(self.decision.get("confidence", 0.0)))

    @property
    def state(self) -> str:
        """The channel's state."""
        return str(self.command.get("state", ""))

    def value(self, name: str) -> float:
        """A value of the latest command."""
        return float(str(self.command.get(f"value.{name}", 0.0)))


class Screen(Protocol):
    """Shows a view."""

    def show(self, view: View) -> None:
        """Bring the view up to date."""

    def close(self) -> None:
        """Leave the terminal as it was."""


class Panelled:
    """A panel that is drawn anew ten times a second."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=10, transient=True)
        self._live.start()

    def show(self, view: View) -> None:
        """Draw."""
        self._live.update(_panel(view))

    def close(self) -> None:
        """Remove the panel."""
        self._live.stop()


class Lines:
    """One line whenever the label or the state changes."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._last = ("", "", "")

    def show(self, view: View) -> None:
        """Print, if there is news."""
        news = (view.truth, view.label, view.state)
        if news == self._last or not view.state:
            return
        self._last = news
        values = ", ".join(
            f"{name} {view.value(name):.2f} {value.unit} (in {value.min:g} to {value.max:g})"
            for name, value in view.channel.values.items()
        )
        said = f"{view.label} {view.confidence:.2f}" if view.label else "nothing yet"
        reason = str(view.command.get("reason", ""))
        print(
            f"{view.elapsed_s:6.1f} s  does {view.truth or '-':5s} recognised {said:16s} "
            f"{view.state:9s} {values}  {reason}".rstrip(),
            file=self._out,
            flush=True,
        )

    def close(self) -> None:
        """Nothing to leave."""


def _panel(view: View) -> Panel:
    table = Table.grid(padding=(0, 2))
    table.add_row("recording", f"{view.elapsed_s:6.1f} s   {view.note}")
    table.add_row("exercise done", view.truth or "-")
    right = view.label == view.truth
    table.add_row("recognised", Text(view.label or "-", style="bold green" if right else "bold"))
    table.add_row("confidence", f"{_bar(view.confidence, 0, 1)} {view.confidence:4.2f}")
    for name, value in view.channel.values.items():
        now = view.value(name)
        bar = _bar(now, value.min, value.max)
        table.add_row(name, f"{bar} {now:5.2f} {value.unit}   limits {value.min:g} to {value.max:g}")
    reason = str(view.command.get("reason", ""))
    table.add_row("state", Text(f"{view.state or '-'}  {reason}", style=_COLOURS.get(view.state, "")))
    return Panel(Group(table), title=f"control/{view.channel.name}", width=92)


def _bar(value: float, low: float, high: float) -> str:
    share = 0.0 if high <= low else (value - low) / (high - low)
    full = round(WIDTH * min(max(share, 0.0), 1.0))
    return "█" * full + "·" * (WIDTH - full)
