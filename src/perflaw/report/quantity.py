"""Numbers as people read them: two digits, a unit that fits, thousands grouped. Shared by the terminal and the page."""

from __future__ import annotations

import math

from perflaw.laws import units

NOTHING = "—"
"""What stands where there is no number."""
UNKNOWN = "unknown"
"""What stands in the place of a number whose interval says nothing."""
MAX_FACTOR = 100.0
"""From this ratio of its ends on, an interval for the mean says nothing."""

# (from this value on, size of the unit, its name). A unit starts slightly under its size, because 999.6 ns rounds to
# 1.0 µs and not to 1,000 ns; minutes and longer start late, because "90 s" reads better than "1.5 min".
_TIME = (
    (0.0, 1.0, "ns"),
    (999.5, 1e3, "µs"),
    (999.5e3, 1e6, "ms"),
    (999.5e6, 1e9, "s"),
    (120e9, 60e9, "min"),
    (7200e9, 3600e9, "h"),
    (2 * 86400e9, 86400e9, "days"),
    (730 * 86400e9, 365.25 * 86400e9, "years"),
)
_THOUSANDTH = "×10⁻³"
"""Unit in which recordings keep a number with decimals as a whole number."""
_BYTES = ((0.0, 1.0, "B"), (999.5, 1e3, "kB"), (999.5e3, 1e6, "MB"), (999.5e6, 1e9, "GB"), (999.5e9, 1e12, "TB"))
_COUNT = (
    (0.0, 1.0, ""),
    (9999.5, 1e3, "k"),
    (999.5e3, 1e6, "M"),
    (999.5e6, 1e9, "G"),
    (999.5e9, 1e12, "T"),
    (999.5e12, 1e15, "P"),
    (999.5e15, 1e18, "E"),
    (999.5e18, 1.0, ""),
)


def significant(value: float | None) -> str:
    """A number with two significant digits, all its integer digits, and grouped thousands.

    >>> [significant(x) for x in (0, 0.0312, 0.9, 3, 9.97, 41.2, 22000, 3.2e18)]
    ['0', '0.031', '0.9', '3.0', '10', '41', '22,000', '3.2e18']
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    size = abs(value)
    if size >= 0.995:
        decimals = 1 if size < 9.95 else 0
        return f"{value:,.{decimals}f}" if size < 999_999.5 else _exponent(value)
    return f"{value:.2g}" if size >= 0.001 or size == 0 else _exponent(value)


def _exponent(value: float) -> str:
    mantissa, power = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(power)}"


def _unit(value: float, unit: str) -> tuple[float, str]:
    """Size and name of the unit in which ``value``, given in ``unit``, reads best.

    Units of time and size are rescaled whatever their prefix; a thousandth, as recordings keep numbers with decimals, is a
    step of its unit.
    """
    factor, unit = (1e-3, unit.removeprefix(_THOUSANDTH).strip()) if unit.startswith(_THOUSANDTH) else (1.0, unit)
    head, slash, rest = unit.partition("/")
    scale: tuple[tuple[float, float, str], ...] = _COUNT
    if unit in units.TIME:
        factor, scale = factor * units.TIME[unit], _TIME
    elif head in units.SIZE and (slash or not rest):
        factor, scale = (
            factor * units.SIZE[head],
            tuple((start, size, name + slash + rest) for start, size, name in _BYTES),
        )
    else:
        scale = tuple((start, size, f"{name} {unit}".strip()) for start, size, name in scale)
    _, size, name = max(step for step in scale if step[0] <= abs(value) * factor or step[0] == 0)
    return size / factor, name


def quantity(value: float | None, unit: str) -> str:
    """A value with its unit, rescaled.

    >>> quantity(3e20, ""), quantity(3e21, ""), quantity(1e300, "calls")
    ('300 E', '3.0e21', '1.0e300 calls')
    >>> quantity(3100, "ns"), quantity(2.5e6, "bytes"), quantity(41, "calls"), quantity(2.5e6, "B/s"), quantity(None, "ns")
    ('3.1 µs', '2.5 MB', '41 calls', '2.5 MB/s', '—')
    >>> quantity(200_000, "kB"), quantity(4_305, "×10⁻³ MB"), quantity(900, "ms"), quantity(1500, "×10⁻³")
    ('200 MB', '4.3 MB', '900 ms', '1.5')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    size, name = _unit(value, unit)
    return f"{significant(value / size)} {name}".strip()


