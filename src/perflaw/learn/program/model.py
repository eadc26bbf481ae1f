"""The cost model of a program: its cost at a size that was not run, taken apart by function and calling context.

The cost of a run is the sum over functions of calls times own cost of a call. Calls are exact counts
(:mod:`~perflaw.learn.program.counts`), unit costs are steadied over all functions and runs
(:mod:`~perflaw.learn.program.units`). Contexts of a function whose calls cost the same form a cell, with one unit cost;
contexts of a cell whose calls grow alike form a strand, with one law of calls. The cost of a strand is distributed over
its contexts in constant shares. Inclusive costs are sums over the
contexts in which a function is active, in each draw of the intervals too: no function costs more than its callers, and
own costs sum to the whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.program.collections import learn_full_collections
from perflaw.learn.program.counts import CountLaw, Point, learn_counts, proportional
from perflaw.learn.program.ends import learn_ends
from perflaw.learn.program.terms import ONE, Monomial, product, values
from perflaw.learn.program.units import MIN_RUNS, UnitCosts, learn_units
from perflaw.types import Component, ProgramCosts, Run
from perflaw.types.programs import OUTSIDE
from perflaw.types.recordings import COLLECTING

Array = NDArray[np.float64]

MIN_STRAND: Final = 0.02
"""Share of a function's cost from which contexts may be on their own."""
NEARLY: Final = 0.02
"""Distance of two distributions of calls over the runs, 0 to 2, up to which calls are nearly proportional."""
NEGLIGIBLE: Final = 0.002
"""Share of a cell's cost times distance up to which a smaller group joins a larger one."""
MIN_CELL_OF_WHOLE: Final = 0.001
"""Share of the program's cost from which a context may have a unit cost of its own."""
UNLIKE: Final = 0.2
"""Logarithm of the ratio of two unit costs from which they are not the same."""
MOST_DECIDING: Final = 3
"""Features of single calls that laws are over."""
SAME_ORDER: Final = 0.95
"""Rank correlation from which two features say the same."""
AGREEMENT: Final = 0.01
"""Relative error of the calls of a cell that the laws of its strands may always have."""


@dataclass(frozen=True, slots=True, eq=False)
class Incidence:
    """A sparse matrix (F, n): the share of each of n parts of the cost that is spent while a function is active."""

    functions: NDArray[np.intp]
    """(E,) rows of the entries, ascending."""
    parts: NDArray[np.intp]
    """(E,) their columns."""
    shares: Array
    """(E,) their values."""
    count: int
    """Number of functions F."""

    @classmethod
    def of(cls, functions: NDArray[np.intp], parts: NDArray[np.intp], shares: Array, count: int) -> Incidence:
        """The matrix of these entries in any order; entries of the same place are added."""
        columns = int(parts.max(initial=0)) + 1
        places, entry = np.unique(functions * columns + parts, return_inverse=True)
        return cls(
            places // columns, places % columns, np.bincount(entry.reshape(-1), shares).astype(np.float64), count
        )

    def sum(self, costs: Array) -> Array:
        """Costs of the functions, (F, ...), from those of the parts, (n, ...)."""
        out = np.zeros((self.count, *costs.shape[1:]))
        if self.functions.size:
            starts = np.flatnonzero(np.diff(self.functions, prepend=-1))
            weighted = costs[self.parts] * self.shares.reshape(-1, *[1] * (costs.ndim - 1))
            out[self.functions[starts]] = np.add.reduceat(weighted, starts, axis=0)
        return out


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """Contexts of a function in which a call costs the same: one unit cost."""

    component: int
    """Number of the function."""
    contexts: NDArray[np.intp]
    """Numbers of the contexts."""
    calls: Array
    """(R,) calls in them."""
    made: Array
    """(R,) calls that are made from them of recorded functions."""
    own: Array
    """(R,) own cost in them."""


@dataclass(frozen=True, slots=True)
class Strand:
    """Contexts of a cell whose calls grow alike."""

    cell: int
    """Number of the cell."""
    count: CountLaw
    """Calls in them, of a run."""
    part: float
    """Their part of the cell's calls, at the median of the runs."""
    made: CountLaw | None = None
    """Calls that are made from them of recorded functions; None where the unit cost does not depend on these."""


