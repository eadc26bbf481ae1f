"""Quantities as people write them (``4KiB``, ``50MB/s``, ``10 ms``, ``5 %``), settings compared, and the machine's values."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from perflaw.documents import DocumentNode

_SIZES = {f"{prefix}{byte}": 1000**power for power, prefix in enumerate(("", "k", "M", "G", "T")) for byte in ("B",)}
_BINARY = {f"{prefix}iB": 1024**power for power, prefix in enumerate(("K", "M", "G", "T"), 1)}
_COUNTS = {"k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_TIMES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}
_FREQUENCIES = {"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9}
UNITS: Final[Mapping[str, tuple[float, str]]] = {
    **{unit: (size, "B") for unit, size in {**_SIZES, "KB": 1000, **_BINARY}.items()},
    **{f"{unit}/s": (size, "B/s") for unit, size in {**_SIZES, "KB": 1000, **_BINARY}.items()},
    **{unit: (size, "") for unit, size in _COUNTS.items()},
    **{unit: (size, "s") for unit, size in _TIMES.items()},
    **{unit: (size, "Hz") for unit, size in _FREQUENCIES.items()},
    "%": (0.01, "share"),
}
"""Factor and base unit of each unit; K, M, G of a size are powers of 1,000, Ki, Mi, Gi powers of 1,024."""
NUMBER: Final = r"\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)?"
_QUANTITY = re.compile(rf"\s*([+-]?(?:{NUMBER}|\.\d+))\s*([A-Za-zµ%][\w%/]*)?\s*")
_HEX = re.compile(r"\s*0x[0-9a-fA-F]{1,16}\s*")
LONGEST = 64
"""Largest number of characters of a quantity."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a base unit."""

    value: int | float
    """The number; an int wherever it is whole."""
    unit: str = ""
    """``B``, ``s``, ``Hz``, ``B/s``, ``share``; empty for a plain number."""


def quantity(text: str) -> Quantity | None:
    """Return the quantity of a text; None where it is none.

    >>> quantity("4KiB"), quantity("10 ms"), quantity("5 %"), quantity("fast")
    (Quantity(value=4096, unit='B'), Quantity(value=0.01, unit='s'), Quantity(value=0.05, unit='share'), None)
    """
    if len(text) > LONGEST:
        return None
    if _HEX.fullmatch(text):
        return Quantity(int(text, 16))
    found = _QUANTITY.fullmatch(text)
    if not found or (found[2] and found[2] not in UNITS):
        return None
    factor, base = UNITS[found[2]] if found[2] else (1, "")
    value = _scaled(found[1].replace("_", ""), factor)
    return None if value is None else Quantity(value, base)


def read_quantity(node: DocumentNode) -> Quantity:
    """Return a number with or without a unit from a study file."""
    found = None if node.value is None or isinstance(node.value, dict | list | bool) else quantity(node.text())
    if found is None:
        node.expect("a number (such as 5, 0.1, 4KiB, 10ms)")
    return found


def read_number(node: DocumentNode, low: float, high: float = math.inf, unit: str = "") -> float:
    """Return a number between limits, in the given base unit if it has a unit."""
    found = read_quantity(node)
    if found.unit not in ("", unit):
        node.refuse(f"{node.text()} is in {found.unit}, but {unit or 'a plain number'} was expected")
    if not low <= found.value <= high:
        bounds = f"between {low:g} and {high:g}" if high < math.inf else f"at least {low:g}"
        node.refuse(f"{node.text()} is not {bounds}")
    return found.value


def read_whole(node: DocumentNode, low: int = 1, high: int = 10**9) -> int:
    """Return a whole number between limits."""
    value = read_number(node, low, high)
    if value != int(value):
        node.refuse(f"a whole number was expected, not {node.text()}")
    return int(value)


def _scaled(number: str, factor: float) -> int | float | None:
    """Return the product, exact where both are whole; None beyond the range of floats."""
    if number.lstrip("+-").isdigit():
        value: int | float = int(number) * factor
    else:
        value = float(number) * factor
        if value in (float("inf"), float("-inf")):
            return None
        written_whole = not number.lower().count("e") and "." not in number
        value = int(value) if value.is_integer() and (written_whole or abs(value) < 2**53) else value
    if abs(value) > 1e300:
        return None
    return float(f"{value:.15g}") if isinstance(value, float) else value


