"""The declared instructions, the arena, and listings as they become words."""

from __future__ import annotations

import struct
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.inference import instructions
from reflexarc.inference.arena import ALIGN, Buffer, aligned, place
from reflexarc.inference.instructions import ALONE, COPY, DEQUANTIZE, JOIN, SLACK, WORDS, Instruction
from reflexarc.inference.program import MAX_ARENA, Listing, ProgramError, Ref, finish

ALL = [value for value in vars(instructions).values() if isinstance(value, Instruction)]


@pytest.mark.parametrize("instruction", ALL, ids=lambda i: i.name)
def test_an_instruction_has_a_word_for_each_operand(instruction: Instruction) -> None:
    offsets = list(instruction.at)
    assert instruction.at._fields == instruction.operands
    assert len(set(instruction.operands)) == len(instruction.operands)
    assert offsets == [8 * i + (8 if instruction.inline else 0) for i in range(len(offsets))]
    assert not instruction.inline or offsets[-1] < 8 * WORDS
    assert "y" in instruction.operands


def test_names_are_given_once() -> None:
    assert len({i.name for i in ALL}) == len(ALL) > 15


buffers = st.lists(
    st.builds(
        lambda n, first, length: Buffer(f"b{n}", n, first, first + length),
        st.integers(0, 5000),
        st.integers(0, 12),
        st.integers(0, 6),
    ),
    max_size=24,
)


@given(buffers)
def test_buffers_that_meet_share_no_byte(given: list[Buffer]) -> None:
    placement = place(given)
    spans = [(o, o + b.nbytes, b) for o, b in zip(placement.offsets, given, strict=True)]
    for start, end, _ in spans:
        assert start % ALIGN == 0
        assert end <= placement.nbytes
    for (a, b, one), (c, d, other) in combinations(spans, 2):
        assert not one.meets(other) or b <= c or d <= a
    busiest = max(
        (sum(aligned(b.nbytes) for b in given if b.first <= t <= b.last) for t in range(20)), default=0
    )
    assert placement.bound == busiest <= placement.nbytes


def test_a_chain_of_layers_needs_no_more_than_its_bound() -> None:
    sizes = [4800, 1600, 3200, 3200, 1600, 64, 28]
    chain = [Buffer(f"t{i}", size, max(0, i - 1), i) for i, size in enumerate(sizes)]
    placement = place(chain)
    assert placement.nbytes == placement.bound


def copy_of(listing: Listing, x: Ref, y: Ref, parallel: bool = False) -> None:
    listing.emit(COPY, x=x, y=y, rows=1, count=64, x_row=0, y_row=0, parallel=parallel)


def test_words_hold_addresses_numbers_and_floats() -> None:
    listing = Listing()
    x, y = listing.buffer("x", 100), listing.buffer("y", 400)
    table = listing.constant(np.arange(10, dtype=np.int32))
    copy_of(listing, table + 8, x)
    listing.emit(DEQUANTIZE, x=x + 1, y=y, rows=1, count=99, x_row=0, y_row=0, scale=0.25, zero=-128)
    program = finish(listing, [], [y])
    words = program.words(
        1 << 20, 1 << 30, 1 << 40, lambda family, name: {"copy": 64, "dequantize": 128}[name]
    )
    assert program.families == ["move", "quantize"]
    assert words[0] == 64 | ALONE
    assert words[1] == (1 << 40) + 8
    assert words[2] == (1 << 30) + program.placement.offsets[0]
    assert words[WORDS + 1] == (1 << 20) + 2 * WORDS * 8
    block = dict(zip(DEQUANTIZE.operands, words[2 * WORDS :], strict=True))
    assert block["x"] == (1 << 30) + program.placement.offsets[0] + 1
    assert block["zero"] == -128
    assert struct.unpack("<f", struct.pack("<q", block["scale"])[:4]) == (0.25,)
    assert program.memory.scratch == words.nbytes
    assert program.memory.weights == ALIGN
    constants = np.zeros(program.memory.weights, np.uint8)
    program.write_constants(constants)
    assert constants[:40].view(np.int32).tolist() == list(range(10))
    assert program.memory.total == program.memory.arena + words.nbytes + ALIGN


def test_threads_meet_only_where_work_was_or_will_be_shared() -> None:
    listing = Listing()
    buffers = [listing.buffer(str(i), 64) for i in range(7)]
    for i, parallel in enumerate((False, False, True, True, False, False)):
        copy_of(listing, buffers[i], buffers[i + 1], parallel)
    words = finish(listing, [], []).words(0, 0, 0, lambda family, name: 0)
    flags = [int(w) for w in words[: 6 * WORDS : WORDS]]
    assert flags == [ALONE, ALONE | JOIN, JOIN, JOIN, ALONE, ALONE]


def test_inputs_live_from_the_start_and_outputs_to_the_end() -> None:
    listing = Listing()
    a, b, c, d = (listing.buffer(name, 64) for name in "abcd")
    late = listing.buffer("late input", 64)
    for x, y in ((a, b), (b, c), (late, d)):
        copy_of(listing, x, y)
    offsets = finish(listing, [a, late], [b]).placement.offsets
    assert len({offsets[i] for i in (0, 1, 4)}) == 3
    assert len({offsets[i] for i in (1, 2)}) == 2
    assert len(set(finish(listing, [], [], keep=True).placement.offsets)) == 5


def test_operands_must_be_all_and_only_those_declared() -> None:
    listing = Listing()
    with pytest.raises(TypeError, match="y_row"):
        listing.emit(COPY, x=0, y=0, rows=1, count=1, x_row=1)
    with pytest.raises(TypeError, match="colour"):
        listing.emit(COPY, x=0, y=0, rows=1, count=1, x_row=1, y_row=1, colour=3)


def test_memory_is_bounded_before_any_is_taken() -> None:
    listing = Listing()
    with pytest.raises(ProgramError, match=rf"'big' needs {MAX_ARENA + 1} bytes, at most {MAX_ARENA}"):
        listing.buffer("big", MAX_ARENA + 1)
    halves = [listing.buffer(name, MAX_ARENA // 2) for name in "abc"]
    copy_of(listing, halves[0], halves[1])
    with pytest.raises(ProgramError, match="arena"):
        finish(listing, [halves[0]], halves)


def test_slack_covers_what_kernels_read_past_an_operand() -> None:
    assert Listing().buffer("x", 0).buffer == 0
    assert SLACK >= 64
