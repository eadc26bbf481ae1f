"""Kolmogorov–Smirnov difference of two costs taken as Gaussians (§6), in closed form.

The difference of two distribution functions is largest where the densities cross.
"""

from __future__ import annotations

from math import erf, isclose, log, sqrt

from perflaw.learn.variance.sums import Stats

Normal = tuple[float, float]
"""Mean and standard deviation."""


def difference(one: Stats | None, two: Stats | None) -> float:
    """D of the costs of two nodes, 0 to 1; a missing counterpart costs nothing, always."""
    a = (one.mean, one.sigma) if one else (0.0, 0.0)
    b = (two.mean, two.sigma) if two else (0.0, 0.0)
    return gaussian_difference(a, b)


def gaussian_difference(a: Normal, b: Normal) -> float:
    """The supremum of |F_a − F_b|.

    >>> [round(gaussian_difference(x, y), 6) for x, y in (((10, 4), (14, 4)), ((10, 4), (14, 8)), ((10, 4), (10, 8)))]
    [0.382925, 0.345144, 0.161337]
    >>> [round(gaussian_difference(x, (0, 0)), 6) for x in ((10, 4), (10, 20))]
    [0.99379, 0.691462]
    """
    (mean, sigma), (other, width) = a, b
    if sigma == 0 and width == 0:
        return float(mean != other)
    if sigma == 0 or width == 0:
        z = (mean - other) / width if sigma == 0 else (other - mean) / sigma
        return max(_phi(z), 1 - _phi(z))
    if isclose(sigma, width, rel_tol=1e-9):
        return 2 * _phi(abs(mean - other) / (2 * sigma)) - 1
    points = _crossings(a, b)
    return max(abs(_phi((x - mean) / sigma) - _phi((x - other) / width)) for x in points)


def _crossings(a: Normal, b: Normal) -> tuple[float, float]:
    """Where the densities of two Gaussians of different width are equal, in units that keep the numbers near 1."""
    (mean, sigma), (other, width) = a, b
    shift, ratio = (other - mean) / sigma, width / sigma
    # z² = ((z − shift)/ratio)² + 2·log(ratio), z counted from the first mean in its sigmas.
    square, linear, rest = 1 - ratio**-2, 2 * shift / ratio**2, -((shift / ratio) ** 2) - 2 * log(ratio)
    root = sqrt(max(linear * linear - 4 * square * rest, 0.0))
    far = -(linear + (root if linear >= 0 else -root)) / 2
    near = rest / far if far else 0.0
    return mean + sigma * far / square, mean + sigma * near


def _phi(z: float) -> float:
    """Standard normal distribution function."""
    return (1 + erf(z / sqrt(2))) / 2
