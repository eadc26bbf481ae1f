"""From choices to laws: intervals over all laws not told apart, slopes, verdict, words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.answers import Answers
from perflaw.learn.laws.band import Fitted
from perflaw.learn.laws.candidates import CONSTANTS, MODELS, Candidates
from perflaw.learn.laws.choose import Choice, units
from perflaw.learn.laws.expression import distribution_text, mean_text, number
from perflaw.learn.laws.learnt import Learnt, Plausible
from perflaw.learn.laws.prepare import Rows
from perflaw.learn.laws.series import Options
from perflaw.learn.laws.verdict import Evidence, judge
from perflaw.types import Alternative, Law, Noise


@dataclass(frozen=True, slots=True)
class Described:
    """One plausible law of one series in numbers."""

    plausible: Plausible
    """The law."""
    delta: float
    """Score difference to the chosen law."""
    slope: tuple[float, float, float]
    """Local exponent at the largest x with its limits."""
    intercept: float
    """Intercept of the mean."""
    coefficient: float
    """Coefficient of the leading term of the mean."""


def describe(
    found: Candidates, choices: Sequence[Choice], at: Sequence[Mapping[str, float]] | None, options: Options
) -> list[Learnt]:
    """Laws of a batch of series, in its order."""
    wanted: dict[int, list[tuple[int, int, float, bool]]] = defaultdict(list)
    for b, choice in enumerate(choices):
        for place, (f, m, delta) in enumerate(choice.plausible):
            wanted[m].append((b, f, delta, place == 0))
    laws: list[dict[tuple[int, int], Described]] = [{} for _ in choices]
    answers = None if at is not None else Answers.beyond(found.rows)
    for m, cells in wanted.items():
        several = _numbers(found, m, cells, laws, options)
        if answers:
            answers.widen(several, cells)
    growth = _growth(found, [b for b, choice in enumerate(choices) if choice.model < CONSTANTS], options)
    out = []
    for b, choice in enumerate(choices):
        mine = [laws[b][f, m] for f, m, _ in choice.plausible]
        law = _law(found, b, choice, mine, growth.get(b), options)
        learnt = Learnt(law, tuple(one.plausible for one in mine), found.rows[b])
        predictions = learnt.predict(at or []) if answers is None else answers.of(b)
        out.append(Learnt(replace(law, predictions=tuple(predictions)), learnt.plausible, learnt.rows))
    return out


def _numbers(
    found: Candidates,
    m: int,
    cells: list[tuple[int, int, float, bool]],
    laws: list[dict[tuple[int, int], Described]],
    options: Options,
) -> Fitted:
    """Numbers of one model in all series where it is plausible, entered into ``laws``; and the model in them."""
    series, feature = np.array([cell[0] for cell in cells]), np.array([cell[1] for cell in cells])
    several = found.fitted(series, feature, m, options.confidence)
    slopes = np.stack(several.slope(), axis=-1).tolist()
    intercepts, coefficients = _coefficients(several)
    for i, (b, f, delta, _) in enumerate(cells):
        name = found.rows[b].names[f] if m >= CONSTANTS else ""
        law = Plausible(name, several, i)
        laws[b][f, m] = Described(law, delta, tuple(slopes[i]), intercepts[i], coefficients[i])
    return several


def _coefficients(several: Fitted) -> tuple[list[float], list[float]]:
    """Intercepts and coefficients of the means, for the exponent as it is printed."""
    theta = several.parameters
    if several.model.term.free:
        printed = np.array([float(number(b)) for b in several.theta[..., 2]])[:, None]
        theta = (theta[0], theta[1], printed)
    smear = several.smear
    intercept, coefficient = several.model.coefficients(theta, several.range)
    return (intercept * smear)[:, 0].tolist(), (coefficient * smear)[:, 0].tolist()


def _growth(found: Candidates, members: list[int], options: Options) -> dict[int, NDArray[np.float64]]:
    """For constant laws: limits of the local exponent that the data allow, (F, 2) a series.

    From the power law where it can be fitted, else from the line.
    """
    features = found.features
    out = {b: np.zeros((features, 2)) for b in members}
    left = {(b, f) for b in members for f in range(features) if found.rows[b].names}
    for name, intercept in (("power", False), ("linear", True)):
        for m, model in enumerate(MODELS):
            if model.term.name != name or model.intercept != intercept:
                continue
            cells = sorted(c for c in left if np.isfinite(found.fits[m].deviance[c[0] * features + c[1]]))
            if not cells:
                continue
            places = np.array(cells)
            _, low, high = found.fitted(places[:, 0], places[:, 1], m, options.confidence).slope()
            for (b, f), limits in zip(cells, zip(low.tolist(), high.tolist(), strict=True), strict=True):
                out[b][f] = limits
            left -= set(cells)
    return out


def _law(
    found: Candidates,
    b: int,
    choice: Choice,
    mine: list[Described],
    growth: NDArray[np.float64] | None,
    options: Options,
) -> Law:
    row, chosen = found.rows[b], mine[0]
    fitted = chosen.plausible.law
    model, constant = fitted.model, growth is not None
    slope, low, high = _slopes(row, mine, growth)
    wide = _well_varied(row) if constant else list(low)
    limits = (min((low[name] for name in wide), default=0.0), max((high[name] for name in wide), default=0.0))
    verdict, reason = judge(
        Evidence(
            established=choice.established,
            constant=constant,
            varies=bool(np.ptp(row.y) > 1e-12 * np.abs(row.y).max()),
            units=units(row, None if constant else choice.feature),
            runs=row.runs,
            sizes=int(found.sizes[b].max() if constant else found.sizes[b, choice.feature]) if row.names else 1,
            slopes=limits,
            feature=chosen.plausible.feature or (row.names[0] if row.names else ""),
        )
    )
    scale = float(np.sqrt(fitted.variance))
    mean, expression = _words(chosen)
    exponent = float(fitted.theta[2]) if model.term.free else model.term.exponent
    return Law(
        family=model.term.name,
        expression=expression,
        mean=mean,
        features=() if constant else (chosen.plausible.feature,),
        slope=slope,
        slope_low=low,
        slope_high=high,
        noise=Noise("lognormal" if model.noise.log else "normal", scale),
        n=row.series.y.size,
        runs=row.runs,
        r2=_r2(found, b, choice),
        verdict=verdict,
        reason=reason,
        exponent=exponent,
        log_exponent=model.term.log_exponent,
        coefficient=chosen.coefficient,
        intercept=chosen.intercept if model.intercept else None,
        range={name: (float(x.min()), float(x.max())) for name, x in row.series.features.items()},
        alternatives=_alternatives(mine, options),
    )


def _well_varied(row: Rows) -> list[str]:
    """Features that vary by a factor of 2 at least, else all: one that hardly moved cannot make a constant doubtful."""
    ends = {name: (float(x.min()), float(x.max())) for name, x in row.series.features.items()}
    return [name for name, (low, high) in ends.items() if high >= 2.0 * low and high > low] or list(ends)


def _slopes(
    row: Rows, mine: list[Described], growth: NDArray[np.float64] | None
) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Slope of the chosen law and limits over all plausible ones; of a constant: 0 and what the data allow."""
    if growth is not None:
        zero = dict.fromkeys(row.names, 0.0)
        limits = [dict(zip(row.names, side, strict=True)) for side in growth[: len(row.names)].T.tolist()]
        # The constant itself is what was chosen: its exponent is among those allowed.
        low = {name: min(value, 0.0) for name, value in limits[0].items()} if row.names else {}
        high = {name: max(value, 0.0) for name, value in limits[1].items()} if row.names else {}
        return zero, low, high
    feature = mine[0].plausible.feature
    same = [one.slope for one in mine if one.plausible.feature == feature]
    return (
        {feature: mine[0].slope[0]},
        {feature: min(one[1] for one in same)},
        {feature: max(one[2] for one in same)},
    )


