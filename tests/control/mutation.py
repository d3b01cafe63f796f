"""Mutation run over control/: fails on a mutant that survives unexplained, and on an explanation of none.

Each module is mutated by cosmic-ray in a copied tree of its own, against a fast deterministic suite (both are
named in mutation.toml). Usage: python tests/control/mutation.py [MODULE...]
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


class Mutant(NamedTuple):
    """A mutant by what it does and the line it does it to, so that it keeps its name when lines move."""

    module: str
    operator: str
    line: str


class Result(NamedTuple):
    """What became of a module's mutants."""

    module: str
    mutants: int
    survivors: list[tuple[Mutant, str]]


def copy_tree(tree: Path) -> None:
    """Copy control/ as the package reflexarc.control, and its tests: nothing else is imported or harmed."""
    package = tree / "reflexarc"
    package.mkdir()
    (package / "__init__.py").touch()
    shutil.copytree(ROOT / "control", package / "control", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "tests" / "control_cases.py", tree)
    for test in HERE.glob("test_*.py"):
        shutil.copy(test, tree)


def write_session_config(tree: Path, target: dict[str, Any], config: dict[str, Any]) -> None:
    """Write cosmic-ray's own configuration (JSON strings and lists are TOML)."""
    pytest = f"{sys.executable} -m pytest -x -q --assert=plain -p no:cacheprovider --import-mode=importlib"
    (tree / "session.toml").write_text(
        "[cosmic-ray]\n"
        f'module-path = "reflexarc/control/{target["module"]}.py"\n'
        f"timeout = {float(config['timeout_s'])}\n"
        "excluded-modules = []\n"
        f"test-command = {json.dumps(' '.join([pytest, *target['tests']]))}\n"
        '[cosmic-ray.distributor]\nname = "local"\n'
        "[cosmic-ray.filters.operators-filter]\n"
        f"exclude-operators = {json.dumps(config['exclude_operators'])}\n"
    )


def run(tree: Path, *command: str) -> str:
    """Run a Python module in the tree; raises RuntimeError with its output where it fails."""
    environment = os.environ | {
        "PYTHONPATH": str(tree),
        "PYTHONDONTWRITEBYTECODE": "1",  # a cached module of the same size and second would hide a mutation
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def survivors(module: str, source: list[str], dump: str) -> Iterator[tuple[Mutant, str]]:
    """Give the mutants that survived, each with its diff; raises RuntimeError where one was not run."""
    for line in dump.splitlines():
        item, result = json.loads(line)
        mutation = item["mutations"][0]
        if result is None or result["worker_outcome"] == "exception":
            raise RuntimeError(f"{module}: a mutant was not run: {mutation['operator_name']} {result}")
        if result.get("test_outcome") == "survived":
            text = source[mutation["start_pos"][0] - 1].strip()
            yield Mutant(module, mutation["operator_name"].removeprefix("core/"), text), result["diff"] or ""


def mutate(target: dict[str, Any], config: dict[str, Any]) -> Result:
    """Mutate one module in a copied tree."""
    module = target["module"]
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        tree = Path(folder)
        copy_tree(tree)
        source = (tree / "reflexarc" / "control" / f"{module}.py").read_text().splitlines()
        write_session_config(tree, target, config)
        run(tree, "cosmic_ray.cli", "baseline", "session.toml")
        run(tree, "cosmic_ray.cli", "init", "session.toml", "session.sqlite")
        run(tree, "cosmic_ray.tools.filters.operators_filter", "session.sqlite", "session.toml")
        run(tree, "cosmic_ray.cli", "exec", "session.toml", "session.sqlite")
        dump = run(tree, "cosmic_ray.cli", "dump", "session.sqlite")
    mutants = sum('"worker_outcome": "skipped"' not in line for line in dump.splitlines())
    return Result(module, mutants, list(survivors(module, source, dump)))


def main(chosen: list[str]) -> int:
    """Run the modules chosen, or all of them, two at a time; gives the exit code."""
    config = tomllib.loads((HERE / "mutation.toml").read_text())
    targets = [target for target in config["target"] if not chosen or target["module"] in chosen]
    explained = {
        Mutant(entry["module"], operator, entry["line"])
        for entry in config["survivor"]
        if entry["why"] and (not chosen or entry["module"] in chosen)
        for operator in entry["operators"]
    }
    found: set[Mutant] = set()
    unexplained = 0
    with ThreadPoolExecutor(2) as pool:
        for result in pool.map(lambda target: mutate(target, config), targets):
            print(f"{result.module}: {result.mutants} mutants, {len(result.survivors)} survive", flush=True)
            for mutant, diff in result.survivors:
                found.add(mutant)
                if mutant not in explained:
                    unexplained += 1
                    print(f"survives unexplained: {mutant.operator}: {mutant.line}\n{diff}", flush=True)
    for mutant in explained - found:
        print(f"explained but killed: {mutant.module}: {mutant.operator}: {mutant.line}")
    return 1 if unexplained or explained - found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
