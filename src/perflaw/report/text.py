"""Laws in words: what the terminal's table and the page both print. Formatting only, no statistics."""

from __future__ import annotations

import re
from collections.abc import Mapping

from perflaw.report.quantity import (
    count,
    duration,
    estimate,
    interval,
    number,
    percent,
    quantity,
    significant,
)
from perflaw.types import Annotation, Law, Noise, Prediction, Scope, Verdict

__all__ = [
    "annotation_text",
    "count",
    "duration",
    "estimate",
    "features_text",
    "grows_as",
    "interval",
    "law_text",
    "noise_text",
    "number",
    "percent",
    "prediction_text",
    "quantity",
    "scope_texts",
    "short_path",
    "significant",
    "slope_interval",
    "steepest",
    "verdict",
]

_GROWTH = {
    "constant": "constant",
    "log": "log n",
    "sqrt": "√n",
    "linear": "n",
    "nlogn": "n log n",
    "quadratic": "n^2",
    "n2logn": "n^2 log n",
    "cubic": "n^3",
    "exponential": "exp n",
}
# A number that is not part of a name: `log2`, `x1.len` and `[0]` keep their digits.
_NUMBER = re.compile(r"(?<![\w.\[])\d+\.?\d*(?:e[+-]?\d+)?(?![\w.\]])")


def law_text(law: Law, unit: str) -> str:
    """The mean with units on its coefficients, such as ``0.9 µs + 14 ns · text.len``.

    The regimes of a piecewise law one after the other: ``3.0 ns · n up to n = 64, then 0.1 ns · n^2``.
    """
    if law.segments:
        ends = [f" up to {b.feature} = {number(b.value)}" for b in law.breakpoints]
        return ", then ".join(law_text(part, unit) + end for part, end in zip(law.segments, [*ends, ""], strict=False))
    terms = [(sign, _term(term, unit)) for sign, term in _split_terms(law.mean)]
    first_sign, first = terms[0]
    head = f"−{first}" if first_sign == "-" else first
    return head + "".join(f" {'−' if sign == '-' else '+'} {term}" for sign, term in terms[1:])


def _split_terms(mean: str) -> list[tuple[str, str]]:
    """(sign, term) of a sum. Only signs with spaces around them join terms: ``->`` and ``1e-05`` do not."""
    parts = _split(mean.strip(), r" [+-] ")
    first = ("-", parts[0][1:].strip()) if parts[0].startswith("-") else ("+", parts[0])
    return [first, *((parts[i].strip(), parts[i + 1]) for i in range(1, len(parts), 2))]


def _split(text: str, separator: str) -> list[str]:
    """``re.split`` with the separators kept, outside brackets only."""
    parts, depth, start, i = [], 0, 0, 0
    while i < len(text):
        found = re.compile(separator).match(text, i) if depth == 0 else None
        if found and found.end() > i:
            parts += [text[start:i], found.group()]
            i = start = found.end()
            continue
        depth += (text[i] in "([{") - (text[i] in ")]}")
        i += 1
    return [*parts, text[start:]]


def _term(term: str, unit: str) -> str:
    """One term: its coefficient as a quantity, its other factors as they are."""
    factors = [part.strip() for part in _split(term.replace("**", "^"), r"\s*\*\s*")[::2]]
    try:
        coefficient = float(factors[0])
    except ValueError:
        return " · ".join([quantity(1.0, unit), *map(_tidy, factors)])
    return " · ".join([quantity(coefficient, unit), *map(_tidy, factors[1:])])


def _tidy(factor: str) -> str:
    """Long numbers inside a factor with three digits: an exponent is read, not copied."""
    return _NUMBER.sub(lambda found: f"{float(found.group()):.3g}".replace("e+", "e"), factor)


def grows_as(law: Law) -> str:
    """Growth of the leading term in ``n``; with several features the local exponent of each.

    A question mark follows where the data cannot say.
    """
    return _growth(law) + (" ?" if law.verdict == "inconclusive" else "")


def _growth(law: Law) -> str:
    if len(law.features) > 1:
        joint = " · " if law.family == "product" else ", "
        return joint.join(f"{name}^{law.slope[name]:.1f}" for name in law.features if name in law.slope)
    if law.segments:
        return _growth(law.segments[-1])
    if law.family in _GROWTH:
        return _GROWTH[law.family]
    if law.family == "power" and law.exponent is not None:
        return f"n^{law.exponent:.2f}"
    return f"n^{next(iter(law.slope.values())):.2f}" if law.slope else "constant"


def slope_interval(law: Law) -> str:
    """95 % interval of the local exponent, such as ``(1.94–2.02)``; empty where the law has no feature or several.

    Where an intercept still weighs, the growth at the upper end of the data is not the leading term's: it stands before.
    Two points have no interval.
    """
    if len(law.features) != 1 or law.features[0] not in law.slope_low:
        return ""
    low, now, high = (ends[law.features[0]] for ends in (law.slope_low, law.slope, law.slope_high))
    if low == high and law.verdict != "law":
        return ""
    leading = law.exponent if law.exponent is not None and not law.log_exponent else now
    return f"{'' if abs(leading - now) < 0.05 else f'now n^{now:.2f} '}({low:.2f}–{high:.2f})"


def short_path(path: str) -> str:
    """A source file's path without the part that every installed module shares.

    >>> short_path("/home/me/venv/lib/python3.11/site-packages/summa/graph.py"), short_path("/home/me/app.py")
    ('summa/graph.py', '/home/me/app.py')
    """
    return re.sub(r"^.*/(?:site-packages|dist-packages|lib/python\d\.\d+)/", "", path)


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


def prediction_text(prediction: Prediction, unit: str) -> str:
    """Expected cost with the interval for the mean, such as ``41 s (34–50)``."""
    return estimate(prediction.mean, prediction.mean_low, prediction.mean_high, unit)


def annotation_text(annotation: Annotation) -> str:
    """All laws of a component on one line: conditions in ``[]`` and probabilities in ``{}`` before each."""
    return " · ".join(scope_texts(annotation))


def scope_texts(annotation: Annotation) -> list[str]:
    """Its laws one by one."""
    return [_scope_text(scope, annotation.metric.unit) for scope in annotation.scopes]


def _scope_text(scope: Scope, unit: str) -> str:
    condition = f"[{scope.condition}] " if scope.condition else ""
    probability = f"{{{percent(scope.probability)}}} " if scope.probability < 1 else ""
    return condition + probability + law_text(scope.law, unit)


def steepest(annotation: Annotation) -> Law:
    """Of its laws the one that grows fastest: where several hold, that one will hurt."""
    return max((scope.law for scope in annotation.scopes), key=lambda law: max(law.slope.values(), default=0.0))


def verdict(annotation: Annotation) -> Verdict:
    """The strongest verdict of its laws: one scope with a law is a law."""
    verdicts = {scope.law.verdict for scope in annotation.scopes}
    return next((v for v in _STRENGTH if v in verdicts), "none")


_STRENGTH: tuple[Verdict, ...] = ("law", "inconclusive", "none")
