"""Tables as columns of NumPy arrays: what recordings are made, merged and written as. Iterating gives rows.

Null is one value of each kind: the least int64, a float that is not a number, the code -1 of a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Row = tuple[Any, ...]

NULL: Final = -(1 << 63)
"""What stands for null in a column of integers."""
WIDE: Final = np.dtype([("low", "<u8"), ("high", "<i8")])
"""A sum of 128 bits: high · 2^64 + low."""
_LOW: Final = (1 << 64) - 1
_MOST: Final = 1 << 62
"""Keys are packed into integers below it."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Values of one column. Where rows repeat or are sorted, only ``rows`` says so: the values stay where they are."""

    values: Array
    """int64, float64 or WIDE; of a text its code: a place in ``words``."""
    rows: NDArray[np.int32] | None = None
    """Which of the values each row has; None: each its own."""
    words: tuple[str, ...] | None = None
    """Texts that the codes stand for."""

    def __len__(self) -> int:
        return len(self.values if self.rows is None else self.rows)

    def array(self) -> Array:
        """A value a row."""
        return self.values if self.rows is None else self.values[self.rows]

    def mapped(self, lookup: Array) -> Column:
        """Every value replaced by what stands at its place; -1 is the last place, -2 the one before."""
        return Column(lookup[self.values], self.rows, self.words)

    def spoken(self, words: tuple[str, ...]) -> Column:
        """The same texts by another dictionary, which has them all."""
        if words == self.words:
            return self
        places = {word: place for place, word in enumerate(words)}
        lookup = np.array([*(places[word] for word in self.words or ()), -1], dtype=np.int32)
        return Column(lookup[self.values], self.rows, words)

    def plain(self) -> list[Any]:
        """Values as Python's own: int, float, str, None for null."""
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
    """Columns of equal length, by name and in order. Equal to another table of the same rows."""

    __slots__ = ("columns",)
    __hash__ = None  # type: ignore[assignment]  # compared by its rows

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
        """A column's values, one a row."""
        return self.columns[name].array()

    def take(self, rows: Array) -> Table:
        """These rows in this order, by number. No value is copied."""
        rows = rows.astype(np.int32)  # half the memory, and no table has as many rows
        taken: dict[int, Array] = {id(None): rows}
        for column in self.columns.values():
            if column.rows is not None and id(column.rows) not in taken:
                taken[id(column.rows)] = column.rows[rows]
        return Table({name: Column(one.values, taken[id(one.rows)], one.words) for name, one in self.columns.items()})

    def replaced(self, columns: dict[str, Column]) -> Table:
        """The same with some columns replaced."""
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
    places: dict[str, int] = {}
    codes = [-1 if value is None else places.setdefault(value, len(places)) for value in values]
    return Column(np.array(codes, dtype=np.int32), words=tuple(places))


def concatenated(tables: Sequence[Table]) -> Table:
    """The rows of all, one table after the other."""
    return Table({name: _concatenated([table.columns[name] for table in tables]) for name in tables[0].columns})


def _concatenated(columns: Sequence[Column]) -> Column:
    if columns[0].words is None:
        return Column(np.concatenate([column.array() for column in columns]))
    words = vocabulary(columns)
    return Column(np.concatenate([column.spoken(words).array() for column in columns]), words=words)


def vocabulary(columns: Sequence[Column]) -> tuple[str, ...]:
    """All texts of these columns, sorted: then codes are in the order of the texts."""
    return tuple(sorted({word for column in columns for word in column.words or ()}))


def grouped(keys: Sequence[Array]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The order that sorts rows by these keys, null first, and where in it each group of equal rows begins. Stable."""
    packed = _packed(keys)
    order = np.argsort(packed[0], kind="stable") if len(packed) == 1 else np.lexsort(packed[::-1])
    return order, np.flatnonzero(changes(packed, order))


def changes(keys: Sequence[Array], order: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether each row, in this order, differs from the one before it."""
    differs = np.zeros(len(order), np.bool_)
    differs[:1] = True
    for key in keys:
        ordered = key[order]
        differs[1:] |= ordered[1:] != ordered[:-1]
    return differs


def _packed(keys: Sequence[Array]) -> list[Array]:
    """Keys of the same order, in as few integers as will hold them: one as a rule."""
    packed: list[Array] = []
    room = 0
    for key in keys:
        if key.dtype.kind == "f":
            present = ~np.isnan(key)
            packed += [present, np.where(present, key, 0.0)]
            room = 0
            continue
        low, high = (int(key.min()), int(key.max())) if len(key) else (0, 0)
        span = high - low + 1
        if span > _MOST:
            packed.append(key)
            room = 0
        elif room and room * span <= _MOST:
            packed[-1] = packed[-1] * span + (key.astype(np.int64) - low)
            room *= span
        else:
            packed.append(key.astype(np.int64) - low)
            room = span
    return packed


def added(values: Array, starts: NDArray[np.intp]) -> Array:
    """Exact sums of groups of values that stand together; ``starts`` is where each begins."""
    if values.dtype != WIDE:
        return np.asarray(np.add.reduceat(values, starts))
    half = np.uint64(32)
    first = np.add.reduceat(values["low"] & np.uint64(0xFFFFFFFF), starts)
    second = np.add.reduceat(values["low"] >> half, starts) + (first >> half)
    total = np.empty(len(starts), WIDE)
    total["low"] = (second << half) | (first & np.uint64(0xFFFFFFFF))
    total["high"] = np.add.reduceat(values["high"], starts) + (second >> half).astype(np.int64)
    return total