@dataclass(frozen=True, slots=True, eq=False)
class CostModel:
    """What each function of a program costs in a run, as a function of the run's features."""

    costs: ProgramCosts
    """What it was learnt from."""
    features: Mapping[str, Array]
    """Features of the runs, (R,) each, that vary."""
    cells: tuple[Cell, ...]
    """Parts of functions with one unit cost."""
    units: UnitCosts
    """Own cost of a call in each cell."""
    strands: tuple[Strand, ...]
    """(K,) strands of all cells."""
    active: Incidence
    """(F, K) share of each strand's cost that is spent while a function is active."""
    monomials: tuple[Monomial, ...]
    """(T,) monomials of the strands' costs."""
    coefficients: Array
    """(K, T) their coefficients."""

    @property
    def components(self) -> tuple[Component, ...]:
        """The functions."""
        return self.costs.components

    @property
    def runs(self) -> tuple[Run, ...]:
        """The executions that it was learnt from."""
        return self.costs.runs

    def inclusive_terms(self) -> list[dict[Monomial, float]]:
        """Inclusive cost of a run in each function, (F,), as a sum of monomials."""
        of_functions = self.active.sum(self.coefficients)
        return [{self.monomials[t]: float(row[t]) for t in np.flatnonzero(row)} for row in of_functions]

    def composed(self) -> Array:
        """Cost that the model gives to each execution it was learnt from, at that run's speed, (R,)."""
        monomials = values(list(self.monomials), self.features, len(self.runs))
        return np.asarray((self.coefficients.sum(axis=0) @ monomials) * self.units.speed)

    def measured(self) -> Array:
        """Cost of each execution, (R,)."""
        return np.asarray(self.costs.own.sum(axis=1))

    def measured_inclusive(self) -> Array:
        """Inclusive cost of each execution in each function, (R, F)."""
        active = self.costs.active
        rows = np.array([component for one in active for component in one], dtype=np.intp)
        context = np.repeat(np.arange(len(active)), [len(one) for one in active])
        return Incidence.of(rows, context, np.ones(rows.size), len(self.components)).sum(self.costs.context_own.T).T

    def inclusive_costs(self, point: Point) -> Array:
        """Expected inclusive cost of a run at a point in each function, (F,)."""
        return self.active.sum(self.strand_costs({name: np.array([value]) for name, value in point.items()}))

    def strand_costs(self, at: Mapping[str, Array]) -> Array:
        """Expected cost of each strand where the features have some values, (K,)."""
        return np.asarray(self.coefficients @ values(list(self.monomials), at, 1)[:, 0])


