"""From choices to laws: intervals over all laws not told apart, slopes, verdict, words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perflaw.laws.build import rounded
from perflaw.laws.catalogue import LINEAR, POWER
from perflaw.laws.tree import Expression
from perflaw.learn.series.band import Fitted
from perflaw.learn.series.candidates import CONSTANTS, MODELS, Candidates
from perflaw.learn.series.choose import Choice, units
from perflaw.learn.series.law import distribution, mean_of, new_law
from perflaw.learn.series.learnt import Answers, Learnt, Plausible
from perflaw.learn.series.prepare import Rows
from perflaw.learn.series.series import Options
from perflaw.learn.series.verdict import RELEVANT_GROWTH, Evidence, judge
from perflaw.types import Alternative, Law, Noise

# ---- A plausible law in numbers and words: slope, coefficients, mean, distribution.


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

    @property
    def law(self) -> Fitted:
        """The law itself."""
        return self.plausible.law

    @property
    def family(self) -> str:
        """Name of its family."""
        return self.plausible.several.model.family.name

    @property
    def exponents(self) -> tuple[float | None, float | None]:
        """Exponents of x and of log x in the leading term; None for an exponential, which has none."""
        return self.law.model.family.exponents(float(self.law.theta[2]))

    @property
    def noise(self) -> Noise:
        """Its noise."""
        law = self.law
        return Noise("lognormal" if law.model.noise.log else "normal", float(np.sqrt(law.variance)))

    @property
    def mean(self) -> Expression:
        """Mean as an expression."""
        law = self.law
        parameter = rounded(float(law.model.family.printed(law.theta[2], law.range.top[0])))
        return mean_of(law.model, self.plausible.feature, self.intercept, self.coefficient, parameter)


def described(names: Sequence[str], several: Fitted, deltas: Sequence[float]) -> list[Described]:
    """Every law of a batch of one model; its feature (empty for a constant) and score difference, in its order."""
    slopes = np.stack(several.slope(), axis=-1).tolist()
    intercepts, coefficients = _coefficients(several)
    return [
        Described(Plausible(name, several, i), delta, tuple(slopes[i]), intercepts[i], coefficients[i])
        for i, (name, delta) in enumerate(zip(names, deltas, strict=True))
    ]


def alternatives(mine: Sequence[Described], delta: float) -> tuple[Alternative, ...]:
    """Other families (or features) than the first law's among plausible ones, the best variant of each, best first."""
    seen = {(mine[0].plausible.feature, mine[0].family)}
    out = []
    for one in mine[1:]:
        key = (one.plausible.feature, one.family)
        if key in seen or one.delta >= delta:
            continue
        seen.add(key)
        slope = {key[0]: one.slope[0]} if key[0] else {}
        out.append(Alternative(key[1], distribution(one.mean, one.noise), slope, one.delta))
    return tuple(out)


def _coefficients(several: Fitted) -> tuple[list[float], list[float]]:
    """Intercepts and coefficients of the means, for the exponent as it is printed."""
    theta = several.parameters
    if several.model.family.free:
        term, top = several.model.family, several.range.top
        printed = np.array([rounded(float(r)) for r in term.printed(theta[2], top)[:, 0]])[:, None]
        theta = (theta[0], theta[1], term.learnt(printed, top))
    smear = several.smear
    intercept, coefficient = several.model.coefficients(theta, several.range)
    return (intercept * smear)[:, 0].tolist(), (coefficient * smear)[:, 0].tolist()


# ---- How much growth the data leave open where a constant is the law: without that, "no dependence" is no finding.

FACTOR = 2.0
"""A feature that varied by less cannot make a constant doubtful where others varied more."""

Cell = tuple[int, int]
"""Series and feature."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Local exponents that one series allows; 0 is always among them."""

    low: Mapping[str, float]
    """Lower limits by feature."""
    high: Mapping[str, float]
    """Upper limits by feature."""
    widest: tuple[float, float]
    """The widest limits over the features that varied well."""

    @property
    def doubtful(self) -> bool:
        """A relevant growth is among them."""
        return max(self.widest[1], -self.widest[0]) >= RELEVANT_GROWTH


def allowed_growth(found: Candidates, members: list[int], options: Options) -> dict[int, Growth]:
    """Growth that the data of some series allow, from the power law where it can be fitted, else from the line."""
    limits: dict[Cell, tuple[float, float]] = {}
    for m in _slopes_from():
        cells = [cell for cell in _cells(found, members, m) if cell not in limits]
        if cells:
            places = np.array(cells)
            _, low, high = found.fitted(places[:, 0], places[:, 1], m, options.confidence).slope()
            limits.update(zip(cells, zip(low.tolist(), high.tolist(), strict=True), strict=True))
    return {b: _growth(found.rows[b], b, limits) for b in members}


