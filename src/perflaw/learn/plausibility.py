"""Which features a cost is likely to depend on, by what they are: prior costs for the law learner.

Settings and inputs of the run, sizes, and numbers named like sizes cost nothing. Other numbers and state cost a little.
A number of the run (``run.index``, ``seed``) is no setting: where a machine drifts, all costs follow the order of the
runs. It is no feature unless a person varies it, and then it is unlikely.
Hashes, identities, private attributes and what hangs at the end of a chain of attributes cost so much that a law of
them has to explain far more than one of the others: among dozens of numbers some follow the costs by chance.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from perflaw.types import Evidence

_Value = TypeVar("_Value")

STATE, UNLIKELY = 2.0, 25.0
"""Prior costs of numbers that are no sizes, and of features that seldom decide a cost."""
SIZES: Final = frozenset({"len", "size", "nbytes", "bytes", "sum"})
"""Measures of a size, at the end of a name."""
_SIZE_WORD = re.compile(
    r"^(?:n|m|k|num|number|size|count|length|len|depth|width|height|total|limit|capacity|rows|cols|columns|times|reps"
    r"|repeat|repeats|steps|iterations|order|degree|level|levels|hi|end|stop)$"
)
_IDENTITY = re.compile(r"^(?:hash|id|uid|uuid|guid|pid|tid|fd|fileno|seed|index|idx|pos|position|lineno|line|address)$")
_ORDINAL = re.compile(r"^(?:index|idx|run|trial|attempt|repetition|seed|id|uid|uuid|guid|pid)$")
"""Last words of features of runs that number the runs, and of seeds."""
_PLURAL = re.compile(r"^(?!.*(?:ss|us|is)$)[a-z]{3,}s$")
"""A plural counts things: ``lines``, ``rows``, ``elements``."""
_MAX_CHAIN: Final = 1
"""Attributes in a row below a parameter that are still likely."""


def without_run_numbers(evidence: Evidence) -> Evidence:
    """The evidence without the features that number its runs, but for those that a person varies."""
    numbers = {
        name
        for cost in evidence.runs
        for name in cost.run.features
        if _numbers_runs(name) and name not in cost.run.configuration
    }
    if not numbers:
        return evidence

    def kept(features: Mapping[str, _Value]) -> dict[str, _Value]:
        return {name: value for name, value in features.items() if name not in numbers}

    runs = tuple(replace(cost, run=replace(cost.run, features=kept(cost.run.features))) for cost in evidence.runs)
    return replace(evidence, features=kept(evidence.features), runs=runs)


def prior_costs(names: Iterable[str], given: Collection[str]) -> dict[str, float]:
    """Prior cost of the features that have one; ``given`` are those of the run.

    >>> prior_costs(["n", "items.len", "ratio", "self._hash", "expression.parent.args.len"], ["n"])
    {'ratio': 2.0, 'self._hash': 25.0, 'expression.parent.args.len': 25.0}
    >>> prior_costs(["lines", "seed"], ["lines", "seed"])
    {'seed': 25.0}
    """
    costs = {name: UNLIKELY * _numbers_runs(name) if name in given else _cost(name) for name in names}
    return {name: cost for name, cost in costs.items() if cost}


def run_feature_costs(names: Iterable[str]) -> dict[str, float]:
    """Prior cost of each feature of runs beside the others: sizes cost nothing, other numbers and run numbers do.

    Costs are relative to the least of them: what is alone has nothing to go before it.

    >>> run_feature_costs(["i", "argv1.lines", "n", "elements", "seed"])
    {'i': 2.0, 'argv1.lines': 0.0, 'n': 0.0, 'elements': 0.0, 'seed': 25.0}
    >>> run_feature_costs(["i"])
    {'i': 0.0}
    """
    costs = {}
    for name in names:
        last = re.split(r"[._]", name.lower())[-1]
        is_size = last in SIZES or _SIZE_WORD.match(last) or _PLURAL.match(last)
        costs[name] = UNLIKELY if _numbers_runs(name) else 0.0 if is_size else STATE
    least = min(costs.values(), default=0.0)
    return {name: cost - least for name, cost in costs.items()}


def _numbers_runs(name: str) -> bool:
    return bool(_ORDINAL.match(re.split(r"[._]", name.lower())[-1]))


def _cost(name: str) -> float:
    if "-" in name or name.startswith(("calls.", "branch.")):
        return 0.0  # a difference of two ends is a size; what happened in the call is a cause
    *chain, last = name.split(".")
    measured = bool(chain) and (last in SIZES or last.startswith("shape["))
    attributes = chain[1:] if measured else [*chain[1:], *([last] if chain else [])]
    words = [word for part in [*attributes, *([] if attributes else [name])] for word in part.lower().split("_")]
    private = any(part.startswith("_") for part in [*attributes, chain[0] if chain else name])
    if private or len(attributes) > _MAX_CHAIN or any(_IDENTITY.match(word) for word in words):
        return UNLIKELY
    if measured or any(_SIZE_WORD.match(word) for word in words):
        return 0.0
    return STATE
