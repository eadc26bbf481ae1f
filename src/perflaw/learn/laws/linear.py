"""Symmetric systems of up to three unknowns, solved for a whole batch by formula.

LAPACK costs a microsecond or two a matrix; these cost nanoseconds. Systems are scaled to a unit diagonal first,
so that parameters of unlike size do no harm.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.series import Array


def gram(columns: Sequence[Array], w: Array | None) -> Array:
    """XᵀWX of p columns (B, n) with weights (B, n) or None for all 1, (p, p, B)."""
    size = len(columns)
    out = np.empty((size, size, len(columns[0])))
    for i in range(size):
        weighted = columns[i] if w is None else columns[i] * w
        for j in range(i, size):
            np.add.reduce(weighted * columns[j], axis=-1, out=out[i, j])
            out[j, i] = out[i, j]
    return out


def project(columns: Sequence[Array], weighted: Array) -> Array:
    """XᵀWy of p columns (B, n) and w·y (B, n), (p, B)."""
    out = np.empty((len(columns), len(weighted)))
    for i, column in enumerate(columns):
        np.add.reduce(column * weighted, axis=-1, out=out[i])
    return out


def inverse(matrix: Array, damping: Array | float = 0.0) -> tuple[Array, NDArray[np.bool_]]:
    """Inverse (p, p, B) of ``A + damping·diag(A)`` and whether it exists numerically, (B,); damping (p, B) or (B,).

    A singular system gives zeros, so that a step along it is no step.
    """
    diagonal = _diagonal(matrix)
    positive = diagonal > 0
    scale = 1.0 / np.sqrt(np.where(positive, diagonal, 1.0))
    a = matrix * scale[:, None] * scale
    _diagonal(a)[...] += damping
    cofactors, determinant = _adjugate(a)
    regular = np.isfinite(determinant) & (determinant > 1e-13) & positive.all(axis=0)
    factor = np.where(regular, 1.0 / np.where(regular, determinant, 1.0), 0.0)
    return cofactors * factor * scale[:, None] * scale, regular


def _diagonal(matrix: Array) -> Array:
    """A view of the diagonals of contiguous matrices, (p, p, B) -> (p, B)."""
    return matrix.reshape(len(matrix) ** 2, -1)[:: len(matrix) + 1]


def _adjugate(a: Array) -> tuple[Array, Array]:
    """Cofactors (p, p, B) and determinant (B,) of symmetric matrices, their upper halves read."""
    if len(a) == 1:
        return np.ones_like(a), a[0, 0]
    out = np.empty_like(a)
    if len(a) == 2:
        out[0, 0], out[1, 1] = a[1, 1], a[0, 0]
        out[0, 1] = out[1, 0] = -a[0, 1]
        return out, a[0, 0] * a[1, 1] - a[0, 1] ** 2
    out[0, 0] = a[1, 1] * a[2, 2] - a[1, 2] ** 2
    out[0, 1] = out[1, 0] = a[0, 2] * a[1, 2] - a[0, 1] * a[2, 2]
    out[0, 2] = out[2, 0] = a[0, 1] * a[1, 2] - a[0, 2] * a[1, 1]
    out[1, 1] = a[0, 0] * a[2, 2] - a[0, 2] ** 2
    out[1, 2] = out[2, 1] = a[0, 1] * a[0, 2] - a[0, 0] * a[1, 2]
    out[2, 2] = a[0, 0] * a[1, 1] - a[0, 1] ** 2
    return out, a[0, 0] * out[0, 0] + a[0, 1] * out[0, 1] + a[0, 2] * out[0, 2]


def multiply(matrix: Array, vector: Array) -> Array:
    """Matrix (p, p, B) times vector (p, B), batch element by batch element, (p, B)."""
    products = matrix * vector
    out: Array = products[:, 0]
    for j in range(1, len(vector)):
        out = out + products[:, j]
    return out
