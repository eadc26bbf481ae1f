"""Laws in words: what the terminal's table and the page both print. Formatting only, no statistics."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from perflaw.laws.build import Term, both, terms_of
from perflaw.laws.catalogue import Exponential, family_named, growth_in_words
from perflaw.laws.evaluation import evaluate, truth
from perflaw.laws.growth import REACH, LeadingTerm, is_condition, leading_term
from perflaw.laws.printing import condition_text, show
from perflaw.laws.tree import Binary, Call, Expression, Number, Unary, fold
from perflaw.report.quantity import number, percent, quantity, significant
from perflaw.types import Annotation, Law, Noise, Verdict
from perflaw.types.documents import Document

# ---- Means in words: the terms of an expression with units on their coefficients. Formatting only, no statistics.


@lru_cache(maxsize=4096)
def mean_text(mean: Expression, unit: str) -> str:
    """A mean with units on its coefficients.

    >>> from perflaw.laws.reading import parse_expression
    >>> mean_text(parse_expression("900 + 14*text.len"), "ns")
    '900 ns + 14 ns · text.len'
    >>> mean_text(parse_expression("53350.31 - 0.12*s*log(s)/m"), "ns")
    '53 µs − 0.12 ns · s · log(s) / m'
    """
    return _sum_text(terms_of(mean), unit)


def _sum_text(terms: Sequence[Term], unit: str) -> str:
    """Terms with their signs: coefficients as quantities, factors with numbers of three digits."""

    def rounded(node: Expression, operands: list[Expression]) -> Expression:
        """Long numbers inside a factor with three digits: an exponent is read, not copied."""
        match node:
            case Number():
                short = float(f"{node.value:.3g}")
                return Number(short) if math.isfinite(short) else node
            case Unary():
                return Unary(node.op, *operands)
            case Binary():
                return Binary(node.op, *operands)
            case Call():
                return Call(node.function, tuple(operands))
        return node

    text = ""
    for place, term in enumerate(terms):
        sign = "−" if term.coefficient < 0 else "+" if place else ""
        text += f" {sign} " if place else sign
        text += quantity(abs(term.coefficient), unit)
        for factor, below in term.factors:
            shown = show(fold(factor, rounded))
            shown = f"({shown})" if isinstance(factor, Binary) and factor.op != "^" else shown
            text += f" {'/' if below else '·'} {shown}"
    return text


@lru_cache(maxsize=4096)
def dies_out(mean: Expression) -> bool:
    """Whether all that a mean says of features vanishes as they grow: negative powers and exponentials.

    >>> from perflaw.laws.reading import parse_expression
    >>> dies_out(parse_expression("306 - 296*exp(-0.0085*n)")), dies_out(parse_expression("6.5 - 6.5*n^-2.26"))
    (True, True)
    >>> dies_out(parse_expression("3 + n^0.5")), dies_out(parse_expression("7"))
    (False, False)
    """
    dependent = [term for term in terms_of(mean) if term.factors]
    return bool(dependent) and all(any(_vanishes(factor, below) for factor, below in one.factors) for one in dependent)


def _vanishes(factor: Expression, below: bool) -> bool:
    """Whether a factor falls to 0: ``x^-2``, ``exp(-x)``, ``1/x``."""
    if isinstance(factor, Binary) and factor.op == "^":
        exponent = terms_of(factor.right)
        return len(exponent) == 1 and not exponent[0].factors and exponent[0].coefficient < 0
    if isinstance(factor, Call) and factor.function == "exp":
        return all(term.coefficient < 0 for term in terms_of(factor.arguments[0]) if term.factors)
    return below


_WORDS = {"levels off", "falls", "undecided"}
"""Growths that say no exponent."""
_SMALL_TERM = 0.01
"""Share of the cost below which a term of a run's law is left out of a table."""
_UNDECIDED = 3.0
"""Width of the interval of an exponent from which the data do not decide how the cost grows."""


def law_text(law: Law, unit: str) -> str:
    """The mean with units on its coefficients, such as ``0.9 µs + 14 ns · text.len``.

    The regimes of a piecewise law one after the other: ``3.0 ns · n up to n = 64, then 0.1 ns · n^2``.
    """
    if law.segments:
        ends = [f" up to {b.feature} = {number(b.value)}" for b in law.breakpoints]
        return ", then ".join(law_text(part, unit) + end for part, end in zip(law.segments, [*ends, ""], strict=False))
    return mean_text(law.mean, unit)


def grows_as(law: Law) -> str:
    """Growth in ``n`` of the term that governs the cost up to ten times the data, or at the point asked for.

    With several features the local exponent of each. ``levels off``, ``falls`` where it does not grow; ``undecided``
    where the data allow anything. A question mark follows where they cannot say.
    """
    return _growth(law) + (" ?" if law.verdict == "inconclusive" else "")