def learn_program(costs: ProgramCosts, preferred: Sequence[str] = ()) -> CostModel:
    """The cost model of a program from its executions.

    Features are the ``preferred`` ones if there are any, because a point asked for has no others; else those of
    :func:`run_features`.
    """
    features = run_features(costs.runs, preferred)
    if costs.per and not features.keys() <= set(preferred):
        features = _deciding(features, costs)
    cells = list(_cells(costs))
    accumulates = np.array([costs.components[cell.component].name == COLLECTING for cell in cells], dtype=np.bool_)
    full = None
    for place in np.flatnonzero(accumulates).tolist():
        young = cells[place]
        full = learn_full_collections(costs.runs, costs.metric, young.calls, young.own, features)
        if full is not None:
            cells[place] = replace(young, own=young.own - full.own)
    outside = [place for place, cell in enumerate(cells) if costs.components[cell.component].name == OUTSIDE]
    young_calls = sum((cells[place].calls for place in np.flatnonzero(accumulates).tolist()), np.zeros(len(costs.runs)))
    ends = learn_ends(costs.runs, costs.metric, cells[outside[0]].own, features, young_calls) if outside else None
    if ends is not None:
        cells[outside[0]] = replace(cells[outside[0]], own=cells[outside[0]].own - ends.own)
    calls = np.array([cell.calls for cell in cells]).reshape(len(cells), len(costs.runs)).T
    made = np.array([cell.made for cell in cells]).reshape(calls.T.shape).T
    own = np.array([cell.own for cell in cells]).reshape(calls.T.shape).T
    units = learn_units(calls, made, own, features, accumulates)
    strands, (shares, strand_of) = _strands(costs, cells, calls, features)
    # Laws of the calls that are made from the strands, where their cost may follow these.
    depends = [k for k, one in enumerate(strands) if any(fit.form.by_calls for fit in units.laws[one.cell].forms)]
    made_from = np.zeros((len(costs.runs), len(strands)))
    for of_strands, of_run in zip(made_from, costs.context_made, strict=True):
        of_strands += np.bincount(strand_of, of_run, minlength=len(strands))
    laws, places = learn_counts(made_from[:, depends], features)
    law_of = {k: laws[place] for k, place in zip(depends, places, strict=True)}
    strands = tuple(replace(one, made=law_of.get(k)) for k, one in enumerate(strands))
    rows = np.array([component for active in costs.active for component in active], dtype=np.intp)
    context = np.repeat(np.arange(len(costs.active)), [len(active) for active in costs.active])
    parts, weights = strand_of[context], shares[context]
    for place in np.flatnonzero(accumulates).tolist():
        # Collections that come with the size happen in the contexts in which more and more is collected, not where a
        # program collects as often at every size, as where it imports.
        contexts = cells[place].contexts
        mine = [k for k, strand in enumerate(strands) if strand.cell == place]
        growing = []
        if len(mine) == 1:
            [whole] = [strands[k] for k in mine]
            grows = {key: c for key, c in whole.count.terms.items() if key}
            rest = CountLaw(grows, whole.count.learnt, follows=(whole.count, grows))
            growing.append(Strand(place, rest, 0.0))
            always = replace(whole, count=CountLaw({ONE: whole.count.terms.get(ONE, 0.0)}, None))
            strands = tuple(always if one is whole else one for one in strands)
        if full is not None:
            nothing = np.zeros(len(costs.runs))
            cells.append(Cell(cells[place].component, contexts, nothing, nothing, full.own))
            units = replace(units, laws=(*units.laws, full.unit))
            growing.append(Strand(len(cells) - 1, full.visited, 1.0))
        share = np.bincount(contexts, _growing_shares(costs, contexts), minlength=costs.context.size)
        inside = np.isin(context, contexts)
        for strand in growing:
            rows, weights = np.append(rows, rows[: inside.size][inside]), np.append(weights, share[context[inside]])
            parts = np.append(parts, np.full(inside.sum(), len(strands)))
            strands = (*strands, strand)
    if ends is not None:
        nothing = np.zeros(len(costs.runs))
        cells.append(Cell(cells[outside[0]].component, cells[outside[0]].contexts, nothing, nothing, ends.own))
        units = replace(units, laws=(*units.laws, ends.unit))
        rows, weights = np.append(rows, cells[outside[0]].component), np.append(weights, 1.0)
        parts, strands = np.append(parts, len(strands)), (*strands, Strand(len(cells) - 1, ends.blocks, 1.0))
    terms = [_cost_terms(strand, units) for strand in strands]
    monomials = tuple(dict.fromkeys(key for one in terms for key in one))
    number = {key: place for place, key in enumerate(monomials)}
    coefficients = np.zeros((len(strands), len(monomials)))
    for row, one in zip(coefficients, terms, strict=True):
        for key, coefficient in one.items():
            row[number[key]] = coefficient
    active = Incidence.of(rows, parts, weights, len(costs.components))
    return CostModel(costs, features, tuple(cells), units, strands, active, monomials, coefficients)


def run_features(runs: Sequence[Run], preferred: Sequence[str]) -> dict[str, Array]:
    """Features of the runs that all have and that vary, (R,) each: the preferred ones alone, if there are any.

    Else those that a person varied, and of the others those that do not follow from them: what has one value at each
    combination of varied values, as the size of a file has, says nothing that they do not. So laws are over the features
    that a person names when asking for another size, whether a size is asked for or not.
    """
    names = [name for name in runs[0].features if all(name in run.features for run in runs)] if runs else []
    columns = {name: np.array([run.features[name] for run in runs], dtype=np.float64) for name in names}
    columns = {name: column for name, column in columns.items() if np.ptp(column) > 0}
    if asked := {name: column for name, column in columns.items() if name in preferred}:
        return asked
    varied = {name: columns[name] for name in columns if all(name in run.configuration for run in runs)}
    if not varied:
        return columns
    size = np.unique(np.array(list(varied.values())).T, axis=0, return_inverse=True)[1].reshape(-1)
    return {name: column for name, column in columns.items() if name in varied or not _follows(column, size)}


def _deciding(features: Mapping[str, Array], costs: ProgramCosts) -> dict[str, Array]:
    """Of the features of single calls, whose arguments hold many numbers, the few that order the calls within them best.

    The number of calls is exact where clocks are not. Of features that order the observations nearly alike, one is enough: that
    of the function itself, else one of the person's own functions.
    """
    owners = {component.name: component.origin for component in costs.components}

    ranks = {name: _ranks(column) for name, column in features.items()}

    def alike(a: Array, b: Array) -> float:
        return abs(float(np.corrcoef(a, b)[0, 1])) if np.ptp(a) > 0 and np.ptp(b) > 0 else 0.0

    def distance(name: str) -> tuple[int, int]:
        owner = max((one for one in owners if name.startswith(f"{one}.")), key=len, default="")
        return bool(owner) + (owners.get(owner) == "library"), name.count(".")

    order = _ranks(costs.calls.sum(axis=1))
    kept: list[str] = []
    for name in sorted(ranks, key=lambda name: (-round(alike(ranks[name], order), 2), *distance(name))):
        if len(kept) < MOST_DECIDING and all(alike(ranks[name], ranks[other]) < SAME_ORDER for other in kept):
            kept.append(name)
    return {name: column for name, column in features.items() if name in kept}


