"""Which features the law of a series needs: one more at a time, each established by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, stdtr

from perflaw.laws.catalogue import FAMILIES, POWER
from perflaw.learn.series.candidates import LEAST
from perflaw.learn.series.feature_terms import ONE, Factor, Sample, Term, factor_of, sample_of, solve, surprise
from perflaw.learn.series.learnt import Learnt
from perflaw.learn.series.model import LOGNORMAL, NORMAL
from perflaw.learn.series.prepare import Rows, Units, orders, unit
from perflaw.learn.series.ranks import ranks
from perflaw.learn.series.series import Array, Options
from perflaw.learn.series.term_search import Candidate, best, fitted, independent, search, worth

# ---- Tests whether a law leaves structure that another feature explains, and whether a feature is more than a lucky
# find.
#
# Three tests. ``leftovers`` is lenient and cheap: which features a law's residuals follow. ``pair`` is the null
# control
# of laws of two features where no single one is established: permutations of the responses, the largest R² of all
# pairs
# (Westfall & Young 1993, §2). ``added`` is the one that decides: the F test of what a feature adds, its error shared
# by
# all features and shapes that were tried (Bonferroni).

SHAPES = 12.0
"""Independent shapes a feature is tried in: its own and its products with others."""

LENIENT, LENIENT_MANY, MANY_ROWS = 0.3, 0.05, 100
"""Error of the cheap test over all features; the second one from so many rows on."""

CORRELATED, CONFIRMED, FEWEST = 0.3, 0.01, 20
"""Rank correlation from which one feature may stand for another's shape, p that rules that out, fewest rows."""

FEW = 20
"""Up to so many rows the cheap test cannot rule the clearest feature out."""

MOST = 300
"""Rows the cheap test and the one of pairs look at."""


def leftovers(residual: Array, x: Array, known: Array) -> list[int]:
    """Places of features x (F, n) that residuals (n,) follow, the clearest first.

    What the law's own features known (K, n) say of them is taken out before, for they may be correlated.
    """
    if residual.size < 4 or not len(x):
        return []
    keep = some(residual.size)
    residual, x, known = residual[keep], x[:, keep], known[:, keep]
    n = residual.size
    basis = np.linalg.qr(np.stack([np.ones(n), *unit(_logs(known)), *unit(ranks(known))]).T)[0]
    sides = [_beside(ranks(residual), basis), _beside(residual, basis)]
    of_ranks, *others = np.split(_beside(np.concatenate([ranks(x), _scaled(x), _logs(x)]), basis), 3)
    r = np.abs(of_ranks @ sides[0])
    for columns in others:
        r = np.maximum(r, np.abs(columns @ sides[1]))
    freedom = max(n - basis.shape[1] - 1, 1)
    t = r * np.sqrt(freedom / np.maximum(1.0 - r**2, 1e-12))
    p = 3.0 * 2.0 * stdtr(freedom, -t)
    order = [int(f) for f in np.argsort(p, kind="stable")]
    error = LENIENT_MANY if n >= MANY_ROWS else LENIENT
    return [f for i, f in enumerate(order) if p[f] * len(x) <= error or (i == 0 and n <= FEW)]


def _beside(rows: Array, basis: Array) -> Array:
    """Rows without their part along a basis, of unit length."""
    centred = unit(rows)
    rest = centred - (centred @ basis) @ basis.T
    # What is left by rounding alone is no variation.
    left = np.sqrt((rest**2).sum(axis=-1, keepdims=True))
    return np.where(left > 1e-6, rest / np.where(left > 1e-6, left, 1.0), 0.0)


def _scaled(x: Array) -> Array:
    top = np.abs(x).max(axis=-1, keepdims=True)
    return x / np.where(top > 0, top, 1.0)


def _logs(x: Array) -> Array:
    """Logarithms; where a feature is not positive, itself."""
    positive = (x > 0).all(axis=-1, keepdims=True)
    return np.where(positive, np.log(np.where(positive, x, 1.0)), _scaled(x))


