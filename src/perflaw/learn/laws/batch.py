"""What laws are fitted to: series of one padded length with one feature each, and what all fits to them share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.families import CONSTANT, Term
from perflaw.learn.laws.model import Ends
from perflaw.learn.laws.series import Array

LEAST_START = 0.05
"""Responses a search starts from are at least this part of the smallest one, under multiplicative noise."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Series of one padded length with one feature each; padding repeats the first row with weight 0."""

    x: Array
    """Feature, (B, n)."""
    y: Array
    """Response, (B, n)."""
    log_y: Array
    """log y (or its mean in a run), (B, n); 0 where y is not positive."""
    w: Array
    """Weights, (B, n), summing to the number of rows."""
    quantum: Array
    """Resolution of y, (B,)."""
    positive: NDArray[np.bool_]
    """All responses are positive, (B,)."""

    @cached_property
    def ends(self) -> Ends:
        """Smallest and largest x, (B, 1) each."""
        return Ends(self.x.min(axis=-1, keepdims=True), self.x.max(axis=-1, keepdims=True))

    @cached_property
    def equal(self) -> bool:
        """All weights are 1."""
        return bool((self.w == 1.0).all())

    @cached_property
    def relative(self) -> tuple[Array, Array, Array]:
        """Weights over y² times the smallest y², exp(log y), and the least response a search starts from (B, 1)."""
        weights = self.w * np.exp(2.0 * (self.log_y.min(axis=-1, keepdims=True) - self.log_y))
        y = np.exp(self.log_y)
        return weights, y, LEAST_START * y.min(axis=-1, keepdims=True)

    @cached_property
    def _available(self) -> dict[Term, NDArray[np.bool_]]:
        return {}

    @cached_property
    def _known(self) -> dict[tuple[str, str], tuple[Array, ...]]:
        return {}

    def available(self, term: Term) -> NDArray[np.bool_]:
        """Where a term is defined, (B,)."""
        if term not in self._available:
            self._available[term] = np.ones(len(self.x), dtype=bool) if term is CONSTANT else term.available(self.x)
        return self._available[term]

    def values(self, term: Term) -> Array:
        """A term of fixed exponent over its value at the largest |x|, (B, n)."""
        return self._made("value", term)[0]

    def progress(self, term: Term) -> Array:
        """The same from 0 at the smallest to 1 at the largest x, (B, n)."""
        return self._made("progress", term)[0]

    def growth(self, term: Term) -> tuple[Array, ...]:
        """What a free exponent multiplies in a term's logarithm, and in its derivative; at x and at both ends."""
        return self._made("growth", term)

    def _made(self, what: str, term: Term) -> tuple[Array, ...]:
        """What several models share is made once."""
        key = what, term.name
        if key not in self._known:
            self._known[key] = {"value": self._values, "progress": self._progress, "growth": self._growth}[what](term)
        return self._known[key]

    def _values(self, term: Term) -> tuple[Array, ...]:
        if term is CONSTANT:
            return (np.ones_like(self.x),)
        return (term.value(self.x, np.zeros(1), self.ends.top),)

    def _progress(self, term: Term) -> tuple[Array, ...]:
        ends, none = self.ends, np.zeros(1)
        first = term.value(ends.low, none, ends.top)
        return ((self.values(term) - first) / (term.value(ends.high, none, ends.top) - first),)

    def _growth(self, term: Term) -> tuple[Array, ...]:
        ends = self.ends
        at = (term.logarithm(x, ends.top) for x in (self.x, ends.low, ends.high))
        return tuple(part for pair in at for part in pair)
