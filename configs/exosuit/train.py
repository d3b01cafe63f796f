"""Train, quantize and judge the exosuit's model: `python -m reflexarc.configs.exosuit.train`.

For each of the ten people a network is trained on the other nine, quantized, and judged on the one it never
saw. The shipped model is that of the person with the median accuracy. Everything is seeded.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import torch
from torch import nn

from reflexarc.configs.exosuit import choose, report, settings
from reflexarc.configs.exosuit.augment import Augmentation, Sampler
from reflexarc.configs.exosuit.evaluate import score, windows
from reflexarc.configs.exosuit.export import export_int8
from reflexarc.configs.exosuit.network import Network
from reflexarc.configs.exosuit.report import Person
from reflexarc.configs.exosuit.settings import Settings
from reflexarc.configs.exosuit.watch import Series, load_series

STEPS = 800
BATCH = 128
RATE = 4e-3
WEIGHT_DECAY = 0.05
DROPOUT = 0.3
LABEL_SMOOTHING = 0.05
CALIBRATION_WINDOWS = 256
INPUT_STEP = 1 / 32
"""Quantization step of the input: int8 then spans +-4 g and +-16 rad/s; 2 samples in 10,000 lie beyond."""


def fit(series: Sequence[Series], config: Settings, seed: int) -> Network:
    """Train a network on the series; AdamW with one cycle of the learning rate."""
    torch.manual_seed(seed)
    sampler = Sampler(series, config.scale, config.length, Augmentation(), np.random.default_rng(seed))
    network = Network(6, len(config.labels), DROPOUT)
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=STEPS, pct_start=0.2)
    criterion = nn.CrossEntropyLoss(label_smoothing=LABEL_SMOOTHING)
    for _ in range(STEPS):
        batch, labels = sampler.draw(BATCH)
        loss = criterion(network(torch.from_numpy(batch)), torch.from_numpy(labels))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    network.eval()
    return network


def train_without(person: int, series: Sequence[Series], config: Settings, seed: int, path: Path) -> None:
    """Write the int8 model trained and calibrated without one person."""
    others = [s for s in series if s.person != person]
    plain = Augmentation(tempo=0, tilt_deg=0, effort=0, noise=0)
    sampler = Sampler(others, config.scale, config.length, plain, np.random.default_rng(seed))
    network = fit(others, config, seed)
    export_int8(network, sampler.draw(CALIBRATION_WINDOWS)[0], INPUT_STEP, path)
    model = onnx.load(path)
    onnx.helper.set_model_props(model, {"held_out_person": str(person), "labels": ",".join(config.labels)})
    onnx.save(model, path)


def judge(person: int, series: Sequence[Series], config: Settings, model: Path) -> Person:
    """Score one person's series, and the sessions joined from them, with the model that never saw them."""
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    own = [s for s in series if s.person == person]
    sessions = choose.join(own, np.random.default_rng(person))
    return Person(
        number=person,
        series=[(score(session, windows(s.counts, config)), s.label) for s in own],
        sessions=[choose.score_session(session, parts, config) for parts in sessions],
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Train the ten models, print the tables, install the median person's model and the README's tables."""
    parser = argparse.ArgumentParser(description="Train, quantize and judge the exosuit's model.")
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of everything random (default: %(default)s)"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the tables, leave the files as they are"
    )
    arguments = parser.parse_args(argv)
    torch.set_num_threads(1)
    config = settings.load()
    series = load_series(config.labels)
    people = []
    with tempfile.TemporaryDirectory() as folder:
        for person in sorted({s.person for s in series}):
            path = Path(folder) / f"{person}.onnx"
            train_without(person, series, config, arguments.seed + person, path)
            people.append(judge(person, series, config, path))
            print(f"person {person}: raw accuracy {people[-1].raw():.3f}", flush=True)
        text, median = report.write(people, config)
        print(text)
        if not arguments.dry_run:
            settings.MODEL.write_bytes((Path(folder) / f"{median}.onnx").read_bytes())
            report.install(text, settings.README)


if __name__ == "__main__":
    main()
