"""MCAP logs: what is written is read, at any cut."""

import random
from pathlib import Path

import pytest

from reflexarc.node.log import Entry, LogError, LogReader, LogWriter, read_log, topics_of


def entries(n: int) -> list[Entry]:
    return [Entry(f"topic/{i % 3}", 1_000_000 * i, bytes([i % 256]) * (i % 40)) for i in range(n)]


def write(path: Path, messages: list[Entry], flush_every: int = 10) -> None:
    with LogWriter(path) as log:
        for i, entry in enumerate(messages):
            log.write(*entry)
            if i % flush_every == 0:
                log.flush()


def test_round_trip(tmp_path: Path) -> None:
    write(tmp_path / "x.mcap", entries(100))
    read, reader = read_log(tmp_path / "x.mcap")
    assert read == entries(100)
    assert not reader.truncated


def test_a_log_cut_at_any_byte_reads_to_the_cut_and_says_so(tmp_path: Path) -> None:
    write(tmp_path / "x.mcap", entries(60))
    whole = (tmp_path / "x.mcap").read_bytes()
    cut = tmp_path / "cut.mcap"
    most = 0
    for size in range(8, len(whole)):
        cut.write_bytes(whole[:size])
        read, reader = read_log(cut)
        assert read == entries(60)[: len(read)]
        assert reader.truncated, size
        assert len(read) >= most
        most = len(read)
    assert most == 60


def test_a_flushed_log_is_readable_before_it_is_closed(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "x.mcap")
    for entry in entries(25):
        log.write(*entry)
    log.flush()
    read, reader = read_log(tmp_path / "x.mcap")
    assert read == entries(25)
    assert reader.truncated
    log.close()
    log.close()
    assert not read_log(tmp_path / "x.mcap")[1].truncated


def test_flipped_bits_never_crash_and_what_is_read_before_them_is_right(tmp_path: Path) -> None:
    write(tmp_path / "x.mcap", entries(60))
    whole = (tmp_path / "x.mcap").read_bytes()
    rng = random.Random(7)
    bad = tmp_path / "bad.mcap"
    for _ in range(300):
        data = bytearray(whole)
        data[rng.randrange(8, len(data))] ^= 1 << rng.randrange(8)
        bad.write_bytes(data)
        read, _ = read_log(bad)
        assert read == entries(60)[: len(read)]


def test_other_files_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("hello")
    with pytest.raises(LogError, match=r"x\.txt: not an MCAP file \(5 bytes\)"):
        LogReader(tmp_path / "x.txt")


def test_topics_are_told_of_any_cut(tmp_path: Path) -> None:
    write(tmp_path / "x.mcap", entries(60))
    whole = (tmp_path / "x.mcap").read_bytes()
    for size in range(8, len(whole) + 1):
        (tmp_path / "cut.mcap").write_bytes(whole[:size])
        assert topics_of(tmp_path / "cut.mcap") <= {"topic/0", "topic/1", "topic/2"}
    assert topics_of(tmp_path / "x.mcap") == {"topic/0", "topic/1", "topic/2"}
