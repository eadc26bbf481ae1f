"""Whether a part of the records is split, and where: the best of all conditions, if it is sure and matters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from perflaw.learn.annotations.conditions import Test
from perflaw.learn.annotations.field import MIN_EFFECT, Part
from perflaw.learn.annotations.options import Options
from perflaw.learn.annotations.scan import Split, best_split, by_levels, sides
from perflaw.learn.annotations.sure import p_value
from perflaw.learn.annotations.table import Column
from perflaw.types import Law

MIN_GAIN = 10.0
"""A split improves the information criterion by at least so much: "very strong" (Kass & Raftery 1995)."""
REMAINS_GOOD, REMAINS = 0.25, 0.75
"""Of what a good law leaves unexplained, and of what another one does, a split leaves at most so much."""
MOST_CHOICES = 4
"""Values of a feature that may be a choice."""


def propose(part: Part, law: Law, options: Options) -> Test | None:
    """The test by which a part with its law is split, None where it stays whole."""
    choice = _choice(part, law, options)
    if choice is not None:
        return choice
    if part.scatter < MIN_EFFECT:
        return None  # no split could explain enough to matter
    if options.paper:
        # Conditions of the code first; then what features say.
        outcomes = [column for column in part.field.columns if column.kind == "branch"]
        return _sure(replace(part, field=replace(part.field, columns=outcomes)), options) or _sure(part, options)
    return _sure(part, options)


def _sure(part: Part, options: Options) -> Test | None:
    """The best split where it is sure and matters."""
    split, tried = best_split(part.field)
    if split is None or part.criterion - split.criterion < MIN_GAIN or not _matters(part, split, options):
        return None
    return split.test if p_value(part, split, sides(part.field, split)) * tried <= options.p else None


def _choice(part: Part, law: Law, options: Options) -> Test | None:
    """A feature of a few values in a law of several may be a choice and no quantity: then it parts the records.

    Of two values that cannot be told apart; of more it is where laws for each value explain more than the one of all.
    """
    if len(law.features) < 2:
        return None
    sizes = {column.name: _values(column, options.fewest) for column in part.field.columns}
    choices = [column for column in part.field.columns if 2 <= sizes[column.name] <= MOST_CHOICES]
    for column in choices:
        if column.name not in law.features:
            continue
        if sizes[column.name] == 2 or by_levels(part.field, column) < part.criterion - MIN_GAIN:
            split, _ = best_split(replace(part.field, columns=choices))
            return split.test if split else None
    return None


def _values(column: Column, fewest: int) -> int:
    """How many values a number has; 0 where one is rare, or it is no number known before the call."""
    if column.kind not in ("feature", "run"):
        return 0
    values, count = np.unique(column.values, return_counts=True)
    return int(values.size) if count.min() >= fewest else 0


def _matters(part: Part, split: Split, options: Options) -> bool:
    """Whether what the split explains is worth telling."""
    remains = split.rss / max(float(part.unexplained[split.response]), 1e-300)
    if remains > (REMAINS_GOOD if part.r2 >= options.good_r2 else REMAINS):
        return False
    return bool(part.scatter * np.sqrt(max(1.0 - remains, 0.0)) >= MIN_EFFECT)
