"""Which knobs matter: shares of a metric's variance over the whole space, by knob and by pair (functional ANOVA)."""

from __future__ import annotations

import numpy as np

from perflaw.learn.exploring.centred import Axis, pairs_of
from perflaw.learn.exploring.components import Data, Parts, parts
from perflaw.learn.exploring.factorial import cube, exact
from perflaw.learn.exploring.null import dependence
from perflaw.learn.exploring.responses import Responses, axes_of, data_of
from perflaw.learn.exploring.spaces import Array, SpaceLike
from perflaw.types.explored import Importance, Share

ALPHA = 0.01
"""How often pure noise may get any importance."""
FEWEST = 8
"""Configurations below which nothing is said."""
HYPERPARAMETERS, EACH = 12, 40
"""Draws of the process's hyperparameters, and of its parts under each."""
LEAST = 0.003
"""Shares whose interval begins above it are established."""


def importance(found: Responses, space: SpaceLike, seed: int = 0) -> Importance:
    """Return the shares; none, with the reason, where the data do not establish that anything depends on a knob."""
    rng = np.random.default_rng([seed, len(found.y)])
    noise = float(np.sqrt(found.within / found.freedom)) if found.freedom else float("nan")
    few = len(found.y) < FEWEST
    if few or np.ptp(found.y) <= 1e-12 * max(1.0, float(np.abs(found.y).max())):
        reason = (
            f"{len(found.y)} configurations tried, {FEWEST} are needed"
            if few
            else "the metric is the same in all trials"
        )
        p = float("nan") if few else 1.0
        return Importance(found.metric, found.logarithm, (), 0.0, noise, p, False, reason)
    places, axes = axes_of(space, found.configurations[0])
    p = dependence(axes, found.x[:, places], found.y, rng) if axes else 1.0
    if p > ALPHA:
        spread = float(found.y.std()) if np.isnan(noise) else noise
        reason = f"no knob is established to matter (p = {p:.2g}): more trials may tell"
        return Importance(found.metric, found.logarithm, (), 0.0, spread, p, False, reason)
    data, spread = data_of(found, places, axes)
    drawn, whole = _parts(data, rng)
    names = [axis.name for axis in axes]
    scatter = float(np.sqrt(drawn.noise)) * spread
    shares, rest = _shares(drawn, names)
    return Importance(found.metric, found.logarithm, shares, rest, scatter if np.isnan(noise) else noise, p, whole)


def _parts(data: Data, rng: np.random.Generator) -> tuple[Parts, bool]:
    """Draws of the parts, and whether nothing was interpolated."""
    values = cube(data.axes, data.x, data.y)
    if values is None:
        return parts(data, HYPERPARAMETERS, EACH, rng), False
    single = data.within / data.freedom if data.freedom >= FEWEST else parts(data, 1, 1, rng).noise
    found = exact(values, single / float(data.weight.mean()), HYPERPARAMETERS * EACH, rng)
    return Parts(found.mains, found.pairs, found.rest, single), True


def _shares(drawn: Parts, names: list[str]) -> tuple[tuple[Share, ...], float]:
    """Shares of knobs and pairs, the greatest first, and of the rest."""
    knobs = [(name,) for name in names] + [(names[i], names[j]) for i, j in pairs_of(len(names))]
    variances = np.concatenate([drawn.mains, drawn.pairs, drawn.rest[:, None]], axis=1)
    parts_of = variances / np.maximum(variances.sum(axis=1, keepdims=True), 1e-300)
    low, high = np.quantile(parts_of, [0.025, 0.975], axis=0)
    mean = parts_of.mean(axis=0)
    found = [_share(knob, mean, low, high, place) for place, knob in enumerate(knobs)]
    return tuple(sorted(found, key=lambda one: (-one.share, one.knobs))), float(mean[-1])


def _share(knobs: tuple[str, ...], mean: Array, low: Array, high: Array, place: int) -> Share:
    return Share(knobs, float(mean[place]), float(low[place]), float(high[place]), bool(low[place] > LEAST))


def main_knobs(found: Importance) -> list[str]:
    """Knobs in the order of what they explain alone and half of what they explain in pairs."""
    worth: dict[str, float] = {}
    for one in found.shares:
        for name in one.knobs:
            worth[name] = worth.get(name, 0.0) + one.share / len(one.knobs)
    return sorted(worth, key=lambda name: (-worth[name], name))


__all__ = ["Axis", "importance", "main_knobs"]
