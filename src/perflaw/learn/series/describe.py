"""From chosen laws of one feature to claims: expressions, intervals over all plausible laws, slopes, verdicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from perflaw.laws.build import combination, rounded
from perflaw.laws.catalogue import CONSTANT, LINEAR, POWER
from perflaw.laws.tree import Expression, Name
from perflaw.learn.series.candidates import CONSTANTS, MODELS, Candidates, Choice
from perflaw.learn.series.law import RELEVANT_GROWTH, Evidence, Slopes, distribution, judge, new_law, ranges
from perflaw.learn.series.learnt import BatchPredictions, Learnt, PredictionPoints, SingleFeatureLaw
from perflaw.learn.series.model import FittedModel, Model
from perflaw.learn.series.series import Options, Series
from perflaw.types import Alternative, Law, Noise

VARIED = 2.0
"""A feature that varied by a smaller factor cannot make a constant doubtful if others varied more."""


@dataclass(frozen=True, slots=True)
class Described:
    """One plausible law of one series with its slope and coefficients."""

    predictor: SingleFeatureLaw
    """The law."""
    delta: float
    """Score difference to the chosen law."""
    slope: tuple[float, float, float]
    """Local exponent at the largest x with its limits."""
    intercept: float
    """Intercept of the mean; 0 without one."""
    coefficient: float
    """Coefficient of the leading term of the mean."""
    learnt: float
    """Parameter of the family that is learnt; 0 without one."""
    printed: float
    """The same as it is printed."""
    scale: float
    """Standard deviation of a row about the mean, on the noise's scale."""

    @property
    def feature(self) -> str:
        """Its feature; empty for a constant."""
        return self.predictor.feature

    @property
    def fitted(self) -> FittedModel:
        """The fit of this law."""
        return self.predictor.fitted

    @property
    def model(self) -> Model:
        """Its model."""
        return self.predictor.batch.model

    @property
    def family(self) -> str:
        """Name of its family."""
        return self.model.family.name

    @property
    def exponents(self) -> tuple[float | None, float | None]:
        """Exponents of x and of log x in the leading term; None for an exponential, which has none."""
        return self.model.family.exponents(self.learnt)

    @property
    def noise(self) -> Noise:
        """Scatter of rows about the mean."""
        return Noise("lognormal" if self.model.noise.log else "normal", self.scale)

    @property
    def mean(self) -> Expression:
        """Mean as an expression such as ``53350.3 - 2.1*s + 0.12*s*log(s)``."""
        family = self.model.family
        if family is CONSTANT:
            return combination([(self.coefficient, ())])
        term = (self.coefficient, family.factors(Name(self.feature), self.printed))
        return combination([(self.intercept, ()), term] if self.model.intercept else [term])

    def law(self, series: Series, runs: int, **fields: Any) -> Law:
        """The claim of this law about a series of ``runs`` runs; ``fields`` are those that depend on other laws."""
        return new_law(
            series,
            runs,
            family=self.family,
            mean=self.mean,
            noise=self.noise,
            features=self.predictor.features,
            coefficient=self.coefficient,
            intercept=self.intercept if self.model.intercept else None,
            exponents=self.exponents,
            **fields,
        )


def describe_model(names: Sequence[str], batch: FittedModel, deltas: Sequence[float]) -> list[Described]:
    """Every law of one model fitted to a batch, with its feature (empty for a constant) and score difference."""
    slopes = np.stack(batch.slope(), axis=-1).tolist()
    theta, family = batch.parameters, batch.model.family
    learnt = printed = theta[2][:, 0].tolist()
    if family.free:
        # Coefficients fit the exponent as it is printed.
        top = batch.range.top
        printed = [rounded(parameter) for parameter in family.printed(theta[2], top)[:, 0].tolist()]
        theta = (theta[0], theta[1], family.learnt(np.array(printed)[:, None], top))
    coefficients = ((one * batch.smearing)[:, 0].tolist() for one in batch.model.coefficients(theta, batch.range))
    scales = np.sqrt(batch.variance).tolist()
    return [
        Described(SingleFeatureLaw(name, batch, i), delta, tuple(slope), *numbers)
        for i, (name, delta, slope, *numbers) in enumerate(
            zip(names, deltas, slopes, *coefficients, learnt, printed, scales, strict=True)
        )
    ]


def alternatives(laws: Sequence[Described], delta: float) -> tuple[Alternative, ...]:
    """Other families (or features) than the first law's among plausible ones, the best variant of each, best first."""
    seen = {(laws[0].feature, laws[0].family)}
    out = []
    for law in laws[1:]:
        key = (law.feature, law.family)
        if key not in seen and law.delta < delta:
            seen.add(key)
            slope = {law.feature: law.slope[0]} if law.feature else {}
            out.append(Alternative(law.family, distribution(law.mean, law.noise), slope, law.delta))
    return tuple(out)


def slopes_of(feature: str, laws: Sequence[Described]) -> Slopes:
    """Slope of the first law and its limits over all of them."""
    slopes = [law.slope for law in laws]
    return (
        {feature: slopes[0][0]},
        {feature: min(low for _, low, _ in slopes)},
        {feature: max(high for _, _, high in slopes)},
    )


@dataclass(frozen=True, slots=True)
class Growth:
    """Local exponents that the data of a constant law allow; 0 is always among them.

    Without an upper limit on the growth, "no dependence" is no finding.
    """

    low: Mapping[str, float]
    """Lower limits by feature."""
    high: Mapping[str, float]
    """Upper limits by feature."""
    widest: tuple[float, float]
    """The widest limits over the features that varied by a factor of 2 at least, or over all if none did."""

    @property
    def doubtful(self) -> bool:
        """A relevant growth is among them."""
        return max(self.widest[1], -self.widest[0]) >= RELEVANT_GROWTH


