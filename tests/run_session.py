"""Run a model in this process on whatever tier REFLEXARC_ISA names and print what it gave.

`python run_session.py MODEL CACHE THREADS COUNT` prints one JSON object: a digest of every 8-bit tensor and
one of the float outputs.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

from reflexarc.inference.image import ImageStore
from reflexarc.inference.session import Session


def windows(shape: tuple[int, ...], count: int) -> list[np.ndarray]:
    """Inputs from quiet to far beyond what the model saw."""
    rng = np.random.default_rng(11)
    spread = np.geomspace(0.01, 30, count)
    return [(rng.standard_normal(shape) * s).astype(np.float32) for s in spread]


def main(model: Path, cache: Path, threads: int, count: int) -> None:
    session = Session.load(model, threads=threads, images=ImageStore(cache=cache), keep=True)
    integers, floats = hashlib.sha256(), hashlib.sha256()
    for x in windows(session.inputs[0].shape, count):
        for y in session.run(x):
            floats.update(y.tobytes())
        for name in sorted(session.tensors):
            tensor = session.tensor(name)
            if tensor.dtype == np.int8:
                integers.update(tensor.tobytes())
    session.close()
    print(
        json.dumps(
            {"tier": session.tier.name, "integers": integers.hexdigest(), "floats": floats.hexdigest()}
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
