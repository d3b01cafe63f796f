"""Fits a configuration to a machine: which cores and which priority the gate and each worker get."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from reflexarc.node.budget import Allowed, ranges
from reflexarc.node.config.priority import Priority
from reflexarc.node.config.problems import ConfigError, Problems
from reflexarc.node.config.schema import Config, Worker


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a process runs, how many threads compute, and how urgently."""

    cores: tuple[int, ...]
    threads: int
    priority: Priority


@dataclass(frozen=True, slots=True)
class Placement:
    """The seats of all processes, and in plain words where they differ from what was asked for."""

    gate: Seat
    workers: Mapping[str, Seat]
    warnings: tuple[str, ...]


def place(config: Config, allowed: Allowed) -> Placement:
    """Give every process its cores. Raises ConfigError for cores and threads that there are not.

    Workers that name no cores get the least used ones. Real-time workers together always leave one core free:
    where they name cores it is an error, where they name none they are put on the others, or are not
    real-time.
    """
    problems = Problems()
    _cores("gate.cores", config.gate.cores, allowed, problems)
    for worker in config.workers.values():
        key = f"worker.{worker.name}"
        _cores(f"{key}.cores", worker.cores, allowed, problems)
        if worker.threads > allowed.threads:
            problems.add(f"{key}.threads", f"{worker.threads} is above the {_most(allowed)}")
    fixed = [worker for worker in config.workers.values() if worker.priority.realtime and worker.cores]
    urgent = {core for worker in fixed for core in worker.cores or ()}
    if urgent.issuperset(allowed.cores):
        names, cores = ", ".join(worker.name for worker in fixed), ranges(allowed.cores)
        problems.add("worker", f"the real-time ones ({names}) cover every allowed core ({cores})")
    if problems.items:
        raise ConfigError(problems.lines(), "this machine")
    return _seat(config, allowed, urgent)


def _seat(config: Config, allowed: Allowed, urgent: set[int]) -> Placement:
    free = [core for core in allowed.cores if core not in urgent]
    own = config.gate.cores or ()
    reserved = next((core for core in own if core in free), free[0])
    load: Counter[int] = Counter(dict.fromkeys(own, 1))
    load.update(core for worker in config.workers.values() for core in worker.cores or ())
    seats: dict[str, Seat] = {}
    warnings: list[str] = []
    for worker in config.workers.values():
        seat = _choose(worker, allowed, reserved, load)
        if seat.priority != worker.priority:
            warnings.append(
                f"worker.{worker.name}.priority: {worker.priority} with {worker.threads} threads would leave"
                f" none of the {len(allowed.cores)} cores free, so {seat.priority}"
            )
        seats[worker.name] = seat
    gate = Seat(own or allowed.cores, 1, config.gate.priority)
    return Placement(gate, seats, tuple(warnings))


def _choose(worker: Worker, allowed: Allowed, reserved: int, load: Counter[int]) -> Seat:
    if worker.cores:
        return Seat(worker.cores, worker.threads, worker.priority)
    priority, choice = worker.priority, list(allowed.cores)
    if priority.realtime:
        others = [core for core in choice if core != reserved]
        if len(others) >= worker.threads:
            choice = others
        else:
            priority = Priority("other")
    choice.sort(key=lambda core: (load[core], -core))
    cores = tuple(sorted(choice[: worker.threads]))
    load.update(cores)
    return Seat(cores, worker.threads, priority)


def _cores(key: str, cores: tuple[int, ...] | None, allowed: Allowed, problems: Problems) -> None:
    missing = set(cores or ()) - set(allowed.cores)
    if missing:
        problems.add(key, f"{ranges(missing)} is not among the allowed cores {ranges(allowed.cores)}")


def _most(allowed: Allowed) -> str:
    if allowed.quota is not None and allowed.threads < len(allowed.cores):
        return f"{allowed.threads} of the control group's quota, {allowed.quota:g} cores"
    return f"{allowed.threads} of the allowed cores {ranges(allowed.cores)}"