def _ranks(column: Array) -> Array:
    """Place of each value among the distinct values."""
    return np.unique(column, return_inverse=True)[1].reshape(-1).astype(np.float64)


def _follows(column: Array, size: NDArray[np.intp]) -> bool:
    """Whether a feature (R,) has one value at each size, (R,)."""
    order = np.lexsort([column, size])
    same = size[order][1:] == size[order][:-1]
    return bool((column[order][1:] == column[order][:-1])[same].all())


def _cells(costs: ProgramCosts) -> tuple[Cell, ...]:
    """The cells of all functions: contexts whose calls cost something else than those of the whole function stay apart.

    A helper that is called with long lists here and with short ones there has two unit costs. Over all contexts together
    it would have one that changes with the mixture of the callers, and that would be taken for a dependence.
    """
    order = np.argsort(costs.context, kind="stable")
    ends = np.searchsorted(costs.context[order], np.arange(len(costs.components) + 1))
    whole = max(float(costs.own.sum()), 1e-300)
    cells = []
    for f in range(len(costs.components)):
        contexts = order[ends[f] : ends[f + 1]]
        calls, own = costs.calls[:, f], costs.own[:, f]
        apart = np.zeros(contexts.size, dtype=np.bool_)
        if contexts.size > 1 and costs.components[f].name != COLLECTING:  # collections happen wherever they happen
            # Contexts that matter and whose unit cost differs from that of the whole function in most runs.
            own_of_contexts = costs.context_own[:, contexts]
            share = own_of_contexts.sum(axis=0)
            for place in np.flatnonzero((share >= MIN_CELL_OF_WHOLE * whole) & (share >= MIN_STRAND * own.sum())):
                used = (own_of_contexts[:, place] > 0) & (own > 0) & (costs.context_calls[:, contexts[place]] > 0)
                if used.sum() >= MIN_RUNS:
                    unit = own_of_contexts[used, place] / costs.context_calls[used, contexts[place]]
                    ratio = np.abs(np.log(unit * calls[used] / own[used]))
                    apart[place] = np.median(ratio) > UNLIKE
        for context in contexts[apart]:
            of_context = costs.context_calls[:, context], costs.context_own[:, context]
            cells.append(Cell(f, np.array([context]), of_context[0], costs.context_made[:, context], of_context[1]))
            calls, own = calls - of_context[0], own - of_context[1]
        if not apart.all() or not contexts.size:
            made = costs.context_made[:, contexts[~apart]].sum(axis=1)
            cells.append(Cell(f, contexts[~apart], np.maximum(calls, 0.0), made, np.maximum(own, 0.0)))
    return tuple(cells)


def _cost_terms(strand: Strand, units: UnitCosts) -> dict[Monomial, float]:
    """Cost of a strand in a run: its calls times its unit cost, what occurs once, and the steps of its loops."""
    unit, once, step = units.laws[strand.cell].terms()
    out = product(strand.count.terms, unit)
    if once * strand.part:
        out[ONE] = out.get(ONE, 0.0) + once * strand.part
    for key, coefficient in (strand.made.terms if strand.made and step else {}).items():
        out[key] = out.get(key, 0.0) + step * coefficient
    return out


