"""What the program is to read at a call of the entry hook, and its layout in a table (native/compiled/features/table.h)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from perflaw.record.compiled.features.locations import MODULE, Unlocated

HEAD: Final = np.dtype(
    [("magic", "<u8"), ("calls", "<u4"), ("reads", "<u4"), ("features", "<u4"), ("terms", "<u4"), ("names", "<u4"),
     ("unused", "<u4")]
)  # fmt: skip
CALL: Final = np.dtype(
    [("returns", "<u8"), ("function", "<u8"), ("first_read", "<u4"), ("first_feature", "<u4"), ("first_term", "<u4"),
     ("reads", "<u2"), ("features", "<u2"), ("terms", "<u2"), ("unused", "<u2")], align=True,
)  # fmt: skip
READ: Final = np.dtype(
    [("offset", "<i8"), ("pointer", "<u2"), ("to", "<u2"), ("size", "<u2"), ("level", "u1"), ("needs", "u1")]
)
FEATURE: Final = np.dtype(
    [("name", "<u4"), ("first_term", "<u4"), ("constant", "<i8"), ("at", "<u2"), ("count", "<u2"), ("kind", "u1"),
     ("size", "u1"), ("needs", "u1"), ("terms", "u1"), ("shift", "u1"), ("bits", "u1"), ("unused", "V6")]
)  # fmt: skip
TERM: Final = np.dtype(
    [("high", "<u2"), ("low", "<u2"), ("high_needs", "u1"), ("low_needs", "u1"), ("size", "u1"), ("unused", "u1"),
     ("divisor", "<i4"), ("factor", "<i4")]
)  # fmt: skip
_MAGIC: Final = int.from_bytes(b"PRFPFET1", "little")
_ALWAYS, _NO_POSITION = 255, 65535
_BLOCK, _REGISTERS, _BASE = 4096, 200, 192
"""Bytes of the block that reads fill, of the registers at its start, and the position of the load address in these."""
_MAX_READS: Final = 60
_MAX_GAP, _MAX_READ = 64, 512
"""Bytes between values that are read at once, and bytes of such a read."""
_KEPT: Final = {register: 8 * register for register in range(16)} | {
    17 + vector: 128 + 8 * vector for vector in range(8)
}
"""DWARF's number of each register that is kept → its position in the block."""

_ARGUMENTS: Final = (5, 4, 1, 2, 8, 9, *range(17, 25))
"""DWARF's numbers of the registers in which arguments come: rdi, rsi, rdx, rcx, r8, r9, xmm0 to xmm7."""
NUMBERS: Final = {_KEPT[register]: register for register in _ARGUMENTS}
"""Position in the block of such a register → its number."""


class Kind(IntEnum):
    """How the value of a feature is made of bytes."""

    (
        UNSIGNED,
        SIGNED,
        FLOATING,
        TEXT_LENGTH,
        UNSIGNED_SUM,
        SIGNED_SUM,
        FLOATING_SUM,
        COMBINATION,
        DYNAMIC_TYPE,
        SMALL,
        STRING_LENGTH,
    ) = range(11)


@dataclass(frozen=True, slots=True)
class Spot:
    """Where bytes are: at an offset from the address that stands at another spot, or among the registers."""

    pointer: Spot | None
    """Where the address stands; None: the offset is a position among the registers."""
    offset: int
    """In bytes."""

    def plus(self, offset: int) -> Spot:
        """The spot so many bytes on."""
        return Spot(self.pointer, self.offset + offset)

    @property
    def base(self) -> int:
        """The position among the registers that everything begins with."""
        return self.offset if self.pointer is None else self.pointer.base

    @property
    def level(self) -> int:
        """Number of pointers to follow."""
        return 0 if self.pointer is None else 1 + self.pointer.level


def register_spot(register: int) -> Spot:
    """The spot of a register or of the load address; Unlocated if that register is not kept."""
    if register == MODULE:
        return Spot(None, _BASE)
    if register not in _KEPT:
        raise Unlocated
    return Spot(None, _KEPT[register])


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a combination: factor · ((high − low) / divisor)."""

    high: Spot
    """A number of ``size`` bytes."""
    low: Spot | None
    """Another; None: nothing is subtracted."""
    size: int
    """Bytes of both."""
    divisor: int = 1
    """Greater than 0."""
    factor: int = 1
    """What the quotient counts for."""


@dataclass(frozen=True, slots=True)
class FeatureSource:
    """A feature and what its value is made of."""

    name: str
    """Name, such as ``items.len``."""
    kind: Kind
    """How its value is made."""
    spot: Spot
    """The number, the first element, the virtual table's address, or the pointer to a text."""
    size: int = 8
    """Bytes of the number or element."""
    count: int = 1
    """Elements of a sum; most characters of a text, 0 if that is not known."""
    constant: int = 0
    """Summand of a combination; of a text, its offset from the pointer; of what may be an address, the lowest address."""
    shift: int = 0
    """Lowest bit of a bit-field."""
    bits: int = 0
    """Number of its bits; 0 for other numbers."""
    terms: tuple[Term, ...] = ()
    """Terms of a combination."""

    def needed(self) -> Iterator[tuple[Spot, int]]:
        """All bytes that the value is made of."""
        if self.kind == Kind.COMBINATION:
            for term in self.terms:
                yield term.high, term.size
                if term.low is not None:
                    yield term.low, term.size
        else:
            words = 2 if self.kind == Kind.STRING_LENGTH else self.count if self.kind.name.endswith("SUM") else 1
            yield self.spot, self.size * words


