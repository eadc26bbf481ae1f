"""The cost model of a program: its cost at a size that was not run, taken apart by function and calling context.

The cost of a run is the sum over functions of calls times own cost of a call. Calls are exact counts
(:mod:`~perflaw.learn.program.counts`), unit costs are steadied over all functions and runs
(:mod:`~perflaw.learn.program.units`). Contexts of a function whose calls grow alike form a strand, with one law of
calls; the cost of a strand is distributed over its contexts in constant shares. Inclusive costs are sums over the
contexts in which a function is active, in each draw of the intervals too: no function costs more than its callers, and
own costs sum to the whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.confidence import HIGH, LOW
from perflaw.learn.program.counts import CountLaw, Point, learn_counts, proportional
from perflaw.learn.program.terms import ONE, Monomial, TermSum, product, values
from perflaw.learn.program.units import UnitCosts, learn_units
from perflaw.types import Component, Prediction, ProgramCosts, Run

Array = NDArray[np.float64]

DRAWS: Final = 200
"""Draws behind an interval."""
MIN_STRAND: Final = 0.02
"""Share of a function's cost below which a group of contexts joins the largest one."""
AGREEMENT: Final = 0.03
"""Relative difference up to which laws of strands must sum to the law of the function, also far beyond the data."""
COLLECTING: Final = "(garbage collection)"
"""Pseudo-function whose unit cost grows with the live objects."""


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
        return cls(places // columns, places % columns, np.bincount(entry.reshape(-1), shares).astype(np.float64), count)

    def sum(self, costs: Array) -> Array:
        """Costs of the functions, (F, ...), from those of the parts, (n, ...)."""
        out = np.zeros((self.count, *costs.shape[1:]))
        if self.functions.size:
            starts = np.flatnonzero(np.diff(self.functions, prepend=-1))
            weighted = costs[self.parts] * self.shares.reshape(-1, *[1] * (costs.ndim - 1))
            out[self.functions[starts]] = np.add.reduceat(weighted, starts, axis=0)
        return out


@dataclass(frozen=True, slots=True)
class Strand:
    """Contexts of a function whose calls grow alike."""

    component: int
    """Number of the function."""
    count: CountLaw
    """Calls in them, of a run."""
    unit: float
    """Their unit cost over that of the whole function."""
    once: float
    """Part of the cost that occurs once in a run that belongs to them."""


@dataclass(frozen=True, slots=True, eq=False)
class CostModel:
    """What each function of a program costs in a run, as a function of the run's features."""

    costs: ProgramCosts
    """What it was learnt from."""
    features: Mapping[str, Array]
    """Features of the runs, (R,) each, that vary."""
    units: UnitCosts
    """Own cost of a call of each function."""
    counts: tuple[CountLaw, ...]
    """(F,) calls of each function in a run."""
    strands: tuple[Strand, ...]
    """(K,) strands of all functions."""
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
        return self._sums(self.active.sum(self.coefficients))

    def own_terms(self) -> list[dict[Monomial, float]]:
        """Own cost of a run in each function, (F,), as a sum of monomials."""
        return self._sums(self._owners().sum(self.coefficients))

    def whole_terms(self) -> dict[Monomial, float]:
        """Cost of a run as a sum of monomials."""
        return self._sums(self.coefficients.sum(axis=0, keepdims=True))[0]

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

    def predict(self, point: Point) -> Forecasts:
        """Costs of a run at a point, with draws of the whole tree."""
        at = {name: np.array([float(value)]) for name, value in point.items()}
        basis = values(list(self.monomials), at, 1)[:, 0]
        strands = self.coefficients @ basis
        draws = self._draws(point, strands, np.random.default_rng(0))
        speed = np.log(self.units.speed)
        machine = np.random.default_rng(1).normal(0.0, float(speed.std(ddof=1)) if speed.size > 1 else 0.0, DRAWS)
        return Forecasts(
            self.active.sum(strands), self.active.sum(draws), float(strands.sum()), draws.sum(axis=0), np.exp(machine)
        )

    def _draws(self, point: Point, strands: Array, random: np.random.Generator) -> Array:
        """Costs of the strands at a point in each draw, (K, DRAWS).

        Functions with the same law of calls share their draw, and all share the error of the runs' median speed.
        """
        at = {name: np.array([float(value)]) for name, value in point.items()}
        normal: dict[int, Array] = {}
        spread: dict[int, float] = {}
        unit: dict[int, Array] = {}
        out = np.empty((len(strands), DRAWS))
        speeds = np.log(self.units.speed)
        common = random.normal(0.0, speeds.std() / np.sqrt(max(speeds.size, 1)), DRAWS)
        for k, strand in enumerate(self.strands):
            law = id(strand.count)
            if law not in normal:
                normal[law], spread[law] = random.normal(size=DRAWS), strand.count.spread(point)
            if strand.component not in unit:
                unit[strand.component] = self._unit_draws(strand.component, at, random)
            out[k] = strands[k] * np.exp(normal[law] * spread[law] + common) * unit[strand.component]
        return np.maximum(out, 0.0)

    def _unit_draws(self, component: int, at: Mapping[str, Array], random: np.random.Generator) -> Array:
        """Unit cost of a function in each draw, relative to the chosen law: its error and the forms left open."""
        law = self.units.laws[component]
        keys: list[Monomial] = []
        sizes = []
        for form in range(len(law.forms)):
            terms, _ = law.terms(form)
            keys = list(terms)
            sizes.append(float(np.array([terms[key] for key in keys]) @ values(keys, at, 1)[:, 0]))
        ratio = np.array(sizes) / sizes[0] if sizes[0] > 0 else np.ones(len(sizes))
        weights = np.array([weight for weight, *_ in law.forms])
        forms = random.choice(len(sizes), DRAWS, p=weights / weights.sum())
        error = law.spread / np.sqrt(max(law.runs, 1))
        return np.asarray(np.clip(ratio, 0.01, 100.0)[forms] * np.exp(random.normal(0.0, error, DRAWS)))

    def _owners(self) -> Incidence:
        """(F, K) which strand belongs to which function."""
        owner = np.array([strand.component for strand in self.strands], dtype=np.intp)
        return Incidence.of(owner, np.arange(owner.size), np.ones(owner.size), len(self.components))

    def _sums(self, coefficients: Array) -> list[dict[Monomial, float]]:
        return [{self.monomials[t]: float(row[t]) for t in np.flatnonzero(row)} for row in np.atleast_2d(coefficients)]


@dataclass(frozen=True, slots=True, eq=False)
class Forecasts:
    """Costs of a run at one point."""

    inclusive: Array
    """(F,) expected cost while each function is active."""
    draws: Array
    """(F, DRAWS) the same in each draw of the model."""
    whole: float
    """Expected cost of the run."""
    whole_draws: Array
    """(DRAWS,) the same in each draw."""
    machine: Array
    """(DRAWS,) speed of a new run in each draw, relative to the median run."""

    def of(self, component: int, point: Point) -> Prediction:
        """The prediction for a function."""
        return self._prediction(float(self.inclusive[component]), self.draws[component], point)

    def of_whole(self, point: Point) -> Prediction:
        """The prediction for the whole run."""
        return self._prediction(self.whole, self.whole_draws, point)

    def _prediction(self, mean: float, draws: Array, point: Point) -> Prediction:
        mean = max(mean, 0.0)
        low, high = np.quantile(draws, [LOW, HIGH])
        new_low, new_high = np.quantile(draws * self.machine, [LOW, HIGH])
        limits = (min(low, mean), max(high, mean), min(new_low, mean), max(new_high, mean))
        return Prediction(dict(point), mean, *(float(limit) for limit in limits))


def learn_program(costs: ProgramCosts, preferred: Sequence[str] = ()) -> CostModel:
    """The cost model of a program from its executions.

    Features are those that all executions have and that vary; only the ``preferred`` ones if there are any, because a
    point asked for has no others.
    """
    features = run_features(costs.runs, preferred)
    accumulates = np.array([one.name == COLLECTING for one in costs.components], dtype=np.bool_)
    units = learn_units(costs.calls, costs.own, features, accumulates)
    laws, places = learn_counts(costs.calls, features)
    counts = tuple(laws[place] for place in places)
    strands, contexts = _strands(costs, units, counts, features)
    terms = [_cost_terms(strand, units) for strand in strands]
    monomials = tuple(dict.fromkeys(key for one in terms for key in one))
    number = {key: place for place, key in enumerate(monomials)}
    coefficients = np.zeros((len(strands), len(monomials)))
    for row, one in zip(coefficients, terms, strict=True):
        for key, coefficient in one.items():
            row[number[key]] = coefficient
    active = _active_shares(costs, contexts)
    return CostModel(costs, features, units, counts, strands, active, monomials, coefficients)


def run_features(runs: Sequence[Run], preferred: Sequence[str]) -> dict[str, Array]:
    """Features of the runs that all have and that vary, (R,) each; the preferred ones alone, if there are any."""
    names = [name for name in runs[0].features if all(name in run.features for run in runs)] if runs else []
    names = [name for name in names if name in preferred] or names
    columns = {name: np.array([run.features[name] for run in runs], dtype=np.float64) for name in names}
    return {name: column for name, column in columns.items() if np.ptp(column) > 0}


def _cost_terms(strand: Strand, units: UnitCosts) -> dict[Monomial, float]:
    """Cost of a strand in a run: its calls times its unit cost, and what occurs once."""
    unit, once = units.laws[strand.component].terms()
    out = product(strand.count.terms, {key: strand.unit * coefficient for key, coefficient in unit.items()})
    if once * strand.once:
        out[ONE] = out.get(ONE, 0.0) + once * strand.once
    return out


def _strands(
    costs: ProgramCosts, units: UnitCosts, counts: Sequence[CountLaw], features: Mapping[str, Array]
) -> tuple[tuple[Strand, ...], tuple[Array, NDArray[np.intp]]]:
    """Strands of all functions; share of its strand's cost and number of the strand of each context, (C,) each."""
    strand_of = np.zeros(costs.context.size, dtype=np.intp)
    shares = np.zeros(costs.context.size)
    order = np.argsort(costs.context, kind="stable")
    ends = np.searchsorted(costs.context[order], np.arange(len(costs.components) + 1))
    groups = []
    for f in range(len(costs.components)):
        contexts = order[ends[f] : ends[f + 1]]
        groups.append(_grouped(contexts, costs) if contexts.size else [])
    several = [(f, group) for f, of_one in enumerate(groups) if len(of_one) > 1 for group in of_one]
    sums = [costs.context_calls[:, group].sum(axis=1) for _, group in several]
    laws, places = learn_counts(np.array(sums).T if sums else np.zeros((len(costs.runs), 0)), features)
    split = iter(places)
    strands: list[Strand] = []
    for f, of_one in enumerate(groups):
        own_laws = [laws[next(split)] for _ in of_one] if len(of_one) > 1 else []
        if own_laws and not _agree(own_laws, counts[f], features):
            own_laws, of_one = [], [np.concatenate(of_one)]
        for law, group in zip(own_laws or [counts[f]], of_one or [np.zeros(0, dtype=np.intp)], strict=True):
            strand_of[group] = len(strands)
            shares[group] = _context_shares(costs, group)
            unit, once = _relative_unit(costs, f, group) if own_laws else (1.0, 1.0)
            strands.append(Strand(f, law, unit, once))
    return tuple(strands), (shares, strand_of)


def _grouped(contexts: NDArray[np.intp], costs: ProgramCosts) -> list[NDArray[np.intp]]:
    """Contexts of a function in groups whose calls are proportional; small groups join the largest."""
    if contexts.size == 1:
        return [contexts]
    number = proportional(costs.context_calls[:, contexts])
    cost = np.bincount(number, costs.context_own[:, contexts].sum(axis=0))
    small = cost < MIN_STRAND * max(float(cost.sum()), 1e-300)
    small[cost.argmax()] = False
    number = np.where(small[number], cost.argmax(), number)
    return [contexts[number == one] for one in np.unique(number)]


def _agree(laws: Sequence[CountLaw], whole: CountLaw, features: Mapping[str, Array]) -> bool:
    """Whether the laws of strands sum to the law of their function, at the largest values and at ten times these."""
    tops = {name: np.array([x.max(), 10.0 * x.max()]) for name, x in features.items()}

    def count(terms: TermSum) -> Array:
        keys = list(terms)
        return np.asarray(np.array([terms[key] for key in keys]) @ values(keys, tops, 2))

    each = [count(law.terms) for law in laws]
    expected = count(whole.terms)
    close = np.abs(np.sum(each, axis=0) - expected) <= AGREEMENT * np.abs(expected)
    return bool(close.all() and all((one >= 0).all() for one in each))


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


def _relative_unit(costs: ProgramCosts, component: int, group: NDArray[np.intp]) -> tuple[float, float]:
    """Unit cost of a strand over that of its function, and the strand's share of the function's calls."""
    calls, own = costs.context_calls[:, group].sum(axis=1), costs.context_own[:, group].sum(axis=1)
    used = (calls > 0) & (costs.calls[:, component] > 0) & (costs.own[:, component] > 0)
    if not used.any():
        return 1.0, 0.0
    unit = own[used] / calls[used] / (costs.own[used, component] / costs.calls[used, component])
    return float(np.median(unit)), float(np.median(calls[used] / costs.calls[used, component]))


def _active_shares(costs: ProgramCosts, contexts: tuple[Array, NDArray[np.intp]]) -> Incidence:
    """(F, K) share of each strand's cost that is spent while a function is active."""
    shares, strand_of = contexts
    rows = np.array([component for active in costs.active for component in active], dtype=np.intp)
    context = np.repeat(np.arange(len(costs.active)), [len(active) for active in costs.active])
    return Incidence.of(rows, strand_of[context], shares[context], len(costs.components))
