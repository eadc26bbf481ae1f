"""Maximum likelihood fits of many laws to a batch of series at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perflaw.learn.laws.batch import Batch
from perflaw.learn.laws.families import Term
from perflaw.learn.laws.linear import inverse
from perflaw.learn.laws.mixed import ORDER, mixed
from perflaw.learn.laws.model import Model, Theta
from perflaw.learn.laws.noise import NoiseModel
from perflaw.learn.laws.search import search
from perflaw.learn.laws.series import Array
from perflaw.learn.laws.stacks import AT_ONCE, Block, Form, Stack, stacks
from perflaw.learn.laws.starts import start


@dataclass(frozen=True, slots=True)
class Fit:
    """One law fitted to a batch."""

    model: Model
    """The law."""
    theta: Array
    """Response at the largest x, at the smallest x, exponent; (B, 3), unused ones 0."""
    covariance: Array
    """(JᵀWJ)⁻¹ on the noise's own scale, to be multiplied by σ²; (B, 3, 3), 0 for unused parameters."""
    rss: Array
    """Weighted residual sum of squares on the noise's scale, (B,)."""
    floor: Array
    """Smallest credible σ, (B,)."""
    deviance: Array
    """−2 log likelihood, (B,); infinite where the law is not available."""


def fit(models: Sequence[Model], batch: Batch) -> list[Fit]:
    """Fit laws to every series of a batch, model by model; where one is not available its deviance is infinite."""
    forms: dict[Form, list[int]] = defaultdict(list)
    for m, model in enumerate(models):
        forms[Form(model.noise.log, model.intercept, model.term.free)].append(m)
    count, log_y = batch.w.sum(axis=-1), (batch.w * batch.log_y).sum(axis=-1)
    floors = {noise: _floor(noise, batch) for noise in dict.fromkeys(model.noise for model in models)}
    found = [_none(model, floors[model.noise]) for model in models]
    terms = {form: [models[m].term for m in members] for form, members in forms.items()}
    for blocks, stack, theta, rss in _searched(terms, batch):
        members = forms[stack.form]
        noise = models[members[0]].noise
        covariance, regular = _covariance(stack, theta)
        deviance = noise.deviance(rss, floors[noise][stack.cell], count[stack.cell], log_y[stack.cell])
        deviance = np.where(regular & np.isfinite(deviance), deviance, np.inf)
        at = {models[m].term: found[m] for m in members}
        for term, rows in blocks:
            out, cells = at[term], stack.cell[rows]
            out.theta[cells], out.covariance[cells] = theta[rows], covariance[rows]
            out.rss[cells], out.deviance[cells] = rss[rows], deviance[rows]
    return found


def _floor(noise: NoiseModel, batch: Batch) -> Array:
    """Smallest credible σ, (B,); of any size where the noise cannot be."""
    y = np.where(batch.positive[:, None], batch.y, 1.0) if noise.log else batch.y
    return noise.floor(y, batch.w, batch.quantum)


def _none(model: Model, floor: Array) -> Fit:
    """A law that is available nowhere."""
    size = len(floor)
    nothing = np.zeros((size, 3)), np.zeros((size, 3, 3)), np.full(size, np.inf)
    return Fit(model, *nothing, floor, np.full(size, np.inf))


Searched = tuple[list[Block], Stack, Array, Array]
"""A stack's blocks, the stack, its laws' parameters (R, 3) and residual sums of squares (R,)."""


def _searched(forms: Mapping[Form, Sequence[Term]], batch: Batch) -> Iterator[Searched]:
    """All stacks of all forms with what the search found; those of few laws are searched for as one."""
    together: list[tuple[list[Block], Stack, Theta]] = []
    for form in sorted(forms, key=lambda one: ORDER.index(one) if one in ORDER else -1):
        for blocks, stack in stacks(form, forms[form], batch):
            begin = start(stack, blocks, batch)
            if form in ORDER and stack.y.size <= AT_ONCE // 2:
                together.append((blocks, stack, begin))
            else:
                yield blocks, stack, *search(stack, begin)
    if not any(stack.form.free for _, stack, _ in together):
        yield from ((blocks, stack, *search(stack, begin)) for blocks, stack, begin in together)
        return
    m1, m0, b = (np.concatenate(part) for part in zip(*(theta for _, _, theta in together), strict=True))
    theta, rss = search(mixed([stack for _, stack, _ in together]), (m1, m0, b))
    ends = np.cumsum([len(stack.y) for _, stack, _ in together]).tolist()
    for (blocks, stack, _), end in zip(together, ends, strict=True):
        rows = slice(end - len(stack.y), end)
        yield blocks, stack, theta[rows], rss[rows]


def _covariance(stack: Stack, theta: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Covariances over σ² of a stack's laws (R, 3, 3), and whether they exist."""
    _, columns = stack.residual((theta[:, 0, None], theta[:, 1, None], theta[:, 2, None]))
    inverted, regular = inverse(stack.normal(columns))
    covariance = np.zeros((len(theta), 3, 3))
    places = np.array(stack.form.columns)
    covariance[:, places[:, None], places] = np.moveaxis(inverted, -1, 0)
    return covariance, regular
