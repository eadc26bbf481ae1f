"""The learner that annotations ask: ours, or the paper's own regressions."""

from __future__ import annotations

from collections.abc import Sequence

from perflaw.learn.annotations.options import Options
from perflaw.learn.annotations.paper import learn_paper
from perflaw.learn.laws import Learnt, Series, learn
from perflaw.learn.laws import Options as LawOptions


def learn_laws(series: Sequence[Series], options: Options, *, regimes: bool = False) -> list[Learnt]:
    """A law for each series. Without breakpoints unless asked: regimes are scopes, and the tree decides on them."""
    if not series:
        return []
    if options.paper:
        return learn_paper(series, options.good_r2)
    return learn(series, None, LawOptions(regimes=regimes))
