"""Times and numbers of a file, exactly: decimal text to integer nanoseconds, never through a float."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

MOST_DIGITS = 19
"""A stamp has at most so many digits before its point: what follows fits into 64 bits or is refused."""
_MOST_NS = 1 << 62
Number = int | Decimal


def number(value: object) -> Number | None:
    """An int or a Decimal of a JSON value, text of a number included; None where it is no finite number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | Decimal):
        found: Number = value
    elif isinstance(value, str):
        try:
            found = Decimal(value)
        except InvalidOperation:
            return None
    else:
        return None
    return found if isinstance(found, int) or found.is_finite() else None


def nanoseconds(value: Number, unit_ns: int) -> int | None:
    """The stamp in ns, halves to even; None where it is too large for 64 bits.

    >>> nanoseconds(Decimal("0.0015"), 1000), nanoseconds(7, 1000)
    (2, 7000)
    """
    if isinstance(value, Decimal):
        if value and value.adjusted() > MOST_DIGITS:
            return None
        value = int((value * unit_ns).to_integral_value(ROUND_HALF_EVEN))
    else:
        value *= unit_ns
    return value if -_MOST_NS < value < _MOST_NS else None
