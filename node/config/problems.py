"""Everything that is wrong with a configuration, collected to be shown together."""

from dataclasses import dataclass, field


class ConfigError(ValueError):
    """A configuration that cannot be used; `problems` holds one line each."""

    def __init__(self, problems: list[str], where: str = "configuration") -> None:
        many = len(problems) > 1
        lines = [f"{len(problems)} problems", *(f"  {line}" for line in problems)] if many else problems
        super().__init__(f"{where}: " + "\n".join(lines))
        self.problems = problems


@dataclass(slots=True)
class Problems:
    """The problems found so far, each with the path of the key it is about, in the order found."""

    items: list[tuple[str, str]] = field(default_factory=list)

    def add(self, path: str, message: str) -> None:
        """Record that the key at `path` (dotted) is wrong."""
        self.items.append((path, message))

    def clean(self, *paths: str) -> bool:
        """Whether nothing at, under or above any of `paths` is wrong, so that a check across them can be."""
        return not any(_related(bad, path) for bad, _ in self.items for path in paths)

    def lines(self) -> list[str]:
        """One line a problem: `key.path: what is wrong`."""
        return [f"{path}: {message}" for path, message in self.items]


def _related(a: str, b: str) -> bool:
    short, long = sorted((a, b), key=len)
    return long.startswith(short) and long[len(short) : len(short) + 1] in ("", ".", "[")


@dataclass(frozen=True, slots=True)
class Section:
    """The problems of one part of the file: the same as Problems, with keys relative to `path`."""

    problems: Problems
    path: str

    def add(self, key: str, message: str) -> None:
        """Record that a key of this part is wrong."""
        self.problems.add(f"{self.path}.{key}", message)

    def clean(self, *keys: str) -> bool:
        """Whether none of these keys of this part is wrong."""
        return self.problems.clean(*(f"{self.path}.{key}" for key in keys))

    def section(self, key: str) -> "Section":
        """A part of this part."""
        return Section(self.problems, f"{self.path}.{key}")
