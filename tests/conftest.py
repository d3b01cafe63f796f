"""The report says which instruction sets the tests ran on, and how."""

import pytest
from emulator import launcher, why_not

from reflexarc.inference.isa import TIERS, Tier

ABOUT_KERNELS = "inference/test_kernels.py"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    passed = terminalreporter.stats.get("passed", [])
    if any(ABOUT_KERNELS in report.nodeid for report in passed):
        terminalreporter.section("instruction sets")
        for tier in TIERS.values():
            terminalreporter.write_line(f"{tier.name:12s} {_how(tier)}")


def _how(tier: Tier) -> str:
    command = launcher(tier)
    if command is None:
        return f"built and its machine code inspected only ({why_not(tier)})"
    return f"ran under {' '.join(command)}" if command else "ran natively"
