r"""Pieces of conditions in the annotation language: names, texts, and the roundest number that parts two values.

>>> name("docs.len"), name("calls.app.<lambda>"), text('a "b"')
('docs.len', '`calls.app.<lambda>`', '"a \\"b\\""')
"""

from __future__ import annotations

import json
import math
import re

from perflaw.learn.laws.naming import name

__all__ = ["between", "name", "number", "text"]

_RAW = re.compile("[\x7f-\xa0\u2028\u2029\ud800-\udfff]")


def text(value: str) -> str:
    """A text in quotes."""
    return _marked(value, '"')


def _marked(value: str, mark: str) -> str:
    body = json.dumps(value, ensure_ascii=False)[1:-1].replace('\\"', '"').replace(mark, "\\" + mark)
    return mark + _RAW.sub(lambda found: f"\\u{ord(found.group()):04x}", body) + mark


def number(value: float) -> str:
    """The shortest text that reads back as the number.

    >>> number(7.0), number(0.25), number(1e22)
    ('7', '0.25', '1e22')
    """
    whole = value.is_integer() and abs(value) < 1e15
    return str(int(value)) if whole else repr(float(value)).replace("e+", "e")


def between(low: float, high: float) -> float:
    """The number of fewest digits from ``low`` to ``high`` (low < high), the middle one of them.

    >>> between(9, 10), between(10, 11), between(0.1234, 0.21), between(1023, 1025), between(-3, 5)
    (10.0, 10.0, 0.2, 1024.0, 0.0)
    """
    if low <= 0 <= high:
        return 0.0
    for exponent in range(math.floor(math.log10(max(abs(low), abs(high)))), -330, -1):
        found = _multiple(low, high, exponent)
        if found is not None:
            return found
    return low


def _multiple(low: float, high: float, exponent: int) -> float | None:
    """A multiple of 10^exponent between the two, the one nearest to the middle; None where there is none."""
    step = 10.0**exponent
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if first > last:
        return None
    place = min(max(round((low + high) / 2 / step), first), last)
    value = float(f"{place}e{exponent}")
    return value if low <= value <= high else None
