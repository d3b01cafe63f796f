"""Waiting for descriptors, and what the gate does where one cannot be had."""

import os
import resource
import time
from pathlib import Path

import pytest

from reflexarc.node.config.load import load
from reflexarc.node.config.problems import ConfigError
from reflexarc.node.gate.latch import LatchFile
from reflexarc.node.gate.waiting import LIMIT, wait_readable
from reflexarc.node.gate.watch import Watch

SECOND = 1_000_000_000


@pytest.mark.parametrize("high", [False, True])
def test_any_descriptor_can_be_waited_for(high: bool) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if high and hard != resource.RLIM_INFINITY and hard <= LIMIT + 10:
        pytest.skip(f"at most {hard} descriptors are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, LIMIT + 10), hard))
    try:
        reader, writer = os.pipe()
        waited = os.dup2(reader, LIMIT + 5) if high else reader
        begin = time.monotonic_ns()
        assert wait_readable([waited], 2_000_000) == []
        assert time.monotonic_ns() - begin >= 2_000_000
        os.write(writer, b"x")
        assert wait_readable([waited], SECOND) == [waited]
        for fd in {reader, writer, waited}:
            os.close(fd)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_configuration_that_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "node.toml")
    begin = time.monotonic()
    with pytest.raises(ConfigError, match="is not a regular file"):
        load(tmp_path / "node.toml")
    assert time.monotonic() - begin < 1


def test_a_check_that_cannot_be_started_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "node.toml"
    path.write_text("")
    watch = Watch(path, 0, [0])

    def none_left(*_: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "memfd_create", none_left)
    watch.request()
    verdict = watch.poll(SECOND)
    assert verdict is not None
    assert verdict.config is None
    assert verdict.error == f"{path}: the check cannot be started: Too many open files"


def test_a_latch_of_null_is_damage_and_not_nothing(tmp_path: Path) -> None:
    assert LatchFile(tmp_path / "latch").read() is None
    (tmp_path / "latch").write_text("null")
    assert LatchFile(tmp_path / "latch").read() == "null"
