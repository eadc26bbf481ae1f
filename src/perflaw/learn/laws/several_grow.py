"""Which features the law of a series needs: one more at a time, each established by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from perflaw.learn.laws.learnt import Learnt
from perflaw.learn.laws.noise import LOGNORMAL, NORMAL
from perflaw.learn.laws.prepare import Rows
from perflaw.learn.laws.series import Array, Options
from perflaw.learn.laws.several_final import Candidate, best, fitted, independent
from perflaw.learn.laws.several_fit import sample_of
from perflaw.learn.laws.several_gate import added, confounded, leftovers, pair
from perflaw.learn.laws.several_product import products
from perflaw.learn.laws.several_search import search, worth
from perflaw.learn.laws.several_terms import ONE

THINNED = 160
"""Rows a search looks at; the laws it finds are fitted to all."""

TRIED = 3
"""Features that are tried at each step, the clearest."""

MOST_FEATURES = 4
"""Features of a law at most."""

KEEP, PRODUCTS = 10, 8
"""Sums and products a search hands on to be fitted to all rows."""

MANY = 300
"""From so many rows on few of them are near the best: half as many do."""


@dataclass(frozen=True, slots=True)
class State:
    """A law on the way: what it needs to be compared by."""

    features: tuple[int, ...]
    """Places of its features."""
    deviance: float
    """−2 log likelihood on all rows."""
    parameters: int
    """How many were learnt."""
    residual: Array
    """Residuals on the noise's scale, (n,)."""
    finalists: tuple[Candidate, ...] = ()
    """The law and its rivals with the same features, best first; empty for the law of one feature."""


def grown(learnt: Sequence[Learnt], options: Options) -> State | None:
    """The law of at least two features that the responses establish, or None.

    ``learnt`` are laws of at most one feature, smooth and piecewise: what is added has to stand against all of them.
    """
    rows = learnt[0].rows
    alone = [_alone(one) for one in learnt]
    start = min(alone, key=lambda one: one.deviance + one.parameters * np.log(rows.y.size))
    return grown_from(rows, start, options, [one for one in alone if one is not start])


def several_promising(rows: Rows, strongest: int) -> bool:
    """Whether a parabola of the strongest feature, in logarithms where there are, leaves what others explain.

    It stands in for the law of that feature, to decide at a tenth of the cost whether more features are looked for
    before it is learnt. Where it errs they still are afterwards.
    """
    x, others = rows.x[strongest], [f for f in range(len(rows.x)) if f != strongest]
    u = np.log(x) if (x > 0).all() else x / max(float(np.abs(x).max()), 1e-300)
    response = rows.log_y if rows.positive else rows.y
    basis = np.linalg.qr(np.stack([np.ones_like(u), u, u * u]).T)[0]
    return bool(leftovers(response - basis @ (basis.T @ response), rows.x[others], x[None]))


def unaided(rows: Rows, strongest: int, options: Options) -> State | None:
    """The same where no law of one feature is known yet: the best simple one of the strongest feature stands in."""
    alone = _with(rows, (strongest,))
    return None if alone is None else grown_from(rows, replace(alone, finalists=()), options)


def grown_from(rows: Rows, start: State, options: Options, rivals: Sequence[State] = ()) -> State | None:
    """The same from the law of at most one feature, as a state, and its rivals."""
    state = _second(rows, start, options, rivals) if start.features else _pair(rows, start, options)
    if state is None:
        return None
    while len(state.features) < MOST_FEATURES:
        longer = _longer(rows, state, options)
        if longer is None:
            break
        state = longer
    return _needed(rows, state, options)


def _alone(learnt: Learnt) -> State:
    """The law of at most one feature as it was learnt."""
    rows, law = learnt.rows, learnt.law
    noise = LOGNORMAL if law.noise.distribution == "lognormal" else NORMAL
    mean = learnt.mean(dict(zip(rows.names, rows.x, strict=False)) or {"": rows.y})
    if noise.log:
        residual = rows.log_y - np.log(np.maximum(mean, 1e-300)) + law.noise.scale**2 / 2.0
        residual = residual - float(rows.w @ residual) / rows.y.size
    else:
        residual = rows.y - mean
    sample = sample_of(rows, list(range(len(rows.x))))
    deviance = float(sample.deviance(noise, np.array(float(rows.w @ residual**2))))
    parameters = 1 + (law.intercept is not None) + (law.family == "power") + 3 * len(law.breakpoints)
    return State(tuple(rows.names.index(name) for name in law.features), deviance, parameters, residual)