def duration(ns: float | None) -> str:
    """A time.

    >>> duration(3100), duration(999.6), duration(41e9), duration(3600e9), duration(0)
    ('3.1 µs', '1.0 µs', '41 s', '60 min', '0 ns')
    """
    return quantity(ns, "ns")


def count(n: float | None) -> str:
    """A number of things: exact below ten thousand, two digits above.

    >>> count(41), count(9999), count(38_113), count(1_900_000), count(10**18)
    ('41', '9,999', '38 k', '1.9 M', '1.0e18')
    """
    if n is None or not math.isfinite(n):
        return NOTHING
    return f"{n:,.0f}" if abs(n) < 9999.5 else quantity(n, "") if abs(n) < 1e15 else _exponent(n)


def counted(n: int, noun: str) -> str:
    """A number of things with their name, in the plural where there is not exactly one.

    >>> counted(1, "run"), counted(0, "run"), counted(12_000, "branch")
    ('1 run', '0 runs', '12 k branches')
    """
    plural = noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")
    return f"{count(n)} {noun if n == 1 else plural}"


def number(value: float) -> str:
    """A feature's value: whole numbers exact below a billion, others with three digits.

    >>> number(22000), number(0.12345), number(1e18), number(-3)
    ('22,000', '0.123', '1e18', '-3')
    """
    if not math.isfinite(value):
        return NOTHING
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    if 100 <= abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:.3g}".replace("e+", "e")


def percent(share: float | None) -> str:
    """A share of 0 to 1.

    >>> percent(0.614), percent(0.0312), percent(0.0072), percent(0.0004), percent(0)
    ('61 %', '3 %', '0.7 %', '<0.1 %', '0 %')
    """
    if share is None or not math.isfinite(share):
        return NOTHING
    if 0 < share < 0.0005:
        return "<0.1 %"
    return f"{share * 100:.{1 if 0 < share < 0.0095 else 0}f} %"


def interval(low: float, high: float, unit: str) -> str:
    """Both ends; the unit once where one unit suits both.

    >>> interval(34e9, 50e9, "ns"), interval(90e6, 1.2e9, "ns")
    ('34–50 s', '90 ms–1.2 s')
    """
    size, name = _unit(high, unit)
    if abs(low) >= size / 10 or low == 0:
        return f"{significant(low / size)}–{significant(high / size)} {name}".strip()
    return f"{quantity(low, unit)}–{quantity(high, unit)}"


def is_known(mean: float, low: float, high: float) -> bool:
    """Whether the interval for a mean says where it is; one that reaches down to 0 does by its upper end.

    >>> is_known(3.0, 1.0, 90.0), is_known(3.0, 1.0, 110.0), is_known(3.0, 0.0, 9.0), is_known(3.0, 0.0, 90.0)
    (True, False, True, False)
    """
    return high <= (MAX_FACTOR * low if low > 0 else math.sqrt(MAX_FACTOR) * mean)


def estimate(mean: float | None, low: float | None, high: float | None, unit: str) -> str:
    """A value with the interval for it, in the value's unit where that reads well; no number if it is not known.

    None stands for an infinite end, as in documents.

    >>> estimate(41e9, 34e9, 50e9, "ns"), estimate(41e9, 90e6, 8e9, "ns"), estimate(41e9, 2e6, 9e20, "ns")
    ('41 s (34–50)', '41 s (90 ms–8.0 s)', 'unknown')
    """
    if mean is None or low is None or high is None or not is_known(mean, low, high):
        return UNKNOWN
    size, _ = _unit(mean, unit)
    if mean and (low == 0 or abs(low) >= size / 10) and abs(high) < size * 1000:
        return f"{quantity(mean, unit)} ({significant(low / size)}–{significant(high / size)})"
    return f"{quantity(mean, unit)} ({interval(low, high, unit)})"
