"""Rows of plain values as a table: for what is small, and for what arrives as rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from perflaw.store.columns import NULL, Column, Row, Table, texts, wide
from perflaw.store.schema import COLUMNS, REAL, SUM, TEXT


def table_of(name: str, rows: Iterable[Row], schema: Mapping[str, Mapping[str, str]] = COLUMNS) -> Table:
    """The table of that name with these rows."""
    kinds = schema[name]
    turned: list[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(kinds)
    return Table({column: _column(kind, values) for (column, kind), values in zip(kinds.items(), turned, strict=True)})


def _column(kind: str, values: Sequence[Any]) -> Column:
    if kind == TEXT:
        return texts(values)
    if kind == SUM:
        return Column(wide(values))
    if kind == REAL:
        return Column(np.array(values, dtype=np.float64))
    return Column(np.array([NULL if value is None else value for value in values], dtype=np.int64))
