"""Show what this machine offers, and what stands in the way of steady control.

Instruction sets that kernels exist for and this CPU runs; the cores, time and memory this process may use
(affinity and control groups, not the machine's size); caches; bandwidth of reading memory and the peak of
8-bit arithmetic, on 1 thread and on 2; real-time rights, lockable memory, governor, temperatures; and the
state of the compiled kernels. What should be changed is listed last, with how.

Nothing is changed, except that the kernel of the measurement is built if it is missing and numba is there
(--quick measures nothing).

examples:
  reflexarc doctor
  sudo -u reflexarc reflexarc doctor --json | tail -n 1 | jq .advice
"""

import argparse
import json
from typing import Any

from reflexarc.node import machine
from reflexarc.node.budget import ranges

Facts = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("--quick", action="store_true", help="do not measure")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")


def run(args: argparse.Namespace) -> int:
    """Look, measure, advise."""
    facts = gather()
    if not args.quick:
        facts |= _measured(facts["isa"]["chosen"] is not None, facts["cores"]["threads"])
    facts["advice"] = advice(facts)
    print(json.dumps(facts) if args.json else "\n".join(lines(facts)))
    return 0


def gather() -> Facts:
    """All that can be known without measuring."""
    cores = machine.cores()
    return {
        "cpu": machine.cpu_name(),
        "isa": _isa(),
        "cores": cores,
        "caches": machine.caches(cores["allowed"][0]),
        "memory": machine.memory(),
        "cgroup": machine.groups(),
        "realtime": machine.scheduling(),
        "temperatures": machine.temperatures(),
        "kernels": _kernels(),
    }


def advice(facts: Facts) -> list[str]:
    """What to change, one line each; empty on a machine that is as it should be."""
    found = []
    if facts["isa"]["chosen"] is None:
        found.append(f"{facts['isa']['error']}")
    kernels = facts["kernels"]
    if kernels["missing"] and kernels["numba"] is None:
        found.append("kernels are missing and numba is not installed: pip install 'reflexarc[build]'")
    elif kernels["missing"]:
        found.append(f"{len(kernels['missing'])} kernel images are not built yet: reflexarc build-kernels")
    realtime, memory, cores = facts["realtime"], facts["memory"], facts["cores"]
    if not realtime["fifo"]:
        found.append("SCHED_FIFO is not permitted: LimitRTPRIO= in the unit, or rtprio in limits.conf")
    if memory["lockable_mb"] is not None:
        found.append(f"only {memory['lockable_mb']:g} MiB can be locked: LimitMEMLOCK=infinity in the unit")
    if cores["governor"] not in (None, "performance"):
        found.append(f"the governor is {cores['governor']}: cpupower frequency-set -g performance")
    if memory["swap_mb"]:
        found.append("there is swap: memory that is not locked may have to be fetched from it")
    if len(cores["allowed"]) < 2:
        found.append("one core only: a real-time worker would leave none free, it runs as other")
    hot = [name for name, degrees in facts["temperatures"].items() if degrees > 80]
    if hot:
        found.append(f"{', '.join(hot)} is above 80 degrees: the clock may be throttled")
    return found


def lines(facts: Facts) -> list[str]:
    """The facts for people."""
    told = {
        "cpu": facts["cpu"],
        "instructions": _instructions(facts["isa"]),
        "cores": _cores(facts["cores"]),
        "caches": ", ".join(f"{k} {v['kib']} KiB for {v['shared_by']}" for k, v in facts["caches"].items()),
        "memory": _memory(facts["memory"]),
        "cgroup": "version {version}, delegated: {delegated}".format(**facts["cgroup"]),
        "real time": _scheduling(facts["realtime"], facts["memory"]["lockable_mb"]),
        "kernels": _images(facts["kernels"]),
        "temperature": ", ".join(f"{k} {v:.0f}" for k, v in facts["temperatures"].items()) or "unknown",
        "read": _rates(facts.get("read_gb_s"), "GB/s"),
        "8-bit peak": _rates(facts.get("int8_gops"), "GOPS"),
    }
    return [*(f"{k:13} {v}" for k, v in told.items()), *(f"advice: {line}" for line in facts["advice"])]


def _instructions(isa: Facts) -> str:
    return f"{isa['chosen'] or 'none'} (runs here: {', '.join(isa['runnable']) or 'none'})"


def _cores(cores: Facts) -> str:
    quota = f"quota {cores['quota'] or 'none'}, governor {cores['governor'] or 'unknown'}"
    return f"{ranges(cores['allowed'])} of {cores['online']}, {quota}"


def _memory(memory: Facts) -> str:
    group = "without limit" if memory["cgroup_mb"] is None else f"{memory['cgroup_mb']} MiB"
    free = f"{memory['available_mb']} of {memory['total_mb']} MiB free"
    return f"{free}, control group {group}, swap {memory['swap_mb']} MiB"


def _scheduling(realtime: Facts, lockable: float | None) -> str:
    permitted = "permitted" if realtime["fifo"] else "not permitted"
    share = f"at most {realtime['share'] or 1:.0%} of the time"
    return f"SCHED_FIFO {permitted}, {share}, lockable {'all' if lockable is None else f'{lockable:g} MiB'}"


def _images(kernels: Facts) -> str:
    found, all_ = kernels["found"], kernels["found"] + len(kernels["missing"])
    return f"{found} of {all_} images, cache {kernels['cache']}, numba {kernels['numba'] or 'not installed'}"


def _rates(rates: dict[str, float] | None, unit: str) -> str:
    each = ", ".join(f"{rate} {unit} on {n}" for n, rate in (rates or {}).items())
    return each or "not measured"


def _isa() -> Facts:
    from reflexarc.inference import isa

    try:
        return {
            "chosen": isa.choose().name,
            "runnable": [tier.name for tier in isa.runnable()],
            "error": None,
        }
    except isa.IsaError as error:
        return {"chosen": None, "runnable": [tier.name for tier in isa.runnable()], "error": str(error)}


def _kernels() -> Facts:
    """Which kernel images are there for the chosen instruction set, in the wheel or in the cache."""
    from importlib.metadata import PackageNotFoundError, version

    from reflexarc.inference import image, isa
    from reflexarc.inference.families import families

    try:
        numba = version("numba")
    except PackageNotFoundError:
        numba = None
    cache = image.default_cache()
    try:
        tier = isa.choose()
    except isa.IsaError:
        return {"cache": str(cache), "found": 0, "missing": [], "numba": numba}
    places = (image.INSTALLED, cache)
    missing = [f for f in families() if not any(image.find(place, f, tier) for place in places)]
    return {"cache": str(cache), "found": len(families()) - len(missing), "missing": missing, "numba": numba}


def _measured(kernels: bool, threads: int) -> Facts:
    from reflexarc.inference.image import ImageStore
    from reflexarc.inference.image_file import ImageError
    from reflexarc.node.measure import int8_gops, read_gb_s

    counts = range(1, min(threads, 2) + 1)
    facts: Facts = {"read_gb_s": {str(n): round(read_gb_s(n), 1) for n in counts}, "int8_gops": {}}
    if kernels:
        try:
            images = ImageStore()
            facts["int8_gops"] = {str(n): round(int8_gops(images, n), 1) for n in counts}
        except ImageError as error:
            facts["int8_error"] = str(error)
    return facts