def _growth(law: Law) -> str:
    if len(law.features) > 1:
        joint = " · " if law.family == "product" else ", "
        return joint.join(f"{name}^{law.slope[name]:.1f}" for name in law.features if name in law.slope)
    if law.segments:
        return _growth(law.segments[-1])
    if law.verdict == "inconclusive" and any(
        law.slope_high[one] - law.slope_low[one] > _UNDECIDED for one in law.slope_low
    ):
        return "undecided"
    if law.features and dies_out(law.mean):
        if law.intercept or isinstance(family_named(law.family), Exponential):
            return "levels off" if law.intercept else "falls"
    elif law.features and law.coefficient < 0:
        return "falls"
    if growth := _leading(law).words or growth_in_words(law.family):
        return growth
    return f"n^{next(iter(law.slope.values())):.2f}" if law.slope else "constant"


def _leading(law: Law) -> LeadingTerm:
    """The term that governs the law at the last point it is predicted at, or at ten times the data."""
    reach = {name: REACH * high for name, (_, high) in law.range.items()}
    return leading_term(law.mean, {**reach, **(law.predictions[-1].features if law.predictions else {})})


def slope_interval(law: Law) -> str:
    """Confidence interval of the local exponent, such as ``(1.94–2.02)``; empty where the law has no feature or several.

    Where other terms still weigh, the growth at the upper end of the data is not the leading term's: it stands before.
    Two points have no interval.
    """
    if len(law.features) != 1 or law.features[0] not in law.slope_low:
        return ""
    [feature] = law.features
    low, now, high = (ends[feature] for ends in (law.slope_low, law.slope, law.slope_high))
    if low == high and law.verdict != "law":
        return ""
    leading, shape = now, _leading(law.segments[-1] if law.segments else law).shape
    if shape is not None and _growth(law) not in _WORDS:
        leading = float(shape.local_exponent(np.array(law.range[feature][1])))
    return f"{'' if abs(leading - now) < 0.05 else f'now n^{now:.2f} '}({low:.2f}–{high:.2f})"


def short_path(path: str) -> str:
    """A source file's path without the part that every installed module or script shares.

    >>> short_path("/home/me/venv/lib/python3.11/site-packages/summa/graph.py"), short_path("/home/me/app.py")
    ('summa/graph.py', '/home/me/app.py')
    >>> short_path("/home/me/venv/bin/textrank")
    'textrank'
    """
    return re.sub(r"^.*/(?:site-packages|dist-packages|lib/python\d\.\d+|bin)/", "", path)


def noise_text(noise: Noise, unit: str) -> str:
    """How far responses scatter.

    >>> noise_text(Noise("lognormal", 0.05), "ns"), noise_text(Noise("normal", 1200), "ns")
    ('±5.0 % of the mean (log-normal, σ = 0.05)', '±1.2 µs whatever the mean (normal)')
    """
    if noise.distribution == "lognormal":
        return f"±{significant(noise.scale * 100)} % of the mean (log-normal, σ = {significant(noise.scale)})"
    return f"±{quantity(noise.scale, unit)} whatever the mean (normal)"


def features_text(features: Mapping[str, float]) -> str:
    """Values of features.

    >>> features_text({"n": 100000, "k": 0.5})
    'n = 100,000, k = 0.5'
    """
    return ", ".join(f"{name} = {number(value)}" for name, value in features.items())


def shown_law(annotation: Annotation, at: Mapping[str, float] | None, of_runs: bool | None = None) -> Document:
    """What the table and the page show of an annotation: one law in words, the one that its prediction comes from.

    Where the cost of a run is predicted at the point asked for, or runs of several sizes were recorded, this is the law of
    whole runs (``per`` is "run"). Else it is the laws of a call (``per`` is "call"), with the condition of each; a condition
    that several parts of a mixture share stands at the first. ``of_runs`` says which of them is shown. The growth is that of
    the law that grows fastest.
    """
    unit, runs = annotation.metric.unit, annotation.run_law
    per, laws = "call", [scope.law for scope in annotation.scopes]
    scopes: list[Document] = []
    if of_runs is None:
        several_sizes = runs is not None and any(low < high for low, high in runs.range.values())
        of_runs = annotation.predicted is not None if at else several_sizes
    if runs and of_runs:
        per, laws = "run", [runs]
        pieces = [leading_terms(runs, unit, at)] if at and annotation.predicted else _recorded_and_ahead(runs, unit)
        scopes += [{"condition": "", "law": law} for law in pieces]
    else:
        before: Expression | None = None
        for scope in annotation.scopes:
            probability = f"{{{percent(scope.probability)}}} " if scope.probability < 1 else ""
            condition = "" if scope.condition == before and probability else condition_text(scope.condition)
            law = run_law_text(scope.law, unit) if annotation.called_once else law_text(scope.law, unit)
            scopes.append({"condition": condition, "law": probability + law})
            before = scope.condition
    return _shown(per, laws, scopes)


def run_law_text(law: Law, unit: str) -> str:
    """The mean of a law of runs as it holds where it is predicted, else at ten times the data."""
    return leading_terms(law, unit, _ahead(law))


