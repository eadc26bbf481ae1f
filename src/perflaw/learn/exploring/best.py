"""The best configuration, free of the luck that chose it, how sure it is, and the choice whose worst case is best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perflaw.learn.exploring.field import Field
from perflaw.learn.exploring.margin import KEPT_BACK, SOONEST
from perflaw.types.explored import Choice
from perflaw.types.studies import Trial

NO_MATTER = 0.25
"""Parts of the noise by which a worst case must be better to be another choice."""
UNLUCKY = 1.645
"""Standard deviations of the noise that an unlucky run is off (one in twenty)."""


def choices(field: Field, fields: Mapping[str, Field], trials: Sequence[Trial], margin: float) -> tuple[Choice, Choice]:
    """Return the best configuration tried and the robust one.

    The best is that of the greatest expectation, not of the luckiest trial; the probability is that no configuration of
    the space is better by more than the margin.
    """
    score = field.sign * field.mean()
    best = int(np.argmax(score[:, : field.tried].mean(axis=0)))
    worst = field.worst() - UNLUCKY * field.noise
    doubt = np.quantile(worst[:, : field.tried], 0.1, axis=0)
    robust = int(np.argmax(doubt))
    robust = robust if doubt[robust] - doubt[best] > NO_MATTER * max(field.noise, 1e-12) else best
    several = field.draws.shape[2] > 1
    why = (
        "best in its worst setting of the workload" if several else "best in an unlucky run, as far as the trials tell"
    )
    words = "best on average over the workload's settings" if several else "greatest expectation"
    return (
        choice(field, fields, best, trials, margin, words),
        choice(field, fields, robust, trials, margin, why),
    )


def choice(
    field: Field, fields: Mapping[str, Field], place: int, trials: Sequence[Trial], margin: float, why: str
) -> Choice:
    """A configuration of the field as a choice."""
    settings = field.configurations[place]
    own = [one for one in trials if one.valid and all(one.configuration.get(k) == v for k, v in settings.items())]
    names = dict.fromkeys(name for one in own for name in one.metrics)
    measured = {name: float(np.mean([one.metrics[name] for one in own if name in one.metrics])) for name in names}
    expected = {name: other.estimate(place) for name, other in fields.items()}
    return Choice(
        settings, expected, measured, tuple(one.number for one in own), margin, within(field, place, margin), why
    )


def within(field: Field, place: int, margin: float) -> float:
    """Probability that no configuration drawn is better than this one by more than the margin; cautious as ``margin`` is."""
    if field.distinct < SOONEST:
        return 0.0
    score = field.sign * field.mean()
    holds = float(np.mean(score.max(axis=1) - score[:, place] <= field.margin(margin)))
    return holds * field.distinct / (field.distinct + KEPT_BACK)
