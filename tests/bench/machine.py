"""What the machine can do: the bounds that shares are taken of."""

from dataclasses import dataclass

from reflexarc.inference.image import ImageStore
from reflexarc.node import machine
from reflexarc.node.budget import allowed
from reflexarc.node.measure import int8_gops, read_gb_s

FLOAT_SHARE = 0.25
"""A vector holds a quarter as many float multiply-accumulates as 8-bit ones, at the same rate or better."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Read bandwidth and 8-bit peak by number of threads; a multiply-accumulate is two operations."""

    cpu: str
    isa: str
    cores: int
    read_gb_s: dict[int, float]
    int8_gops: dict[int, float]

    @classmethod
    def measure(cls) -> "Machine":
        """Measure this machine, on 1 thread and on 2."""
        images = ImageStore()
        cores = allowed().threads
        counts = range(1, min(cores, 2) + 1)
        return cls(
            machine.cpu_name(),
            images.tier.name,
            cores,
            {n: read_gb_s(n) for n in counts},
            {n: int8_gops(images, n) for n in counts},
        )

    def macs_per_us(self, threads: int, *, integer: bool) -> float:
        """Multiply-accumulates a microsecond at the peak."""
        return self.int8_gops[threads] * 1e3 / 2 * (1.0 if integer else FLOAT_SHARE)

    def to_map(self) -> dict[str, object]:
        """As --json prints it."""
        return {
            "cpu": self.cpu,
            "isa": self.isa,
            "cores": self.cores,
            "read_gb_s": {str(n): round(rate, 1) for n, rate in self.read_gb_s.items()},
            "int8_gops": {str(n): round(rate, 1) for n, rate in self.int8_gops.items()},
        }
