"""The tables of leave-one-person-out results, and their place in the README."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reflexarc.configs.exosuit.choose import GRID, choose, session_runs
from reflexarc.configs.exosuit.evaluate import Run, Scores, accuracy, confusion, decide, delay
from reflexarc.configs.exosuit.settings import Policy, Settings

BEGIN, END = "<!-- results: written by train.py -->", "<!-- end of results -->"


@dataclass(frozen=True, slots=True)
class Person:
    """Scores of one person's series (each with its label) and of the sessions joined from them."""

    number: int
    series: list[tuple[Scores, int]]
    sessions: list[tuple[Scores, Sequence[int]]]

    def raw(self) -> float:
        """Share of windows whose highest score is right."""
        return float(np.concatenate([scores.argmax(axis=1) == label for scores, label in self.series]).mean())

    def runs(self, labels: Sequence[str], policy: Policy) -> list[Run]:
        """Decisions of the policy over each series."""
        return [
            Run(np.full(len(scores), label), decide(scores, labels, policy)) for scores, label in self.series
        ]


def write(people: Sequence[Person], config: Settings) -> tuple[str, int]:
    """Return the results as Markdown, and the number of the person whose accuracy is the (lower) median."""
    joined = {policy: [session_runs(p.sessions, config.labels, policy) for p in people] for policy in GRID}
    everyone = range(len(people))
    policy = choose(joined, everyone)
    unseen = [choose(joined, [i for i in everyone if i != j]) for j in everyone]
    runs = [p.runs(config.labels, policy) for p in people]
    honest = [p.runs(config.labels, q) for p, q in zip(people, unseen, strict=True)]
    accuracies = [accuracy(r) for r in runs]
    median = people[int(np.argsort(accuracies, kind="stable")[(len(people) - 1) // 2])].number
    raw = np.average([p.raw() for p in people], weights=[sum(len(s) for s, _ in p.series) for p in people])
    sessions = _flat(joined[policy])
    lines = [
        f"Policy chosen: threshold {policy.threshold}, hold {policy.hold}, smooth {policy.smooth} "
        f"({'as' if policy == config.policy else 'NOT as'} in exosuit.toml).",
        "",
        "| | accuracy |",
        "|---|---|",
        f"| per window, no policy | {raw:.3f} |",
        f"| **with the policy** | **{accuracy(_flat(runs)):.3f}** |",
        f"| with the policy, its parameters chosen without the person too | {accuracy(_flat(honest)):.3f} |",
        f"| in sessions joined without gaps, every window counted | {accuracy(sessions):.3f} |",
        "",
        *_people_table(people, runs, joined[policy], unseen, median, config),
        "",
        *_delay_table(_flat(runs), sessions, config),
        "",
        *_confusion_table(_flat(runs), config.labels),
    ]
    return "\n".join(lines), median


def install(text: str, readme: Path) -> None:
    """Replace what stands between the two marks of the README; ValueError where a mark is missing."""
    head, _, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    _, mark, tail = rest.partition(END)
    if not mark:
        raise ValueError(f"{readme}: the marks {BEGIN} and {END} are missing")
    readme.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}", encoding="utf-8")


def _people_table(
    people: Sequence[Person],
    runs: Sequence[Sequence[Run]],
    joined: Sequence[Sequence[Run]],
    unseen: Sequence[Policy],
    median: int,
    config: Settings,
) -> list[str]:
    lines = [
        "| person | per window | with the policy | undecided | sessions | policy chosen without them |",
        "|---|---|---|---|---|---|",
    ]
    for person, own, sessions, policy in zip(people, runs, joined, unseen, strict=True):
        undecided = np.concatenate([run.decided < 0 for run in own]).mean()
        mark = " (median, shipped)" if person.number == median else ""
        chosen = f"{policy.threshold} / {policy.hold} / {policy.smooth}"
        lines.append(
            f"| {person.number}{mark} | {person.raw():.3f} | {accuracy(own):.3f} | {undecided:.3f} "
            f"| {accuracy(sessions):.3f} | {chosen} |"
        )
    return lines


def _delay_table(runs: Sequence[Run], sessions: Sequence[Run], config: Settings) -> list[str]:
    hop_s = config.hop / config.rate_hz
    begun = [delay(run) for run in runs]
    changed = [delay(run, begin) for run in sessions for begin in _changes(run)]
    return [
        "| delay until the right label, s | median | 90 % | worst | never |",
        "|---|---|---|---|---|",
        _delay_row("a series begins after a gap: from its first whole window", begun, hop_s),
        _delay_row("the exercise changes without a gap: from the change", changed, hop_s),
    ]


def _delay_row(name: str, delays: Sequence[int | None], hop_s: float) -> str:
    reached = np.array([d for d in delays if d is not None]) * hop_s
    quantiles = " | ".join(f"{value:.1f}" for value in np.quantile(reached, (0.5, 0.9, 1.0), method="higher"))
    return f"| {name} | {quantiles} | {len(delays) - len(reached)} of {len(delays)} |"


def _changes(run: Run) -> list[int]:
    """Indices of the first window of every exercise but the session's first."""
    return [int(i) + 1 for i in np.flatnonzero(np.diff(run.truth))]


def _confusion_table(runs: Sequence[Run], labels: Sequence[str]) -> list[str]:
    table = confusion(runs, len(labels))
    head = ["| exercise \\ decided | " + " | ".join([*labels, "undecided"]) + " | right |", "|---" * 10 + "|"]
    share = table.diagonal() / table.sum(axis=1)
    return head + [
        f"| {name} | " + " | ".join(map(str, row)) + f" | {part:.3f} |"
        for name, row, part in zip(labels, table.tolist(), share, strict=True)
    ]


def _flat(groups: Iterable[Sequence[Run]]) -> list[Run]:
    return [run for group in groups for run in group]
