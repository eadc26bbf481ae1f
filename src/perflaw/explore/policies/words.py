"""Why the law proposes a configuration, in words a person can check."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from perflaw.types.studies import Configuration, Knob, Value

BINARY = ("", "Ki", "Mi", "Gi", "Ti")
"""Prefixes of bytes."""
NAMED = 3
"""Changed knobs that are named; of more their number."""


def filling_words(number: int) -> str:
    """Return why trial ``number`` belongs to the start."""
    return f"start, trial {number}: least is known here"


def improvement_words(
    gains: tuple[float, float, float],
    configuration: Configuration,
    best: Configuration,
    tried: Sequence[Configuration],
    knobs: Sequence[Knob],
) -> str:
    """Return a sentence: what is predicted against the best so far (share, low, high), what differs, what is new."""
    middle, low, high = gains
    changed = [knob for knob in knobs if configuration[knob.name] != best[knob.name]]
    if len(changed) > NAMED:
        what = f"{len(changed)} knobs unlike the best so far"
    else:
        what = " with ".join(f"{knob.name} {setting(configuration[knob.name], knob)}" for knob in changed)
    return f"{_predicted(middle, low, high)}: {what}{_new(configuration, changed, tried, knobs)}"


def setting(value: Value, knob: Knob) -> str:
    """Return a setting as a person writes it.

    >>> setting(65536, Knob("page_size", "ordinal", unit="B"))
    '64 KiB'
    >>> setting(3, Knob("threads", "int"))
    '3'
    """
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return value
    if knob.unit in ("B", "byte", "bytes"):
        return _bytes(value)
    return f"{value:.4g} {knob.unit}".strip()


def _bytes(value: float) -> str:
    power = 0
    while power + 1 < len(BINARY) and value >= 1024:
        value, power = value / 1024, power + 1
    return f"{value:.4g} {BINARY[power]}B"


def _predicted(middle: float, low: float, high: float) -> str:
    if middle > 0.005:
        return f"predicted {_percent(middle)} % better ({_percent(low)} to {_percent(high)})"
    if high < 0.005:
        return f"nothing untried promises more (predicted {_percent(middle)} %, at best {_percent(high)} %)"
    return f"may be up to {_percent(high)} % better, is unsure (predicted {_percent(middle)} %)"


def _percent(share: float) -> str:
    return f"{100 * share:.2g}" if abs(share) < 0.1 else f"{100 * share:.0f}"


def _new(
    configuration: Configuration, changed: Sequence[Knob], tried: Sequence[Configuration], knobs: Sequence[Knob]
) -> str:
    """Name the first setting, or else the first pair, that no trial had; listed ones only: others are always new."""
    listed = [knob for knob in knobs if knob.kind not in ("int", "float")]
    for knob in changed:
        if knob in listed and all(each[knob.name] != configuration[knob.name] for each in tried):
            return _named([knob], changed, configuration) + "not tried yet"
    for one, two in combinations(listed, 2):
        if one not in changed and two not in changed:
            continue
        if not any(all(each[k.name] == configuration[k.name] for k in (one, two)) for each in tried):
            return _named([one, two], changed, configuration) + "not tried together yet"
    return ""


def _named(new: Sequence[Knob], changed: Sequence[Knob], configuration: Configuration) -> str:
    """Name what is new, unless that is all that was named before."""
    if list(new) == list(changed):
        return ", "
    return "; " + " with ".join(f"{knob.name} {setting(configuration[knob.name], knob)}" for knob in new) + " "
