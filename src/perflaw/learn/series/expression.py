"""Laws in the annotation language: ``LogNorm(3.1*n*log(n), 0.05)``. Numbers have six significant digits.

``Norm(m, s)`` has mean m and standard deviation s; ``LogNorm(m, s)`` has *mean* m and standard deviation s of its
logarithm; ``log`` is the natural logarithm.
"""

from __future__ import annotations

import json
import re

from perflaw.learn.series.families import CONSTANT
from perflaw.learn.series.model import Model

# ---- Features' names in expressions: the annotation language reads a name with any other character in backquotes
# alone.

_PLAIN = re.compile(r"[^\W\d]\w*(?:\.\w+)*")
_TAKEN = {"true", "false", "inf", "infinity", "nan"}
"""Names that the language reads as numbers."""
_RAW = re.compile("[\x7f-\xa0\u2028\u2029\ud800-\udfff]")


def name(feature: str) -> str:
    r"""The feature's name as an expression has it.

    >>> name("docs.len"), name("argv[1]"), name("a`b")
    ('docs.len', '`argv[1]`', '`a\\`b`')
    """
    if _PLAIN.fullmatch(feature) and feature.lower() not in _TAKEN:
        return feature
    body = json.dumps(feature, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("`", "\\`")
    return "`" + _RAW.sub(lambda found: f"\\u{ord(found.group()):04x}", body) + "`"


def number(value: float) -> str:
    """Number with six significant digits, without the plus sign of an exponent."""
    return f"{value + 0.0:.6g}".replace("e+", "e")


def mean_text(model: Model, feature: str, intercept: float, coefficient: float, exponent: float) -> str:
    """Mean expression such as ``53350.3 - 2.1*s + 0.12*s*log(s)``."""
    if model.term is CONSTANT:
        return number(coefficient)
    term = model.term.text(name(feature), number(exponent if model.term.free else model.term.exponent))
    if not model.intercept:
        return f"{number(coefficient)}*{term}" if term else number(coefficient)
    sign = "-" if coefficient < 0 else "+"
    return f"{number(intercept)} {sign} {number(abs(coefficient))}*{term}"


def distribution_text(model: Model, mean: str, scale: float) -> str:
    """Whole distribution in the annotation language."""
    family = "LogNorm" if model.noise.log else "Norm"
    return f"{family}({mean}, {number(scale)})"