def _ahead(law: Law) -> dict[str, float]:
    reach = {name: REACH * high for name, (_, high) in law.range.items()}
    return {**reach, **(law.predictions[-1].features if law.predictions else {})}


def _recorded_and_ahead(law: Law, unit: str) -> list[str]:
    """The mean as it holds at the largest sizes recorded and, where that is another piece, at those predicted."""
    ahead = _ahead(law)
    recorded = {**ahead, **{name: high for name, (_, high) in law.range.items()}}
    conditions = [factor for term in terms_of(law.mean) for factor, _ in term.factors if is_condition(factor)]
    other = any(bool(truth(evaluate(one, recorded))) != bool(truth(evaluate(one, ahead))) for one in conditions)
    return [leading_terms(law, unit, point) for point in ([recorded, ahead] if other else [ahead])]


def shown_run_law(law: Law, unit: str, at: Mapping[str, float]) -> Document:
    """The same of a law of whole runs."""
    return _shown("run", [law], [{"condition": "", "law": leading_terms(law, unit, at)}])


def _continues(other: Law, law: Law) -> bool:
    """Whether another law is the one of larger values: of the same features, from where this one ends."""
    same = law.features and set(law.features) == set(other.features)
    return bool(same) and all(other.range[name][0] >= law.range[name][1] > law.range[name][0] for name in law.features)


def _shown(per: str, laws: Sequence[Law], scopes: Sequence[Document]) -> Document:
    # Where several laws hold, the one that grows fastest will hurt; sure ones go before others.
    sure = [law for law in laws if law.verdict != "inconclusive"] or laws
    steepest = max(
        (law for law in sure if not any(_continues(other, law) for other in sure)),
        key=lambda law: max(law.slope.values(), default=0.0),
        default=None,
    )
    # The strongest verdict counts: one scope with a law is a law.
    strongest: tuple[Verdict, ...] = ("law", "inconclusive")
    verdicts = [law.verdict for law in laws]
    verdict = next((one for one in strongest if one in verdicts), "none")
    return {
        "per": per,
        "laws": scopes,
        "growth": grows_as(steepest) if steepest else "",
        "interval": slope_interval(steepest) if steepest else "",
        "slope": max(steepest.slope.values(), default=0.0) if steepest else None,
        "coefficient": steepest.coefficient if steepest else None,
        "verdict": verdict,
        "reason": next((law.reason for law in laws if law.verdict == verdict), ""),
    }


def leading_terms(law: Law, unit: str, at: Mapping[str, float]) -> str:
    """The mean of a law of runs as it holds at a point, such as ``2.0 ms · n − 125 ms (n > 566)``.

    Of pieces that differ by conditions, only the one of the point is written, and whether none of the data are in it. Terms
    are left out that make up less than 1 % at the point and at those ends of the data where the same conditions hold.
    """
    coefficients: dict[tuple[tuple[Expression, bool], ...], float] = {}
    bounds: dict[tuple[Expression, bool], float] = {}
    for term in terms_of(law.mean):
        conditions = [factor for factor, _ in term.factors if is_condition(factor)]
        factors = tuple(one for one in term.factors if not is_condition(one[0]))
        holds = [bool(truth(evaluate(one, at))) for one in conditions]
        coefficients[factors] = coefficients.get(factors, 0.0) + (term.coefficient if all(holds) else 0.0)
        for one, does in zip(conditions, holds, strict=True):
            if isinstance(one, Binary) and one.op in ("<=", ">") and isinstance(one.right, Number):
                # The condition, or its opposite where it does not hold; of several the narrowest.
                above, narrower = ((one.op == ">") == does), one.right.value
                known = bounds.get((one.left, above), narrower)
                bounds[one.left, above] = max(known, narrower) if above else min(known, narrower)
    where = [Binary(">" if above else "<=", left, Number(limit)) for (left, above), limit in bounds.items()]
    data = [{name: limits[end] for name, limits in law.range.items()} for end in (0, 1)]
    ends = [at, *(end for end in data if all(bool(truth(evaluate(one, end))) for one in where))]
    terms = [Term(coefficient, factors) for factors, coefficient in coefficients.items() if coefficient or not factors]
    sizes = [
        [abs(one.coefficient) * (1.0 if one.basis is None else float(evaluate(one.basis, end))) for end in ends]
        for one in terms
    ]
    totals = [sum(column) or 1.0 for column in zip(*sizes, strict=True)]
    kept = [
        term
        for term, of_term in zip(terms, sizes, strict=True)
        if any(size >= _SMALL_TERM * total for size, total in zip(of_term, totals, strict=True))
    ]
    short = [
        Binary(one.op, one.left, Number(float(f"{limit:.3g}")))
        for one, limit in zip(where, bounds.values(), strict=True)
    ]
    outside = any(not any(bool(truth(evaluate(one, end))) for end in data) for one in where)
    marked = f" ({'outside the data: ' * outside}{condition_text(both(short))})" if where else ""
    return _sum_text(kept or terms[:1], unit) + marked
