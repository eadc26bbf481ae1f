"""Tables as columns of NumPy arrays, as recordings are built, merged and written; iterating a table gives rows.

Each kind of column has one value for null: the least int64, NaN for floats, the code -1 for texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Row = tuple[Any, ...]

NULL: Final = -(1 << 63)
"""Null in a column of integers."""
WIDE: Final = np.dtype([("low", "<u8"), ("high", "<i8")])
"""A sum of 128 bits: high · 2^64 + low."""
_LOW: Final = (1 << 64) - 1
_MAX_PACKED: Final = 1 << 62
"""Packed keys stay below this."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Values of one column. Sorting or repeating rows changes only ``rows``; the values stay where they are."""

    values: Array
    """int64, float64 or WIDE; for texts their codes, which are places in ``words``."""
    rows: NDArray[np.int32] | None = None
    """Place of each row's value; None where row and value have the same place."""
    words: tuple[str, ...] | None = None
    """Texts that the codes stand for; None where the column has no texts."""

    def __len__(self) -> int:
        return len(self.values if self.rows is None else self.rows)

    def __reduce__(self) -> tuple[type[Column], tuple[Array, None, tuple[str, ...] | None]]:
        """To other processes go the values of the rows alone."""
        return Column, (self.array(), None, self.words)

    def array(self) -> Array:
        """One value for each row."""
        return self.values if self.rows is None else self.values[self.rows]

    def mapped(self, lookup: Array) -> Column:
        """Every value v replaced by ``lookup[v]``; -1 and -2 stand for the last two places."""
        return Column(lookup[self.values], self.rows, self.words)

    def encoded(self, words: tuple[str, ...], places: Mapping[str, int] | None = None) -> Column:
        """The same texts as codes of another tuple of words, which has all of them.

        ``places`` of the words are given where many columns are encoded, whose time would else grow with both.
        """
        if words == self.words:
            return self
        if places is None:
            places = {word: place for place, word in enumerate(words)}
        lookup = np.array([*(places[word] for word in self.words or ()), -1], dtype=np.int32)
        return Column(lookup[self.values], self.rows, words)

    def plain(self) -> list[Any]:
        """One Python value for each row: int, float or str; None for null."""
        values = self.array()
        if self.words is not None:
            return [self.words[code] if code >= 0 else None for code in values.tolist()]
        if values.dtype == WIDE:
            high, low = values["high"].tolist(), values["low"].tolist()
            return [(upper << 64) + lower for upper, lower in zip(high, low, strict=True)]
        if values.dtype.kind == "f":
            return [None if value != value else value for value in values.tolist()]
        return [None if value == NULL else value for value in values.tolist()]


class Table:
    """Columns of equal length, by name and in order. Two tables are equal if their rows are."""

    __slots__ = ("columns",)

    def __init__(self, columns: dict[str, Column]) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __iter__(self) -> Iterator[Row]:
        return zip(*(column.plain() for column in self.columns.values()), strict=True)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Table | list) else NotImplemented

    def __repr__(self) -> str:
        return f"Table({', '.join(self.columns)}: {list(self)})"

    def __getitem__(self, name: str) -> Array:
        """Values of a column, one for each row."""
        return self.columns[name].array()

    def take(self, rows: Array) -> Table:
        """The rows with these numbers, in this order. No value is copied."""
        rows = rows.astype(np.int32)  # half the memory, and no table has as many rows
        taken: dict[int, Array] = {id(None): rows}
        for column in self.columns.values():
            if column.rows is not None and id(column.rows) not in taken:
                taken[id(column.rows)] = column.rows[rows]
        return Table(
            {name: Column(column.values, taken[id(column.rows)], column.words) for name, column in self.columns.items()}
        )

    def where(self, name: str, word: str) -> Table:
        """The rows that have this text in a column."""
        words = self.columns[name].words or ()
        return self.take(np.flatnonzero(self[name] == (words.index(word) if word in words else -2)))

    def replaced(self, columns: dict[str, Column]) -> Table:
        """The table with some columns replaced."""
        return Table({**self.columns, **columns})


Tables = dict[str, Table]
"""Tables by name."""


def wide(values: Sequence[int]) -> Array:
    """Whole numbers as sums of 128 bits."""
    column = np.empty(len(values), WIDE)
    column["low"], column["high"] = [value & _LOW for value in values], [value >> 64 for value in values]
    return column