def host() -> dict[str, int | float]:
    """Return ``host.mem`` (bytes) and ``host.cpus`` (those that this process may use), as expressions name them."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"host.mem": memory, "host.cpus": len(os.sched_getaffinity(0))}


def same(expected: object, reported: object, unit: str | None = "") -> bool:
    """Return whether the target's text for a setting means that setting, whose numbers are in ``unit``.

    Numbers are compared as numbers; quantities in either meaning of K, M, G, since many servers write MB for 1,024²;
    on, true, yes and 1 as equal; texts without regard to case and surrounding blanks. Where the unit is unknown (None), the
    number before the target's unit may be meant.

    >>> same(4096, "4KiB"), same(134217728, "128MB"), same(True, "on"), same("WAL", " wal"), same(4096, "1024")
    (True, True, True, True, False)
    >>> same(500, "500ms", "ms"), same(500, "500ms"), same(500, "500ms", None)
    (True, False, True)
    """
    if isinstance(expected, bool):
        return _truth(reported) is expected
    numbers = _reported_numbers(reported, unit)
    if isinstance(expected, int | float):
        return any(_close(expected, number) for number in numbers)
    text = str(expected).strip().lower()
    if text and not text.isdecimal() and _truth(text) is not None and _truth(reported) is _truth(text):
        return True  # servers say `on`, 1 or true for the same
    if text == str(reported).strip().lower():
        return True
    return any(_close(mine, number) for mine in _numbers(expected) for number in numbers)


def read_back(wanted: object, reported: object, unit: str, tolerance: float) -> int | float | None:
    """Return the number that a target has in the place of the requested one, where it may round; None where it has another.

    It may print fewer decimals, or differ by a share of at most ``tolerance``. ``unit`` is that of the numbers.

    >>> read_back(1.8870417244, "1.89", "", 0.0), read_back(1000, "1024", "", 0.05), read_back(1.887, "2", "", 0.0)
    (1.89, 1024, None)
    """
    if isinstance(wanted, bool) or not isinstance(wanted, int | float):
        return None
    numbers = _reported_numbers(reported, unit)
    if not numbers:
        return None
    number = min(numbers, key=lambda number: abs(number - wanted))
    rounding = 0.0
    printed = re.fullmatch(r"[+-]?\d+\.(\d+)", str(reported).strip())
    if printed:
        rounding = 0.500001 * 10.0 ** -len(printed[1])
    return number if abs(number - wanted) <= max(rounding, tolerance * abs(wanted)) else None


def _reported_numbers(reported: object, unit: str | None) -> list[int | float]:
    """Return the numbers in a knob's unit that a target's text may stand for; see :func:`same`."""
    numbers = _numbers(reported)
    if isinstance(reported, str) and (reported.strip()[-1:].isalpha() or reported.strip().endswith("%")):
        factor = UNITS.get(unit or "", (1, ""))[0]
        numbers = [number / factor for number in numbers]
    if unit is None and isinstance(reported, str):
        numbers += _numbers(re.sub(r"\s*[A-Za-zµ%/]+\s*$", "", reported))
    return numbers


def _close(first: float, second: float) -> bool:
    return abs(first - second) <= 1e-9 * max(abs(first), abs(second))


def _truth(value: object) -> bool | None:
    word = str(value).strip().lower()
    if word in ("1", "1.0", "on", "true", "yes", "enabled", "t", "y"):
        return True
    return False if word in ("0", "0.0", "off", "false", "no", "disabled", "f", "n", "") else None


def _numbers(value: object) -> list[int | float]:
    """Return the numbers that a value or text may stand for."""
    if isinstance(value, int | float):
        return [value]
    text = str(value).strip()
    found = [read.value for read in [quantity(text)] if read]
    loose = re.fullmatch(rf"([+-]?{NUMBER})\s*([kKMGT])B?", text) if len(text) <= LONGEST else None
    if loose:
        power = " kMGT".index(loose[2].replace("K", "k"))
        found += [float(loose[1].replace("_", "")) * step**power for step in (1000, 1024)]
    return found
