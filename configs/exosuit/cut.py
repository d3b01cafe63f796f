"""Cut the demo's recording: `python -m reflexarc.configs.exosuit.cut`.

Takes about two minutes from the dataset: the beginning of each exercise's right-wrist series, of the person
whom the shipped model never saw, joined with gaps in the stamps. The same messages come out every time.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import msgpack
import numpy as np
import onnx
from mcap.writer import CompressionType, Writer
from numpy.typing import NDArray

from reflexarc.configs.exosuit.recording import LABEL_TOPIC
from reflexarc.configs.exosuit.settings import MODEL, RECORDING, Settings, load
from reflexarc.configs.exosuit.watch import load_series

SECTION_S = 16.5
GAP_S = 1.0
START_NS = 1_700_000_000_000_000_000
CHUNK_BYTES = 64 * 1024

NOTICE = (
    "Inertial recordings of shoulder exercises from seglearn's watch dataset, Copyright (c) 2018 David M. "
    "Burns, BSD-3-Clause; scaled to int16 counts (4096 per g, 1024 per rad/s) and cut. See NOTICE."
)


def cut(person: int, settings: Settings) -> list[tuple[str, NDArray[np.int16]]]:
    """Return (label, counts) for each exercise, in the order of the labels."""
    size = round(SECTION_S * settings.rate_hz)
    pieces = {
        s.label: s.counts[:size]
        for s in load_series(settings.labels)
        if s.person == person and s.side == "right"
    }
    return [(name, pieces[i]) for i, name in enumerate(settings.labels)]


def held_out_person(model: Path) -> int:
    """Return the number of the person left out of the training; KeyError where the file does not say."""
    properties = {entry.key: entry.value for entry in onnx.load(model).metadata_props}
    return int(properties["held_out_person"])


def write(
    path: Path, sections: Sequence[tuple[str, NDArray[np.int16]]], settings: Settings, source: dict[str, str]
) -> None:
    """Write the sections as MCAP, a message a sample, with a label message at each start and end."""
    period = round(1e9 / settings.rate_hz)
    gap = round(GAP_S * 1e9)
    t, seq = START_NS, 0
    with path.open("wb") as file:
        writer = Writer(file, chunk_size=CHUNK_BYTES, compression=CompressionType.ZSTD)
        writer.start(profile="", library="reflexarc")
        writer.add_metadata("source", source)
        channels = {
            topic: writer.register_channel(topic=topic, message_encoding="msgpack", schema_id=0)
            for topic in (settings.topic, LABEL_TOPIC)
        }

        def put(topic: str, number: int, stamp: int, **body: object) -> None:
            data = msgpack.packb({"seq": number, "t": stamp, **body})
            writer.add_message(
                channels[topic], log_time=stamp, publish_time=stamp, sequence=number, data=data
            )

        for i, (label, counts) in enumerate(sections):
            put(LABEL_TOPIC, 2 * i, t, label=label)
            for sample in counts.tolist():
                put(settings.topic, seq, t, data=sample)
                seq, t = seq + 1, t + period
            put(LABEL_TOPIC, 2 * i + 1, t, label="")
            t += gap
        writer.finish()


def main(argv: Sequence[str] | None = None) -> None:
    """Cut the recording of the person the shipped model never saw."""
    parser = argparse.ArgumentParser(
        description="Cut the exosuit demo's recording from seglearn's watch dataset."
    )
    parser.add_argument("--output", type=Path, default=RECORDING, help="file to write (default: %(default)s)")
    arguments = parser.parse_args(argv)
    settings, person = load(), held_out_person(MODEL)
    source = {"notice": NOTICE, "person": str(person), "wrist": "right"}
    write(arguments.output, cut(person, settings), settings, source)


if __name__ == "__main__":
    main()