def texts(values: Sequence[str | None]) -> Column:
    """Texts as a column; None is null."""
    words = tuple(word for word in dict.fromkeys(values) if word is not None)
    places: dict[str | None, int] = {None: -1, **{word: place for place, word in enumerate(words)}}
    return Column(np.fromiter(map(places.__getitem__, values), np.int32, len(values)), words=words)


def coded_texts(codes: Array, words: Sequence[str]) -> Column:
    """Texts as a column like that of :func:`texts`, given by their places in some words; masked ones are null.

    Words that do not occur are left out, the others are in the order in which they occur first.

    >>> column = coded_texts(np.ma.masked_array([2, 0, 2, 1], [False, False, False, True]), ["a", "b", "c"])
    >>> column.words, column.array().tolist()
    (('c', 'a'), [0, 1, 0, -1])
    """
    null = np.ma.getmaskarray(codes) if isinstance(codes, np.ma.MaskedArray) else np.zeros(len(codes), dtype=bool)
    values = np.where(null, len(words), np.ma.getdata(codes).astype(np.int32))
    first = np.full(len(words) + 1, len(values))
    first[values[::-1]] = np.arange(len(values))[
        ::-1
    ]  # of equal places the last assignment counts, that of the first row
    order = np.argsort(first[:-1], kind="stable")
    order = order[first[order] < len(values)]
    numbers = np.full(len(words) + 1, -1, dtype=np.int32)
    numbers[order] = np.arange(len(order))
    return Column(numbers[values], words=tuple(words[place] for place in order.tolist()))


def vocabulary(columns: Sequence[Column]) -> tuple[str, ...]:
    """All texts of these columns, sorted, so that codes are in the order of the texts."""
    return tuple(sorted({word for column in columns for word in column.words or ()}))


def concatenated(tables: Sequence[Table]) -> Table:
    """The rows of all tables, one table after the other."""
    joined = {}
    for name in tables[0].columns:
        columns = [table.columns[name] for table in tables]
        words = None if columns[0].words is None else vocabulary(columns)
        places = {word: place for place, word in enumerate(words or ())}
        arrays = [(column if words is None else column.encoded(words, places)).array() for column in columns]
        joined[name] = Column(np.concatenate(arrays), words=words)
    return Table(joined)


def grouped(keys: Sequence[Array]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The order that sorts rows by these keys, null first and stable, and the places in it where groups of equal keys begin."""
    # Pack the keys, in the same order, into as few integers as can hold them, usually one.
    packed: list[Array] = []
    used = 0  # number of values that the last packed key can take; 0 where no other key fits into it
    for key in keys:
        if key.dtype.kind == "f":
            present = ~np.isnan(key)
            packed += [present, np.where(present, key, 0.0)]
            used = 0
            continue
        low, high = (int(key.min()), int(key.max())) if len(key) else (0, 0)
        span = high - low + 1
        if span > _MAX_PACKED:
            packed.append(key)
            used = 0
        elif used and used * span <= _MAX_PACKED:
            packed[-1] = packed[-1] * span + (key.astype(np.int64) - low)
            used *= span
        else:
            packed.append(key.astype(np.int64) - low)
            used = span

    order = np.argsort(packed[0], kind="stable") if len(packed) == 1 else np.lexsort(packed[::-1])
    return order, np.flatnonzero(is_first(packed, order))


def is_first(keys: Sequence[Array], order: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether each row, in this order, is the first of a group of equal keys."""
    differs = np.zeros(len(order), np.bool_)
    differs[:1] = True
    for key in keys:
        ordered = key[order]
        differs[1:] |= ordered[1:] != ordered[:-1]
    return differs


def group_sums(values: Array, starts: NDArray[np.intp]) -> Array:
    """Exact sums of groups of neighbouring values; ``starts`` has the place where each group begins."""
    if values.dtype != WIDE:
        return np.asarray(np.add.reduceat(values, starts))
    half = np.uint64(32)
    first = np.add.reduceat(values["low"] & np.uint64(0xFFFFFFFF), starts)
    second = np.add.reduceat(values["low"] >> half, starts) + (first >> half)
    total = np.empty(len(starts), WIDE)
    total["low"] = (second << half) | (first & np.uint64(0xFFFFFFFF))
    total["high"] = np.add.reduceat(values["high"], starts) + (second >> half).astype(np.int64)
    return total