def _slopes_from() -> Iterator[int]:
    """Models to take exponents from, the best first."""
    for family, intercept in ((POWER, False), (LINEAR, True)):
        yield from (m for m, k in enumerate(MODELS) if k.family is family and k.intercept == intercept)


def _cells(found: Candidates, members: list[int], m: int) -> Iterator[Cell]:
    """Series and features that a model could be fitted to."""
    fine = np.isfinite(found.fits[m].deviance).reshape(-1, found.features)
    varied = [b for b in members if np.ptp(found.rows[b].y) > 0]
    yield from ((b, f) for b in varied for f in range(len(found.rows[b].names)) if fine[b, f])


def _growth(row: Rows, b: int, limits: Mapping[Cell, tuple[float, float]]) -> Growth:
    ends = {name: limits.get((b, f), (0.0, 0.0)) for f, name in enumerate(row.names)}
    low = {name: min(end[0], 0.0) for name, end in ends.items()}
    high = {name: max(end[1], 0.0) for name, end in ends.items()}
    wide = _well_varied(row)
    widest = min((low[name] for name in wide), default=0.0), max((high[name] for name in wide), default=0.0)
    return Growth(low, high, widest)


def _well_varied(row: Rows) -> list[str]:
    """Features that varied by a factor of 2 at least, else all."""
    ends = {name: (float(x.min()), float(x.max())) for name, x in row.series.features.items()}
    return [name for name, (low, high) in ends.items() if high >= FACTOR * low and high > low] or list(ends)


def describe(
    found: Candidates, choices: Sequence[Choice], at: Sequence[Mapping[str, float]] | None, options: Options
) -> list[Learnt]:
    """Laws of a batch of series, in its order."""
    flat = [b for b, choice in enumerate(choices) if choice.model < CONSTANTS]
    growths = allowed_growth(found, flat, options)
    choices = [_settled(choice, growths.get(b)) for b, choice in enumerate(choices)]
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
    out = []
    for b, choice in enumerate(choices):
        mine = [laws[b][f, m] for f, m, _ in choice.plausible]
        law = _law(found, b, choice, mine, growths.get(b), options)
        learnt = Learnt(law, tuple(one.plausible for one in mine), found.rows[b])
        predictions = learnt.predict(at or []) if answers is None else answers.of(b)
        out.append(Learnt(replace(law, predictions=tuple(predictions)), learnt.plausible, learnt.rows))
    return out


def _settled(choice: Choice, growth: Growth | None) -> Choice:
    """Beside a constant that the data rule growth out for, only constants are plausible."""
    if growth is None or growth.doubtful:
        return choice
    return replace(choice, plausible=tuple(law for law in choice.plausible if law[1] < CONSTANTS))


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
    names = [found.rows[b].names[f] if m >= CONSTANTS else "" for b, f, _, _ in cells]
    for (b, f, _, _), law in zip(cells, described(names, several, [cell[2] for cell in cells]), strict=True):
        laws[b][f, m] = law
    return several


def _law(
    found: Candidates,
    b: int,
    choice: Choice,
    mine: list[Described],
    growth: Growth | None,
    options: Options,
) -> Law:
    row, chosen = found.rows[b], mine[0]
    fitted = chosen.plausible.law
    model, constant = fitted.model, growth is not None
    slope, low, high = _slopes(row, mine, growth)
    limits = growth.widest if growth else (min(low.values()), max(high.values()))
    verdict = judge(
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
    return new_law(
        row.series,
        row.runs,
        family=chosen.family,
        mean=chosen.mean,
        noise=chosen.noise,
        slopes=(slope, low, high),
        features=() if constant else (chosen.plausible.feature,),
        verdict=verdict,
        r2=_r2(found, b, choice),
        coefficient=chosen.coefficient,
        intercept=chosen.intercept if model.intercept else None,
        exponents=chosen.exponents,
        alternatives=alternatives(mine, options.delta),
    )


def _slopes(
    row: Rows, mine: list[Described], growth: Growth | None
) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Slope of the chosen law and limits over all plausible ones; of a constant: 0 and what the data allow."""
    if growth is not None:
        return dict.fromkeys(row.names, 0.0), dict(growth.low), dict(growth.high)
    feature = mine[0].plausible.feature
    same = [one.slope for one in mine if one.plausible.feature == feature]
    return (
        {feature: mine[0].slope[0]},
        {feature: min(one[1] for one in same)},
        {feature: max(one[2] for one in same)},
    )


def _r2(found: Candidates, b: int, choice: Choice) -> float | None:
    """1 − RSS/TSS on the scale of the noise; None where the response does not vary."""
    cell = b * found.features + choice.feature
    fit_ = found.fits[choice.model]
    flat = next(fit for fit in found.fits[:CONSTANTS] if fit.model.noise is fit_.model.noise)
    total = float(flat.rss[cell])
    if total <= float(flat.floor[cell]) ** 2:
        return None
    return float(1.0 - fit_.rss[cell] / total)