def some(n: int) -> NDArray[np.intp]:
    """Places of at most MOST of n rows, drawn by a generator seeded by n alone."""
    return np.arange(n) if n <= MOST else np.sort(np.random.default_rng([n, MOST]).permutation(n)[:MOST])


def added(before: float, after: float, rows: float, worth: float, parameters: int, more: int, tried: int) -> float:
    """P of the drop in deviance from one law to one with another feature.

    ``rows`` are those of the deviances, ``worth`` independent ones among them, ``parameters`` of the larger law,
    ``more`` of them new, ``tried`` features among which this one was the best.

    >>> added(100.0, 98.0, 20, 20, 2, 1, 9), round(added(100.0, 80.0, 20, 20, 2, 1, 1), 3)
    (1.0, 0.0)
    """
    freedom = worth - parameters
    if freedom < 1 or after >= before:
        return 1.0
    ratio = np.exp(min((before - after) / rows, 600.0)) - 1.0
    p = float(fdtrc(max(more, 1), freedom, ratio * freedom / max(more, 1)))
    return min(p * SHAPES * max(tried, 1), 1.0)


def confounded(residual: Array, x: Array, z: Array) -> bool:
    """Residuals (n,) follow a feature z (n,) only as far as they follow x (n,), in whatever shape.

    A law of x with the wrong shape leaves residuals that a feature correlated with x seems to explain. Within bins of
    x that is gone: what z really adds is still there. Few rows are only asked where x and z are correlated.
    """
    keep = some(residual.size)
    residual, x, z = residual[keep], x[keep], z[keep]
    n = residual.size
    if n < FEWEST or (n < MANY_ROWS and np.abs(unit(ranks(x)) @ unit(ranks(z))) < CORRELATED):
        return False
    bins = min(n // 5, 20)
    group = ((ranks(x) - 1.0) * bins / n).astype(np.intp)
    size = np.bincount(group, minlength=bins).clip(1)
    top = max(float(np.abs(z).max()), 1e-300)
    sides = [unit(row - (np.bincount(group, row, bins) / size)[group]) for row in (residual, ranks(residual))]
    columns = [unit(row - (np.bincount(group, row, bins) / size)[group]) for row in (ranks(z), z / top)]
    r = max(abs(float(left @ right)) for left in sides for right in columns)
    freedom = n - int(np.unique(group).size) - 1
    p = 4.0 * 2.0 * float(stdtr(freedom, -r * np.sqrt(freedom / max(1.0 - r**2, 1e-12))))
    return p > CONFIRMED


def pair(units: Units, count: int) -> tuple[float, tuple[int, int]]:
    """P of the pair of features (x (F, n)) that explains most, and that pair; logarithms and values are tried."""
    n = units.y.size
    if n < 6 or len(units.x) < 2:
        return 1.0, (0, 0)
    keep = some(n)
    x, sides = units.x[:, keep], [(units.x[:, keep], units.y[keep])]
    if units.log_y is not None and (x > 0).all():
        sides.append((np.log(x), units.log_y[keep]))
    order = orders(keep.size, count)
    best, where, reached = np.full(1, -1.0), (0, 0), np.full(len(order), -1.0)
    for columns, response in sides:
        left, right = unit(columns), unit(response)
        observed, places = _explained(left, right[None])
        permuted, _ = _explained(left, right[order])
        reached = np.maximum(reached, permuted)
        if observed[0] > best[0]:
            best, where = observed, (int(places[0][0]), int(places[1][0]))
    p = (1.0 + float((reached >= best[0] * (1.0 - 1e-9)).sum())) / (1.0 + reached.size)
    return (p, where) if best[0] > 0 else (1.0, where)


def _explained(left: Array, right: Array) -> tuple[Array, tuple[Array, Array]]:
    """Largest R² of two columns (F, n) for each response (P, n), and which they are."""
    r, between = right @ left.T, left @ left.T
    i, j = np.triu_indices(len(left), 1)
    rho = between[i, j]
    fine = np.abs(rho) < 0.99
    square = (r[:, i] ** 2 + r[:, j] ** 2 - 2.0 * rho * r[:, i] * r[:, j]) / np.where(fine, 1.0 - rho**2, 1.0)
    square = np.where(fine, square, 0.0)
    best = square.argmax(axis=1)
    return square[np.arange(len(right)), best], (i[best], j[best])


# ---- Power products ``c·x^a·z^b``: exponents learnt, and snapped to plain ones where the data allow.
#
# Under multiplicative noise a product is a straight line in logarithms, so one Gram matrix serves every way of
# snapping.

SNAPS = tuple(factor_of(one.shape, one.snap) for one in FAMILIES if one.snap is not None)
"""Plain factors an exponent may be snapped to."""

NEAR, NEAR_ERRORS = 0.35, 3.5
"""How far from the learnt exponent: absolutely, and in its standard errors."""

LEAST_ERROR = 0.02
"""Standard error that is taken at least: the noise may not be that of the straight line in logarithms."""


@dataclass(frozen=True, slots=True)
class Product:
    """A product to fit."""

    term: Term
    """Its factors; those with a free exponent at their estimate."""
    free: tuple[int, ...]
    """Features whose exponent is learnt."""
    score: float
    """Rough score; smaller is better."""


def products(sample: Sample, most: int) -> list[Product]:
    """The best few of the product with all exponents learnt and its snapped variants; none where a feature is not positive."""
    count = len(sample.x)
    if (sample.x <= 0).any() or count > 6:
        return []
    z = np.stack([np.ones(sample.y.size), *np.log(sample.x / sample.top[:, None])])
    gram = (z * sample.w) @ z.T
    right = (z * sample.w) @ sample.log_y
    estimate = solve(gram[None], right[None])[0]
    residual = sample.log_y - estimate @ z
    freedom = max(sample.y.size - len(z), 1)
    scale = sample.y.size / sample.worth * float(sample.w @ residual**2) / freedom
    error = np.sqrt(np.maximum(np.diag(np.linalg.pinv(gram)) * scale, LEAST_ERROR**2))
    exponents = np.clip(estimate[1:], -8.0, 8.0)
    options = [_options(f, float(exponents[f]), float(error[1 + f]), sample) for f in range(count)]
    out = []
    for choice in product(*options):
        free = tuple(f for f, factor in enumerate(choice) if factor is None)
        fixed = [_shift(sample, f, factor) for f, factor in enumerate(choice) if factor is not None]
        kept = [0, *(1 + f for f in free)]
        target = sample.log_y - sum(fixed, np.zeros(sample.y.size))
        part = solve(gram[np.ix_(kept, kept)][None], ((z[kept] * sample.w) @ target)[None])[0]
        rss = max(float(sample.w @ (target - part @ z[kept]) ** 2), 1e-16)
        learnt = dict(zip(free, np.clip(part[1:], -8.0, 8.0).tolist(), strict=True))
        term = tuple(g or Factor(learnt[f]) for f, g in enumerate(choice))
        cost = len(free) * (np.log(max(sample.worth, 1.0)) + LEAST) + surprise(term)
        out.append(Product(term, free, float(sample.worth * np.log(rss) + cost)))
    return sorted(out, key=lambda one: one.score)[:most]


def _options(f: int, exponent: float, error: float, sample: Sample) -> list[Factor | None]:
    """A free exponent, and the two nearest plain factors."""
    low = float(sample.bottom[f])
    near: list[tuple[float, Factor]] = []
    for snap in SNAPS:
        if snap.log_exponent and not (low >= 1.0 and sample.top[f] > 1.0):
            continue
        local = (
            float(np.mean(snap.local_exponent(sample.x[f])))
            if not snap.log_exponent
            else _mean_slope(snap, sample.x[f])
        )
        away = abs(exponent - local)
        if away <= min(NEAR, NEAR_ERRORS * error) or away <= 0.05:
            near.append((away, snap))
    return [None, *(snap for _, snap in sorted(near, key=lambda pair: pair[0])[:2])]


def _mean_slope(factor: Factor, x: np.ndarray) -> float:
    """Slope of log factor over log x."""
    u = np.log(x)
    v = factor.exponent * u + factor.log_exponent * np.log(np.log(np.maximum(x, 1.0 + 1e-3)))
    u = u - u.mean()
    return float(u @ v / max(float(u @ u), 1e-300))


def _shift(sample: Sample, f: int, factor: Factor) -> np.ndarray:
    """Logarithm of a fixed factor over its value at the top."""
    return np.log(np.maximum(factor.ratio(sample.x[f], sample.top[f]), 1e-300))


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


def select_features(learnt: Sequence[Learnt], options: Options) -> State | None:
    """The law of at least two features that the responses establish, or None.

    ``learnt`` are laws of at most one feature, smooth and piecewise: what is added has to stand against all of them.
    """
    rows = learnt[0].rows
    alone = [_alone(one) for one in learnt]
    start = min(alone, key=lambda one: one.deviance + one.parameters * np.log(rows.y.size))
    return _forward_select(rows, start, options, [one for one in alone if one is not start])


def others_promising(rows: Rows, strongest: int) -> bool:
    """Whether a parabola of the strongest feature, in logarithms where there are, leaves what others explain.

    It stands in for the law of that feature, to decide at a tenth of the cost whether more features are looked for
    before it is learnt. Where it errs they still are afterwards.
    """
    x, others = rows.x[strongest], [f for f in range(len(rows.x)) if f != strongest]
    u = np.log(x) if (x > 0).all() else x / max(float(np.abs(x).max()), 1e-300)
    response = rows.log_y if rows.positive else rows.y
    basis = np.linalg.qr(np.stack([np.ones_like(u), u, u * u]).T)[0]
    return bool(leftovers(response - basis @ (basis.T @ response), rows.x[others], x[None]))


def select_from(rows: Rows, strongest: int, options: Options) -> State | None:
    """The law of at least two features, selected before any law of one feature is known, or None.

    The best simple law of the strongest feature is the start.
    """
    alone = _with(rows, (strongest,))
    return None if alone is None else _forward_select(rows, replace(alone, finalists=()), options)


def _forward_select(rows: Rows, start: State, options: Options, rivals: Sequence[State] = ()) -> State | None:
    """Forward selection from a law of at most one feature; None where no second feature is established.

    It adds the feature that improves the law most while that is established, then drops features no longer needed.
    ``rivals`` are other laws of the same feature, which the second feature has to improve as well.
    """
    state = _second(rows, start, options, rivals) if start.features else _pair(rows, start, options)
    if state is None:
        return None
    while len(state.features) < MOST_FEATURES:
        longer = _add_feature(rows, state, options)
        if longer is None:
            break
        state = longer
    return _prune(rows, state, options)


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
    parameters = 1 + (law.intercept is not None) + (law.family == POWER.name) + 3 * len(law.breakpoints)
    return State(tuple(rows.names.index(name) for name in law.features), deviance, parameters, residual)


def _second(rows: Rows, start: State, options: Options, rivals: Sequence[State]) -> State | None:
    """Two features, the second one established against all laws of the first: smooth, piecewise, and sums of its terms."""
    state = _add_feature(rows, start, options)
    if state is None:
        return None
    (feature,) = set(state.features) - set(start.features)
    sums = _with(rows, start.features)
    for less in (*rivals, *([sums] if sums else [])):
        same = less.features == start.features
        if same and not _established(rows, less, state, feature, len(rows.x) - 1, options):
            return None
    return state


def _add_feature(rows: Rows, state: State, options: Options) -> State | None:
    """The law with the feature added that improves it most; None where no feature is established."""
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


def _prune(rows: Rows, state: State, options: Options) -> State:
    """The law without the features that are no longer needed beside those added later."""
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
