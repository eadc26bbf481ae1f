"""Symmetric systems of up to three unknowns, solved for a whole batch by formula.

LAPACK costs a microsecond or two a matrix; these cost nanoseconds. Systems are scaled to a unit diagonal first,
so that parameters of unlike size do no harm.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.series import Array

Rows = list[list[Array]]
"""A symmetric matrix a batch element: rows[i][j] is (B,)."""


def gram(columns: Sequence[Array], w: Array) -> Rows:
    """XᵀWX of columns (B, n) with weights (B, n)."""
    size = len(columns)
    rows: Rows = [[np.empty(0)] * size for _ in range(size)]
    for i in range(size):
        weighted = columns[i] * w
        for j in range(i, size):
            rows[i][j] = rows[j][i] = (weighted * columns[j]).sum(axis=-1)
    return rows


def project(columns: Sequence[Array], w: Array, target: Array) -> list[Array]:
    """XᵀWy."""
    weighted = w * target
    return [(column * weighted).sum(axis=-1) for column in columns]


def inverse(rows: Rows, damping: Array | float = 0.0) -> tuple[Rows, NDArray[np.bool_]]:
    """Inverse of ``A + damping·diag(A)`` and whether it exists numerically, (B,).

    A singular system gives zeros, so that a step along it is no step.
    """
    size = len(rows)
    scale = [1.0 / np.sqrt(np.where(rows[i][i] > 0, rows[i][i], 1.0)) for i in range(size)]
    a = [[rows[i][j] * scale[i] * scale[j] for j in range(size)] for i in range(size)]
    for i in range(size):
        a[i][i] = a[i][i] + damping
    cofactors, determinant = _adjugate(a)
    regular = np.isfinite(determinant) & (determinant > 1e-13)
    for i in range(size):
        regular = regular & (rows[i][i] > 0)
    factor = np.where(regular, 1.0 / np.where(regular, determinant, 1.0), 0.0)
    return [[cofactors[i][j] * factor * scale[i] * scale[j] for j in range(size)] for i in range(size)], regular


def _adjugate(a: Rows) -> tuple[Rows, Array]:
    if len(a) == 1:
        return [[np.ones_like(a[0][0])]], a[0][0]
    if len(a) == 2:
        return [[a[1][1], -a[0][1]], [-a[0][1], a[0][0]]], a[0][0] * a[1][1] - a[0][1] ** 2
    c00 = a[1][1] * a[2][2] - a[1][2] ** 2
    c01 = a[0][2] * a[1][2] - a[0][1] * a[2][2]
    c02 = a[0][1] * a[1][2] - a[0][2] * a[1][1]
    c11 = a[0][0] * a[2][2] - a[0][2] ** 2
    c12 = a[0][1] * a[0][2] - a[0][0] * a[1][2]
    c22 = a[0][0] * a[1][1] - a[0][1] ** 2
    determinant = a[0][0] * c00 + a[0][1] * c01 + a[0][2] * c02
    return [[c00, c01, c02], [c01, c11, c12], [c02, c12, c22]], determinant


def multiply(rows: Rows, vector: Sequence[Array]) -> list[Array]:
    """Matrix times vector, batch element by batch element."""
    return [sum((row[j] * vector[j] for j in range(1, len(row))), row[0] * vector[0]) for row in rows]
