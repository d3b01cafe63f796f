"""What the training shares with the node: the pipeline section of exosuit.toml, the form of the counts."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
CONFIG = FOLDER.parent / "exosuit.toml"
MODEL = FOLDER / "exosuit.onnx"
RECORDING = FOLDER / "exosuit.mcap"
README = FOLDER / "README.md"

COUNTS_PER_UNIT = (4096, 4096, 4096, 1024, 1024, 1024)
"""Counts per g (ax, ay, az) and per rad/s (wx, wy, wz): int16 then spans +-8 g and +-32 rad/s, as IMUs do."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How window scores become a label: see `reflexarc.control.policy.Classify`."""

    threshold: float
    hold: int
    smooth: int


@dataclass(frozen=True, slots=True)
class Settings:
    """The exercise pipeline as exosuit.toml states it; lengths in samples, scale per channel."""

    topic: str
    rate_hz: float
    length: int
    hop: int
    scale: float
    labels: tuple[str, ...]
    policy: Policy


def load(path: Path = CONFIG) -> Settings:
    """Read the stream and pipeline sections of the configuration; KeyError where one is missing."""
    config = tomllib.loads(path.read_text(encoding="utf-8"))
    stream, pipeline = config["stream"]["wrist"], config["pipeline"]["exercise"]
    window, decide = pipeline["window"], pipeline["decide"]
    rate_hz = float(stream["rate_hz"])
    return Settings(
        topic=stream["topic"],
        rate_hz=rate_hz,
        length=round(window["length_s"] * rate_hz),
        hop=round(window["hop_s"] * rate_hz),
        scale=float(pipeline["scale"]),
        labels=tuple(decide["labels"]),
        policy=Policy(decide["threshold"], decide["hold"], decide.get("smooth", 1)),
    )
