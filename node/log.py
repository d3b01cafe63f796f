"""Recorded topics as MCAP files: one channel a topic, payloads kept as they came (msgpack).

Format: https://mcap.dev/spec. A file that was cut or damaged reads up to the last whole chunk before that.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from mcap.exceptions import McapError
from mcap.reader import make_reader
from mcap.records import Channel, Chunk, McapRecord, Message
from mcap.stream_reader import StreamReader, breakup_chunk
from mcap.writer import CompressionType, Writer

PROFILE = "reflexarc"
CHUNK_BYTES = 256 * 1024

_DAMAGE = (McapError, ValueError, struct.error, EOFError, RuntimeError, OverflowError, MemoryError)


class LogError(ValueError):
    """The file is not a log at all."""


class Entry(NamedTuple):
    """One recorded message; `time` is when the recorder received it (UNIX ns)."""

    topic: str
    time: int
    payload: bytes


def new_file(path: Path, force: bool) -> Path:
    """The path, if nothing is there or it may be overwritten. Raises LogError."""
    if path.exists() and path.is_file() and not force:
        raise LogError(f"{path} is there already: --force overwrites it")
    return path


class LogWriter:
    """Writes entries into a file; `flush` bounds what a kill can lose, `close` completes the file.

    While it is being written the file is readable up to the last flush.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._writer = Writer(self._file, chunk_size=CHUNK_BYTES, compression=CompressionType.LZ4)
        self._writer.start(profile=PROFILE)
        self._channels: dict[str, int] = {}
        self._sequence: dict[str, int] = {}

    def write(self, topic: str, time: int, payload: bytes) -> None:
        """Append one message; OSError where the disk refuses it."""
        channel = self._channels.get(topic)
        if channel is None:
            channel = self._writer.register_channel(topic, "msgpack", schema_id=0)
            self._channels[topic] = channel
            self._sequence[topic] = 0
        self._sequence[topic] += 1
        self._writer.add_message(channel, time, payload, time, self._sequence[topic])

    def flush(self) -> None:
        """Finish the current chunk and hand it to the kernel."""
        self._writer.flush()
        self._file.flush()

    def close(self) -> None:
        """Write the summary and make the file durable."""
        if self._file.closed:
            return
        try:
            self._writer.finish()
            self._file.flush()
            os.fsync(self._file.fileno())
        finally:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()


class LogReader:
    """Iterates over entries in file order; `truncated` says afterwards whether the end is missing."""

    def __init__(self, path: Path) -> None:
        """LogError where the file does not begin as an MCAP file; OSError where it cannot be opened."""
        self.path = path
        self.size = path.stat().st_size
        self.position = 0
        self.truncated = False
        self.damage = ""
        with path.open("rb") as file:
            if file.read(8) != b"\x89MCAP0\r\n":
                raise LogError(f"{path}: not an MCAP file ({self.size} bytes)")

    def __iter__(self) -> Iterator[Entry]:
        topics: dict[int, str] = {}
        with self.path.open("rb") as file:
            try:
                for record in _data_records(
                    StreamReader(file, emit_chunks=True, record_size_limit=self.size)
                ):
                    if isinstance(record, Message):
                        self.position = file.tell()
                        yield Entry(topics[record.channel_id], record.log_time, record.data)
                    elif isinstance(record, Channel):
                        topics[record.id] = record.topic
            except KeyError as error:
                self._cut(file.tell(), f"message of unknown channel {error}")
            except _DAMAGE as error:
                self._cut(file.tell(), str(error) or type(error).__name__)
        self.position = self.size

    def _cut(self, position: int, why: str) -> None:
        self.truncated = True
        self.damage = f"cut or damaged near byte {position} of {self.size}: {why}"


def _data_records(reader: StreamReader) -> Iterator[McapRecord]:
    """The records of the data section with chunks broken up and their checksums tested.

    A chunked file holds no message outside its chunks: one there is a damaged opcode.
    """
    chunked = False
    for record in reader.records:
        if isinstance(record, Chunk):
            chunked = True
            yield from breakup_chunk(record, validate_crc=True)
        elif chunked and isinstance(record, Message):
            raise ValueError("a message between two chunks")
        else:
            yield record


def read_log(path: Path) -> tuple[list[Entry], LogReader]:
    """All entries of a log and the reader that tells whether it was whole."""
    reader = LogReader(path)
    return list(reader), reader


def topics_of(path: Path) -> set[str]:
    """The topics a log holds: from its summary, or by reading it all where that is missing."""
    with path.open("rb") as file:
        try:
            summary = make_reader(file).get_summary()
        except (*_DAMAGE, OSError):  # it seeks to where the end should be
            summary = None
    if summary is not None:
        return {channel.topic for channel in summary.channels.values()}
    return {entry.topic for entry in LogReader(path)}