def allowed_growth(candidates: Candidates, members: Sequence[int], options: Options) -> dict[int, Growth]:
    """Growth that some series allow, from the power law if it can be fitted, else from the straight line."""
    limits: dict[tuple[int, int], tuple[float, float]] = {}
    varied = [b for b in members if np.ptp(candidates.rows[b].y) > 0]
    for family, intercept in ((POWER, False), (LINEAR, True)):
        for m, model in enumerate(MODELS):
            if model.family is not family or model.intercept != intercept:
                continue
            fine = np.isfinite(candidates.fits[m].deviance).reshape(-1, candidates.features)
            cells = [(b, f) for b in varied for f in range(len(candidates.rows[b].names)) if fine[b, f]]
            cells = [cell for cell in cells if cell not in limits]
            if cells:
                places = np.array(cells)
                _, low, high = candidates.fitted(places[:, 0], places[:, 1], m, options.confidence).slope()
                limits.update(zip(cells, zip(low.tolist(), high.tolist(), strict=True), strict=True))
    out = {}
    for b in members:
        row = candidates.rows[b]
        lower = {name: min(limits.get((b, f), (0.0, 0.0))[0], 0.0) for f, name in enumerate(row.names)}
        upper = {name: max(limits.get((b, f), (0.0, 0.0))[1], 0.0) for f, name in enumerate(row.names)}
        well = [name for name, (least, most) in ranges(row.series).items() if most >= VARIED * least and most > least]
        well = well or list(row.names)
        widest = min((lower[name] for name in well), default=0.0), max((upper[name] for name in well), default=0.0)
        out[b] = Growth(lower, upper, widest)
    return out


def describe(candidates: Candidates, choices: Sequence[Choice], at: PredictionPoints, options: Options) -> list[Learnt]:
    """Laws of a batch of series, in its order."""
    growths = allowed_growth(candidates, [b for b, choice in enumerate(choices) if choice.model < CONSTANTS], options)
    cells_of: dict[int, list[tuple[int, int, float, bool]]] = defaultdict(list)
    plausible: list[list[tuple[int, int]]] = []
    for b, choice in enumerate(choices):
        # Beside a constant for which the data exclude growth only constants are plausible.
        only_constants = b in growths and not growths[b].doubtful
        kept = [law for law in choice.plausible if law[1] < CONSTANTS or not only_constants]
        plausible.append([(f, m) for f, m, _ in kept])
        for place, (f, m, delta) in enumerate(kept):
            cells_of[m].append((b, f, delta, place == 0))
    described: dict[tuple[int, int, int], Described] = {}
    predictions = BatchPredictions.empty(candidates.rows) if at is None else None
    for m, cells in cells_of.items():
        series, feature = np.array([cell[0] for cell in cells]), np.array([cell[1] for cell in cells])
        batch = candidates.fitted(series, feature, m, options.confidence)
        names = [candidates.rows[b].names[f] if m >= CONSTANTS else "" for b, f, _, _ in cells]
        laws = describe_model(names, batch, [cell[2] for cell in cells])
        described.update({(b, f, m): law for (b, f, _, _), law in zip(cells, laws, strict=True)})
        if predictions:
            predictions.widen(batch, cells)
    out = []
    for b, choice in enumerate(choices):
        laws = [described[b, f, m] for f, m in plausible[b]]
        law = _claim(candidates, b, choice, laws, growths.get(b), options)
        learnt = Learnt(law, tuple(one.predictor for one in laws), candidates.rows[b])
        if predictions:
            learnt = replace(learnt, law=replace(law, predictions=tuple(predictions.of(b))))
        out.append(learnt if predictions else learnt.with_predictions(at))
    return out


def _claim(
    candidates: Candidates, b: int, choice: Choice, laws: Sequence[Described], growth: Growth | None, options: Options
) -> Law:
    """The claim of a series' plausible laws, the chosen one first; ``growth`` is that of a constant."""
    row, chosen, f = candidates.rows[b], laws[0], choice.feature
    if growth is None:
        slopes = slopes_of(chosen.feature, [law for law in laws if law.feature == chosen.feature])
        limits = (slopes[1][chosen.feature], slopes[2][chosen.feature])
    else:
        slopes = (dict.fromkeys(row.names, 0.0), dict(growth.low), dict(growth.high))
        limits = growth.widest
    sizes = int(candidates.sizes[b, f] if growth is None else candidates.sizes[b].max()) if row.names else 1
    evidence = Evidence(
        # Rows can be permuted where the feature varies within runs, else runs.
        units=row.runs if row.clusters is not None and growth is None and not row.varying[f] else row.y.size,
        runs=row.runs,
        sizes=sizes,
        slopes=limits,
        feature=row.series.to_vary(chosen.feature or (row.names[0] if row.names else "")),
        established=choice.established,
        varies=bool(np.ptp(row.y) > 1e-12 * np.abs(row.y).max()),
        ways=row.series.ways,
    )
    fit, cell = candidates.fits[choice.model], b * candidates.features + f
    constant = next(one for one in candidates.fits[:CONSTANTS] if one.model.noise is fit.model.noise)
    total = float(constant.rss[cell])
    # 1 − RSS/TSS on the scale of the noise; unknown if the response does not vary.
    r2 = None if total <= float(constant.floor[cell]) ** 2 else float(1.0 - fit.rss[cell] / total)
    verdict, others = judge(evidence), alternatives(laws, options.delta)
    return chosen.law(row.series, row.runs, slopes=slopes, verdict=verdict, r2=r2, alternatives=others)