@dataclass(frozen=True, slots=True)
class HookCall:
    """A call of the entry hook, or an injected function, and the features to be read there."""

    returns: int
    """Where the hook returns to, from where the file is loaded; of an injected function, its second byte."""
    function: int
    """The function that it announces, likewise; 0 if it may be any."""
    features: tuple[FeatureSource, ...]
    """Most important first."""


def table_of(calls: Iterable[HookCall]) -> bytes:
    """The table that the program interprets."""
    rows: dict[str, list[tuple[object, ...]]] = {"calls": [], "reads": [], "features": [], "terms": []}
    names: dict[str, int] = {}
    length = 0
    for call in sorted(calls, key=lambda call: call.returns):
        features, block = _fitting(call.features)
        terms: list[tuple[object, ...]] = []
        first = len(rows["reads"]), len(rows["features"]), len(rows["terms"])
        for feature in features:
            if feature.name not in names:
                names[feature.name] = length
                length += len(feature.name.encode()) + 1
            at, needs = (0, _ALWAYS) if feature.kind == Kind.COMBINATION else block.position(feature.spot)
            row = (
                names[feature.name],
                len(terms),
                feature.constant,
                at,
                feature.count,
                feature.kind,
                feature.size,
                needs,
            )
            rows["features"].append((*row, len(feature.terms), feature.shift, feature.bits, b""))
            for term in feature.terms:
                high, high_needs = block.position(term.high)
                low, low_needs = block.position(term.low) if term.low else (_NO_POSITION, _ALWAYS)
                terms.append((high, low, high_needs, low_needs, term.size, 0, term.divisor, term.factor))
        rows["reads"] += block.rows
        rows["terms"] += terms
        rows["calls"].append((call.returns, call.function, *first, len(block.rows), len(features), len(terms), 0))
    texts = b"".join(name.encode() + b"\0" for name in names) or b"\0"
    counts = (len(rows[name]) for name in ("calls", "reads", "features", "terms"))
    parts = [np.array([(_MAGIC, *counts, len(texts), 0)], HEAD)]
    parts += [np.array(rows[name], row) for name, row in zip(rows, (CALL, READ, FEATURE, TERM), strict=True)]
    return b"".join(part.tobytes() for part in parts) + texts


@dataclass(frozen=True, slots=True)
class _Block:
    """The reads of one call: (pointer, offset, size) → position, and their rows."""

    reads: tuple[tuple[Spot, int, int, int], ...]
    """(pointer, offset from it, bytes, position)."""
    rows: list[tuple[object, ...]]
    """Rows of the table."""

    def position(self, spot: Spot) -> tuple[int, int]:
        """The position of a spot in the block and the read that brings it."""
        if spot.pointer is None:
            return spot.offset, _ALWAYS
        for number, (pointer, offset, size, to) in enumerate(self.reads):
            if pointer == spot.pointer and offset <= spot.offset < offset + size:
                return to + spot.offset - offset, number
        raise KeyError(spot)


def _fitting(features: Sequence[FeatureSource]) -> tuple[Sequence[FeatureSource], _Block]:
    """As many of the features, the first ones, as the block has room for; and the reads that they need."""
    while (block := _block(features)) is None:
        features = features[: len(features) * 3 // 4]
    return features, block


def _block(features: Iterable[FeatureSource]) -> _Block | None:
    """The reads of these features; None if there is no room for them."""
    wanted: dict[Spot, set[tuple[int, int]]] = {}
    left = [need for feature in features for need in feature.needed()]
    while left:
        spot, size = left.pop()
        if spot.pointer is not None:
            wanted.setdefault(spot.pointer, set()).add((spot.offset, size))
            left.append((spot.pointer, 8))
    reads: list[tuple[Spot, int, int, int]] = []
    block = _Block((), [])
    end = _REGISTERS
    for pointer in sorted(wanted, key=lambda pointer: pointer.level):
        for offset, size in _merged(wanted[pointer]):
            at, needs = _Block(tuple(reads), []).position(pointer)
            block.rows.append((offset, at, end, size, pointer.level, needs))
            reads.append((pointer, offset, size, end))
            end += size
    if end > _BLOCK or len(reads) > _MAX_READS:
        return None
    return _Block(tuple(reads), block.rows)


def _merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """(offset, bytes) with close neighbours read at once."""
    merged: list[tuple[int, int]] = []
    for offset, size in sorted(ranges):
        if merged:
            first, length = merged[-1]
            whole = max(length, offset + size - first)
            if offset <= first + length + _MAX_GAP and (whole <= _MAX_READ or offset + size <= first + length):
                merged[-1] = first, whole
                continue
            if offset < first + length:  # overlapping and too long together: each is read on its own
                merged.append((offset, size))
                continue
        merged.append((offset, size))
    return merged