def _strands(
    costs: ProgramCosts, cells: Sequence[Cell], calls: Array, features: Mapping[str, Array]
) -> tuple[tuple[Strand, ...], tuple[Array, NDArray[np.intp]]]:
    """Strands of all cells; share of its strand's cost and number of the strand of each context, (C,) each."""
    strand_of = np.zeros(costs.context.size, dtype=np.intp)
    shares = np.zeros(costs.context.size)
    laws, places = learn_counts(calls, features)
    # Collections happen wherever the allocation of an object sets one off, so that their contexts have no laws of their own.
    groups = [
        [cell.contexts] if costs.components[cell.component].name == COLLECTING else _grouped(cell.contexts, costs)
        for cell in cells
    ]
    several = [group for of_one in groups if len(of_one) > 1 for group in of_one]
    sums = np.array([costs.context_calls[:, group].sum(axis=1) for group in several])
    split_laws, split_places = learn_counts(sums.reshape(len(several), len(costs.runs)).T, features)
    split = iter(split_places)
    strands: list[Strand] = []
    for number, of_one in enumerate(groups):
        whole = laws[places[number]]
        of_groups = [split_laws[next(split)] for _ in of_one] if len(of_one) > 1 else []
        if of_groups and not _agree(of_groups, whole, calls[:, number], features):
            of_groups, of_one = [], [np.concatenate(of_one)]
        for law, group in zip(of_groups or [whole], of_one, strict=True):
            strand_of[group] = len(strands)
            shares[group] = _context_shares(costs, group)
            # The part of the cell's calls, at the median of the runs that have any.
            used, made = calls[:, number] > 0, costs.context_calls[:, group].sum(axis=1)
            part = float(np.median(made[used] / calls[used, number])) if used.any() else 0.0
            strands.append(Strand(number, law, part if of_groups else 1.0))
    return tuple(strands), (shares, strand_of)


def _grouped(contexts: NDArray[np.intp], costs: ProgramCosts) -> list[NDArray[np.intp]]:
    """Contexts of a cell in groups whose calls are proportional over the runs, exactly or nearly.

    Calls are compared by their distribution over the runs. The less a group costs, the less exactly it has to be
    proportional to the larger group that it joins.
    """
    if contexts.size <= 1:
        return [contexts]
    number = proportional(costs.context_calls[:, contexts])
    cost = np.bincount(number, costs.context_own[:, contexts].sum(axis=0))
    share = cost / max(float(cost.sum()), 1e-300)
    first = np.unique(number, return_index=True)[1]
    profiles = costs.context_calls[:, contexts[first]]
    profiles = profiles / np.maximum(profiles.sum(axis=0), 1.0)
    joins = np.arange(share.size)
    kept: list[int] = []
    for group in np.argsort(-share, kind="stable").tolist():
        if kept:
            distance = np.abs(profiles[:, kept] - profiles[:, [group]]).sum(axis=0)
            if distance.min() <= (NEARLY if share[group] >= MIN_STRAND else NEGLIGIBLE / max(share[group], 1e-6)):
                joins[group] = kept[int(distance.argmin())]
                continue
        kept.append(group)
    number = joins[number]
    return [contexts[number == one] for one in np.unique(number)]


def _agree(laws: Sequence[CountLaw], whole: CountLaw, calls: Array, features: Mapping[str, Array]) -> bool:
    """Whether laws of strands together say as much of the calls (R,) of their cell as the law of the cell itself."""

    def error(several: Sequence[CountLaw]) -> tuple[float, bool]:
        each = [law.values(features, calls.size) for law in several]
        used = calls > 0
        misfit = np.abs(np.sum(each, axis=0) - calls)[used] / calls[used]
        far = {name: np.full(1, 10.0 * x.max()) for name, x in features.items()}
        return float(misfit.max(initial=0.0)), all(law.values(far, 1)[0] >= 0 for law in several)

    (of_strands, positive), (of_cell, _) = error(laws), error([whole])
    return positive and of_strands <= max(AGREEMENT, 1.5 * of_cell)


def _growing_shares(costs: ProgramCosts, group: NDArray[np.intp]) -> Array:
    """Share of each context of a group in what the group's calls grow by from the smallest runs to the largest, (g,)."""
    calls = costs.context_calls[:, group]
    total = calls.sum(axis=1)
    growth = calls[total >= np.quantile(total, 0.75)].mean(axis=0) - calls[total <= np.quantile(total, 0.25)].mean(
        axis=0
    )
    growth = np.maximum(growth, 0.0)
    return np.asarray(growth / growth.sum()) if growth.any() else _context_shares(costs, group)


def _context_shares(costs: ProgramCosts, group: NDArray[np.intp]) -> Array:
    """Share of each context of a strand in its cost, (g,): the median over the runs of calls times own cost."""
    own = costs.context_own[:, group]
    total = own.sum(axis=1, keepdims=True)
    used = total[:, 0] > 0
    if not used.any():
        calls = costs.context_calls[:, group].sum(axis=0)
        return np.asarray((calls + 1e-9) / (calls + 1e-9).sum())
    # Later runs and larger sizes weigh alike: a context that is new at the largest size counts with its share there.
    mean = np.mean(own[used] / total[used], axis=0)
    return np.asarray(mean / mean.sum())
