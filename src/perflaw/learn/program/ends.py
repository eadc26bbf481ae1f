"""The end of the process: what the interpreter needs to visit and free all that still lives, at a size that was not run.

At its end CPython collects everything several times and frees it (``Py_FinalizeEx``), which is up to a third of a program
that builds large structures. How many blocks of memory live then is an exact count of a run. What a block costs is learnt
from the runs, and how much dearer it is once the blocks have left the caches is measured on the machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.laws.tree import Name
from perflaw.learn.program.counts import CountLaw, learn_counts
from perflaw.learn.program.terms import ONE, Monomial, TermSum, restricted, values
from perflaw.learn.program.units import FittedForm, UnitLaw
from perflaw.types import CPU, TIME, Metric, Run
from perflaw.types.recordings import HeapCosts

Array = NDArray[np.float64]

BY_COLLECTION: Final = 2.5
"""Cost of a block at the end of a process, relative to one collection that frees it, as a first guess.

The interpreter collects three times and takes modules apart in between. Ten programs on PyPI packages: 1.1 to 6."""
SPREAD: Final = 0.5
"""Standard deviation of the logarithm of that guess."""
NOISE: Final = 0.2
"""Error of the CPU time of the end of a process, as a part of it."""
MACHINE_SPREAD: Final = 0.25
"""Standard deviation of the logarithm of how much dearer blocks outside of the caches are: programs place them differently."""
FOLLOWS: Final = 0.05
"""Scatter about a law of exact counts, as a part of theirs, up to which they follow it."""
FAR: Final = 1000.0
"""Largest multiple of the data at which blocks leave the caches."""


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """The part of the process's end that follows the blocks that live."""

    own: Array
    """(R,) its cost in each run."""
    blocks: CountLaw
    """Blocks that live at the end of a run, one outside of the caches counted as so many as it is dearer."""
    unit: UnitLaw
    """Cost of a block inside the caches."""


def learn_ends(
    runs: Sequence[Run], metric: Metric, own: Array, features: Mapping[str, Array], collections: Array | None = None
) -> Ends | None:
    """What follows the blocks in the cost of the process's start and end, ``own`` (R,), over features (R,) each.

    ``collections`` (R,) is how often a run collected garbage, if that is known.
    None for another metric than CPU or wall time, where a run does not tell its blocks, and where all have as many.
    """
    heaps = [run.machine.heap for run in runs if run.machine is not None and run.machine.heap is not None]
    blocks = np.array([float(run.collections.blocks) if run.collections else 0.0 for run in runs])
    if metric not in (CPU, TIME) or len(heaps) < len(runs) or (blocks <= 0).any() or np.ptp(blocks) == 0:
        return None
    heap = heaps[-1]
    law = _law_of_blocks(blocks, features, collections)
    weighted = _weighted(blocks, heap)
    about = weighted - weighted.min()
    # Least squares in parts of each cost, with one more observation: the guess.
    guess = BY_COLLECTION * heap.free_ns[0]
    weights = 1.0 / np.maximum(NOISE * own, 1e-300)
    rows = np.vstack([np.column_stack([np.ones(len(runs)), about]) * weights[:, None], [0.0, 1.0 / (SPREAD * guess)]])
    truth = np.append(own * weights, 1.0 / SPREAD)
    solution, *_ = np.linalg.lstsq(rows, truth, rcond=None)
    each = float(solution[1])
    if each <= 0:
        return None
    error = float(np.linalg.inv(rows.T @ rows)[1, 1] ** 0.5) / each
    terms = _weighted_terms(law.terms, heap, features)
    terms[ONE] = terms.get(ONE, 0.0) - float(weighted.min())
    unit = UnitLaw((FittedForm.constant(each, float(np.hypot(min(error, SPREAD), MACHINE_SPREAD))),))
    return Ends(np.minimum(each * about, own), CountLaw(terms, law.learnt), unit)


