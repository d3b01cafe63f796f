"""What the gate tells of the node: the map of health/gate, readiness, and the service manager's status."""

from collections.abc import Iterable

from reflexarc.control.command import ESTOP, NORMAL, SAFE
from reflexarc.control.gate import Gate
from reflexarc.node.gate.crew import Crew, Post

Plain = bool | int | float | str
_WORST_FIRST = (ESTOP, SAFE, "DEGRADED", NORMAL)


def streams_alive(crew: Crew) -> dict[str, bool]:
    """Every stream of the configuration that is read, and whether all workers that read it call it alive."""
    alive: dict[str, bool] = {}
    for name, post in crew.posts.items():
        said = post.process.health if post.process is not None else {}
        for stream in crew.config.streams_of(name):
            alive[stream.name] = (
                alive.get(stream.name, True) and said.get(f"stream.{stream.name}.alive") is True
            )
    return alive


def status(core: Gate, crew: Crew, refused: str) -> str:
    """One line on what flows: the worst channel, silent streams, absent workers, a configuration refused."""
    parts = [_worst(core)]
    alive = streams_alive(crew)
    silent = [name for name, lives in alive.items() if not lives]
    parts.append(f"no input: {', '.join(silent)}" if silent else f"input: {', '.join(_rates(crew))}")
    parts += [f"worker {name}: {how}" for name, how in _absent(crew.posts.values())]
    if refused:
        parts.append(f"new configuration refused: {refused.splitlines()[0]}")
    return "; ".join(parts)


def workers_map(crew: Crew) -> dict[str, Plain]:
    """The keys worker.NAME.KEY: state, pid, restarts, resident_mb, why the last process ended, refusals."""
    plain: dict[str, Plain] = {}
    for name, post in crew.posts.items():
        at = f"worker.{name}."
        process = post.process
        plain[at + "state"] = "absent" if process is None else "running" if process.greeted else "starting"
        plain[at + "pid"] = 0 if process is None else process.pid
        plain[at + "restarts"] = post.restarts
        plain[at + "resident_mb"] = round(post.resident_mb, 2)
        plain[at + "last_end"] = post.last_end
        if process is not None:
            plain |= {f"{at}refused.{reason}": count for reason, count in sorted(process.counts.items())}
    return plain


def channels_map(core: Gate) -> dict[str, Plain]:
    """The keys channel.NAME.KEY and estop.KEY: state, reason, and what was counted."""
    plain: dict[str, Plain] = {"estop": core.estop.words}
    plain |= {f"estop.{word}": count for word, count in sorted(core.estop.counts.items())}
    for name, channel in core.channels.items():
        at = f"channel.{name}."
        if channel.last is not None:
            plain[at + "state"] = channel.last.state
            plain[at + "reason"] = channel.last.reason
        plain |= {f"{at}{word}": count for word, count in sorted(channel.counts.items())}
    return plain


def _worst(core: Gate) -> str:
    lasts = [channel.last for channel in core.channels.values() if channel.last is not None]
    for state in _WORST_FIRST:
        for command in lasts:
            if command.state == state:
                return f"{state} ({command.channel}: {command.reason})" if command.reason else state
    return "no channel"


def _absent(posts: Iterable[Post]) -> list[tuple[str, str]]:
    found = []
    for post in posts:
        if post.process is None:
            found.append((post.worker.name, post.last_end))
        elif not post.process.greeted:
            found.append((post.worker.name, "starting"))
    return found


def _rates(crew: Crew) -> list[str]:
    """Each stream and the rate that a worker saw last."""
    rates: dict[str, str] = {}
    for name, post in crew.posts.items():
        said = post.process.health if post.process is not None else {}
        for stream in crew.config.streams_of(name):
            rate = said.get(f"stream.{stream.name}.rate_hz")
            rates[stream.name] = (
                f"{stream.name} {rate:.0f} Hz" if isinstance(rate, float) and rate else stream.name
            )
    return list(rates.values())