def _second(rows: Rows, start: State, options: Options, rivals: Sequence[State]) -> State | None:
    """Two features, the second one established against all laws of the first: smooth, piecewise, and sums of its terms."""
    state = _longer(rows, start, options)
    if state is None:
        return None
    (feature,) = set(state.features) - set(start.features)
    sums = _with(rows, start.features)
    for less in (*rivals, *([sums] if sums else [])):
        same = less.features == start.features
        if same and not _established(rows, less, state, feature, len(rows.x) - 1, options):
            return None
    return state


def _longer(rows: Rows, state: State, options: Options) -> State | None:
    """The state with one feature more, where one is established."""
    others = [f for f in range(len(rows.x)) if f not in state.features]
    clear = [others[i] for i in leftovers(state.residual, rows.x[others], rows.x[list(state.features)])][:TRIED]
    tries = [(one, f) for f in clear if (one := _with(rows, (*state.features, f))) is not None]
    if not tries:
        return None
    longer, f = min(tries, key=lambda pair: pair[0].finalists[0].score)
    return longer if _established(rows, state, longer, f, len(others), options) else None


def _established(rows: Rows, less: State, more: State, feature: int, tried: int, options: Options) -> bool:
    """What a feature adds to a law is no luck."""
    chosen = more.finalists[0]
    whole = sample_of(rows, list(more.features))
    independent_rows = independent(whole, rows, less.residual, feature)
    if any(confounded(less.residual, rows.x[f], rows.x[feature]) for f in less.features):
        return False
    extra = max(more.parameters - less.parameters, 1)
    p = added(less.deviance, more.deviance, rows.y.size, independent_rows, chosen.sum.parameters, extra, tried)
    gain = worth(whole) * (less.deviance - more.deviance)
    return p <= options.alpha and gain > extra * np.log(max(independent_rows, 1.0))


def _pair(rows: Rows, flat: State, options: Options) -> State | None:
    """Two features that are established together where none is alone."""
    if rows.clusters is not None:
        return None
    p, both = pair(rows.between, options.permutations)
    if p > options.alpha:
        return None
    state = _with(rows, both)
    if state is None:
        return None
    for f in both:
        alone = _with(rows, tuple(g for g in both if g != f)) or flat
        if not _established(rows, alone, state, f, len(rows.x) - 1, options):
            return None
    return state


def _needed(rows: Rows, state: State, options: Options) -> State:
    """The state without features that what came later made superfluous."""
    for f in state.features:
        if len(state.features) < 3:
            break
        rest = tuple(g for g in state.features if g != f)
        less = _with(rows, rest)
        if less is not None and not _established(rows, less, state, f, len(rows.x) - len(rest), options):
            state = less
    return state


def _with(rows: Rows, features: tuple[int, ...]) -> State | None:
    """Best laws of exactly some features."""
    places = sorted(features)
    part, whole = sample_of(rows, places, THINNED), sample_of(rows, places)
    names = tuple(rows.names[f] for f in places)
    less = 1 + (rows.y.size >= MANY) + (len(places) == 1)
    found = [one for one in search(part, rows.positive, 4 * KEEP) if _all_used(one.terms)][: KEEP // less]
    laws = [fitted(whole, names, one.terms, one.noise, (), one.coefficients) for one in found]
    if rows.positive:
        near = products(whole, PRODUCTS // less)
        laws += [fitted(whole, names, (one.term,), LOGNORMAL, one.free) for one in near]
        laws += [fitted(whole, names, (one.term,), NORMAL, one.free) for one in near[:1]]
    ranked = best(laws)
    if not ranked:
        return None
    first = ranked[0]
    return State(tuple(places), first.deviance, first.sum.parameters, first.residual, tuple(ranked))


def _all_used(terms: Sequence[tuple[object, ...]]) -> bool:
    """Every feature is in some term."""
    return all(any(factor is not ONE for factor in column) for column in zip(*terms, strict=True))