def _law_of_blocks(blocks: Array, features: Mapping[str, Array], collections: Array | None) -> CountLaw:
    """How many blocks live at the end of a run.

    Where garbage waits for a full collection, their number rises until one takes place, and falls: whatever law fits a few
    such numbers says nothing of the next. Then it is in proportion to what is allocated, of which collections of young
    objects take place at regular intervals.
    """
    [law], _ = learn_counts(blocks[:, None], features)
    misfit = law.values(features, blocks.size) - blocks
    if collections is None or np.std(misfit) <= FOLLOWS * np.std(blocks):
        return law
    [young], _ = learn_counts(collections[:, None], features)
    about = collections - collections.mean()
    slope = max(float(about @ blocks / max(float(about @ about), 1e-300)), 0.0)
    terms = {key: slope * c for key, c in young.terms.items()}
    terms[ONE] = terms.get(ONE, 0.0) + float(blocks.mean() - slope * collections.mean())
    return CountLaw(terms, young.learnt)


def _knots(heap: HeapCosts) -> tuple[Array, Array]:
    """Numbers of blocks, and how many blocks inside the caches cost as much."""
    blocks = np.array(heap.blocks, dtype=np.float64)
    dearer = np.maximum.accumulate(np.array(heap.free_ns) / max(heap.free_ns[0], 1e-9))
    return blocks, blocks * dearer


def _slopes(heap: HeapCosts) -> Array:
    """Slope of the weighted number below the first knot, between two, and beyond the last."""
    blocks, weighted = _knots(heap)
    inside = np.diff(weighted) / np.diff(blocks)
    return np.concatenate([[1.0], inside, [weighted[-1] / blocks[-1]]])


def _weighted(blocks: Array, heap: HeapCosts) -> Array:
    """The number of blocks with those outside of the caches weighted by how much dearer they are."""
    knots, weighted = _knots(heap)
    slopes = _slopes(heap)
    piece = np.searchsorted(knots, blocks)
    before = np.maximum(piece - 1, 0)
    return np.where(piece == 0, blocks, weighted[before] + slopes[piece] * (blocks - knots[before]))


def _weighted_terms(blocks: TermSum, heap: HeapCosts, features: Mapping[str, Array]) -> dict[Monomial, float]:
    """The weighted number as a sum of monomials: one piece for each range of blocks that a feature reaches."""
    knots, weighted = _knots(heap)
    slopes = _slopes(heap)
    pieces = [dict(blocks)]
    for knot, at, slope in zip(knots.tolist(), weighted.tolist(), slopes[1:].tolist(), strict=True):
        piece = {key: slope * c for key, c in blocks.items()}
        piece[ONE] = piece.get(ONE, 0.0) + at - slope * knot
        pieces.append(piece)
    names = {base.text for key in blocks for factor, _ in key for base in factor.walk() if isinstance(base, Name)}
    if len(names) != 1:
        within = {name: np.full(1, 10.0 * x.max()) for name, x in features.items()}
        [most] = np.array(list(blocks.values())) @ values(list(blocks), within, 1)
        return pieces[int(np.searchsorted(knots, most))]
    [name] = names
    grid = np.geomspace(max(features[name].min(), 1e-9), FAR * features[name].max(), 4000)
    counts = np.array(list(blocks.values())) @ values(list(blocks), {name: grid}, 4000)
    ends = [float(grid[int(np.argmax(counts > knot))]) if counts[-1] > knot else np.inf for knot in knots.tolist()]
    out: dict[Monomial, float] = {}
    for piece, (above, below) in zip(pieces, pairwise([0.0, *ends, np.inf]), strict=True):
        if above >= below:
            continue
        part: TermSum = piece if above <= grid[0] else restricted(piece, name, ">", above)
        part = part if below == np.inf else restricted(part, name, "<=", below)
        for key, c in part.items():
            out[key] = out.get(key, 0.0) + c
    return out