def _words(one: Described) -> tuple[str, str]:
    """Mean and whole expression in the annotation language."""
    law = one.plausible.law
    mean = mean_text(law.model, one.plausible.feature, one.intercept, one.coefficient, float(law.theta[2]))
    return mean, distribution_text(law.model, mean, float(np.sqrt(law.variance)))


def _alternatives(mine: list[Described], options: Options) -> tuple[Alternative, ...]:
    """Other families (or features) among the plausible laws, the best variant of each, best first."""
    seen = {(mine[0].plausible.feature, mine[0].plausible.several.model.term.name)}
    out = []
    for one in mine[1:]:
        key = (one.plausible.feature, one.plausible.several.model.term.name)
        if key in seen or one.delta >= options.delta:
            continue
        seen.add(key)
        slope = {key[0]: one.slope[0]} if key[0] else {}
        out.append(Alternative(key[1], _words(one)[1], slope, one.delta))
    return tuple(out)


def _r2(found: Candidates, b: int, choice: Choice) -> float | None:
    """1 − RSS/TSS on the scale of the noise; None where the response does not vary."""
    cell = b * found.features + choice.feature
    fit_ = found.fits[choice.model]
    flat = next(fit for fit in found.fits[:CONSTANTS] if fit.model.noise is fit_.model.noise)
    total = float(flat.rss[cell])
    if total <= float(flat.floor[cell]) ** 2:
        return None
    return float(1.0 - fit_.rss[cell] / total)
