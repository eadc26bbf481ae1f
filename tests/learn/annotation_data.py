"""Evidence made by hand, and what is learnt of it."""

import numpy as np

from perflaw.laws import distributions
from perflaw.laws.evaluation import evaluate
from perflaw.laws.printing import show
from perflaw.laws.reading import parse_distribution, parse_expression
from perflaw.learn.annotations import AnnotationOptions, annotate
from perflaw.types import TIME, Component, Evidence


def evidence(y, features, *, types=None, edges=None, branches=None, run=None):
    """Evidence of a component, every invocation in the sample; by default of one run."""
    n = len(y)
    return Evidence(
        Component("m.f"),
        np.asarray(y, dtype=float),
        np.ones(n),
        np.ones(n, dtype=bool),
        np.asarray(np.repeat("0001", n) if run is None else run).astype(str),
        {name: np.asarray(values, dtype=float) for name, values in features.items()},
        (),
        {name: np.asarray(values).astype(str) for name, values in (types or {}).items()},
        {name: np.asarray(values, dtype=float) for name, values in (edges or {}).items()},
        {name: np.asarray(values, dtype=float) for name, values in (branches or {}).items()},
    )


def learn_one(made, metric=TIME, **options):
    """The annotation of one component."""
    [found] = annotate([made], AnnotationOptions(metric=metric, **options))
    return found


def condition(scope):
    """The condition as text, empty for everywhere."""
    return show(scope.condition) if scope.condition else ""


def told(annotation):
    """Condition → family, of every scope."""
    return {condition(scope): scope.law.family for scope in annotation.scopes}


def predicted(scopes, made):
    """Expected cost of every record, from the texts of the scopes alone; NaN where no condition holds."""
    values = {**made.features, **made.branches, **made.edges, **made.categories}
    mean, weight = np.zeros(made.cost.size), np.zeros(made.cost.size)
    for scope in scopes:
        inside = np.ones(made.cost.size, dtype=bool)
        if scope["condition"]:
            inside &= np.asarray(evaluate(parse_expression(scope["condition"]), values))
        here = distributions.mean(parse_distribution(scope["law"]["expression"]), values)
        mean += np.where(inside, scope["probability"] * here, 0.0)
        weight += inside * scope["probability"]
    return np.where(weight > 0, mean / np.where(weight > 0, weight, 1.0), np.nan)


def r2(scopes, made):
    """Share of the variance of recordings that laws explain, of what their conditions cover."""
    mean = predicted(scopes, made)
    covered = ~np.isnan(mean)
    y = made.cost[covered]
    return 1.0 - np.sum((y - mean[covered]) ** 2) / np.sum((y - y.mean()) ** 2), np.mean(covered)
