"""Features of a whole run that need no declaration: numbers in its arguments, sizes of the files they name, its stdin."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from perflaw.record.secrets import is_secret

_OPTION: Final = re.compile(r"--?([A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)
OUTPUTS: Final = {"o", "out", "output"}
"""Options that name what a program writes; the result of an earlier run is no feature of the work."""
LINES_LIMIT: Final = 1 << 30
"""Lines of larger files are not counted."""


def run_features(
    template: Sequence[str], arguments: Sequence[str], varied: Mapping[str, str], declared: Mapping[str, float]
) -> dict[str, float]:
    """All features of one run: ``--vary`` values that are numbers, declared features, then those of the arguments.

    Features that the person named come first: of features that are proportional, learners keep the first.
    """
    features = {name: number for name, text in varied.items() if (number := as_number(text)) is not None}
    features.update(declared)
    for name, value in argument_features(template, arguments).items():
        features.setdefault(name, value)
    return features


def argument_features(template: Sequence[str], arguments: Sequence[str]) -> dict[str, float]:
    """Features of a program's arguments.

    ``size`` of ``--size 5``, ``argv1`` of a number in the first place, ``input.bytes`` and ``input.lines`` of ``--input FILE``.
    An argument that is just ``{name}`` of ``--vary`` is a feature already and does not give a second one.
    """
    features: dict[str, float] = {}
    option = ""
    for position, (pattern, argument) in enumerate(zip(template, arguments, strict=True), 1):
        match, is_number = _OPTION.fullmatch(argument), as_number(argument) is not None
        if match and not is_number:
            option = match[1] if match[2] is None else ""
            if match[2] is None or _is_placeholder(pattern.partition("=")[2]):
                continue
            name, value = match[1], match[2]
        else:
            name, value, option = option or f"argv{position}", argument, ""
            if is_number and _is_placeholder(pattern):
                continue
        if is_secret(name) or name in OUTPUTS:
            continue
        number = as_number(value)
        if number is not None:
            features[name] = number
        else:
            features.update({f"{name}.{kind}": size for kind, size in file_features(Path(value)).items()})
    return features


def _is_placeholder(pattern: str) -> bool:
    return re.fullmatch(r"\{\w+\}", pattern) is not None


def as_number(text: str) -> float | None:
    """The finite number that a text denotes, or None.

    >>> as_number("1e6"), as_number("-3"), as_number("nan"), as_number("x")
    (1000000.0, -3.0, None, None)
    """
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


_BLOCK: Final = 1 << 20
_OF_TEXTS: Final = bytes([*b"\a\b\t\n\v\f\r\x1b", *range(32, 256)])
"""Bytes of texts in any usual encoding; a file with others in its first block is binary, and its newlines mean nothing."""


def file_features(path: Path) -> dict[str, float]:
    """``bytes`` of a regular file and ``lines`` of a text; number and bytes of the files directly in a folder; else empty."""
    try:
        if path.is_dir():
            sizes = [entry.stat().st_size for entry in path.iterdir() if entry.is_file()]
            return {"files": float(len(sizes)), "bytes": float(sum(sizes))}
        if not path.is_file():
            return {}
        features = {"bytes": float(path.stat().st_size)}
        if features["bytes"] <= LINES_LIMIT:
            with path.open("rb") as file:
                first = file.read(_BLOCK)
                if not first.translate(None, _OF_TEXTS):
                    blocks = chain([first], iter(lambda: file.read(_BLOCK), b""))
                    features["lines"] = float(sum(block.count(b"\n") for block in blocks))
        return features
    except (OSError, ValueError):
        return {}  # no file can have this name, or it may not be read
