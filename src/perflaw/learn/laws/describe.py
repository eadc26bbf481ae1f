"""From choices to laws: intervals over all laws not told apart, slopes, verdict, words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from perflaw.learn.laws.answers import Answers
from perflaw.learn.laws.band import Fitted
from perflaw.learn.laws.candidates import CONSTANTS, Candidates
from perflaw.learn.laws.choose import Choice, units
from perflaw.learn.laws.described import Described, alternatives, described, words
from perflaw.learn.laws.growth import Growth, allowed_growth
from perflaw.learn.laws.learnt import Learnt
from perflaw.learn.laws.prepare import Rows
from perflaw.learn.laws.series import Options
from perflaw.learn.laws.verdict import Evidence, judge
from perflaw.types import Law, Noise


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
    mean, expression = words(chosen)
    exponent, log_exponent = chosen.exponents
    return Law(
        family=chosen.family,
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
        log_exponent=log_exponent,
        coefficient=chosen.coefficient,
        intercept=chosen.intercept if model.intercept else None,
        range={name: (float(x.min()), float(x.max())) for name, x in row.series.features.items()},
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
