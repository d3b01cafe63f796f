"""An ELF object to one flat, position-independent image that needs no loader.

Sources: System V gABI (sections, symbols, RELA); x86-64 psABI and AAELF64 (relocations).
"""

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

_PROGBITS, _SYMTAB, _RELA = 1, 2, 4
_WRITE, _ALLOC = 1, 2
_GLOBAL = 1
_ALIGN = 64
_AARCH64 = 183


class BuildError(RuntimeError):
    """A kernel that cannot become an image."""


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int


class _Symbol(NamedTuple):
    name: str
    binding: int
    section: int
    value: int


class _Object:
    """The tables of an ELF64 little-endian relocatable object."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        (self.machine,) = struct.unpack_from("<H", data, 18)
        (table,) = struct.unpack_from("<Q", data, 40)
        size, count, self._names = struct.unpack_from("<HHH", data, 58)
        unpack = struct.Struct("<IIQQQQIIQQ").unpack_from
        self.sections = [_Section(*unpack(data, table + i * size)) for i in range(count)]
        self.symbols = list(self._symbols())

    def _text(self, table: int, offset: int) -> str:
        start = self.sections[table].offset + offset
        return self.data[start : self.data.index(b"\0", start)].decode()

    def name(self, section: _Section) -> str:
        return self._text(self._names, section.name)

    def _symbols(self) -> Iterator[_Symbol]:
        table = next(s for s in self.sections if s.kind == _SYMTAB)
        for at in range(table.offset, table.offset + table.size, 24):
            name, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", self.data, at)
            yield _Symbol(self._text(table.link, name), info >> 4, section, value)

    def relocations(self, section: _Section) -> Iterator[tuple[int, int, _Symbol, int]]:
        """(offset, kind, symbol, addend) of each entry of a RELA section."""
        for at in range(section.offset, section.offset + section.size, 24):
            where, info, addend = struct.unpack_from("<QQq", self.data, at)
            yield where, info & 0xFFFFFFFF, self.symbols[info >> 32], addend


def flatten(data: bytes) -> tuple[bytes, dict[str, int]]:
    """(image, offset of each entry point); BuildError on writable data or outside symbols."""
    source = _Object(data)
    image, base = bytearray(), {}
    for index, section in enumerate(source.sections):
        name = source.name(section)
        if not section.flags & _ALLOC or not section.size or name == ".eh_frame":
            continue
        if section.kind != _PROGBITS or section.flags & _WRITE:
            raise BuildError(
                f"section {name} of {section.size} bytes is writable: a kernel has no data of its own"
            )
        image += bytes(-len(image) % max(section.align, _ALIGN))
        base[index] = len(image)
        image += data[section.offset : section.offset + section.size]
    for section in source.sections:
        if section.kind != _RELA or section.info not in base:
            continue
        for where, kind, symbol, addend in source.relocations(section):
            if symbol.section not in base:
                raise BuildError(f"outside symbol {symbol.name}: kernels call only each other")
            to = base[symbol.section] + symbol.value + addend
            _relocate(image, source.machine == _AARCH64, kind, base[section.info] + where, to)
    entries = {
        s.name: base[s.section] + s.value
        for s in source.symbols
        if s.binding == _GLOBAL and s.section in base
    }
    return bytes(image), entries


def _relocate(image: bytearray, arm: bool, kind: int, at: int, to: int) -> None:
    """Write at offset `at` the distance to offset `to`, as the relocation says."""
    relative = _RELATIVE_ARM if arm else _RELATIVE_X86
    if kind in relative:
        struct.pack_into("<i", image, at, to - at)
        return
    if not arm or kind not in _ARM_INSTRUCTIONS:
        raise BuildError(f"relocation {kind} is not of a position-independent kind")
    (word,) = struct.unpack_from("<I", image, at)
    struct.pack_into("<I", image, at, word | _ARM_INSTRUCTIONS[kind](at, to))


_RELATIVE_X86 = frozenset({2, 4})  # R_X86_64_PC32, PLT32
_RELATIVE_ARM = frozenset({261})  # R_AARCH64_PREL32


def _page(at: int, to: int) -> int:
    pages = (to >> 12) - (at >> 12)
    return (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5


def _in_page(shift: int) -> Callable[[int, int], int]:
    return lambda at, to: (to & 0xFFF) >> shift << 10


def _branch(at: int, to: int) -> int:
    return (to - at) >> 2 & 0x3FFFFFF


_ARM_INSTRUCTIONS: dict[int, Callable[[int, int], int]] = {
    275: _page,  # ADR_PREL_PG_HI21
    277: _in_page(0),  # ADD_ABS_LO12_NC
    278: _in_page(0),  # LDST8_ABS_LO12_NC
    284: _in_page(1),  # LDST16
    285: _in_page(2),  # LDST32
    286: _in_page(3),  # LDST64
    299: _in_page(4),  # LDST128
    282: _branch,  # JUMP26
    283: _branch,  # CALL26
}
