"""What a run printed, where it was kept, and the numbers that a pattern finds there."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Final

from perflaw.errors import DataError

STREAMS: Final = ("stdout", "stderr")
"""Looked through in this order."""
_THOUSANDS: Final = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")


def output_path(folder: Path, stream: str) -> Path:
    """Where a run in ``folder`` has what it printed on a stream."""
    return folder / f"{stream}.txt"


def read_output(folder: Path) -> list[str] | None:
    """What the run printed, stream by stream; None where that was not kept."""
    paths = [path for stream in STREAMS if (path := output_path(folder, stream)).is_file()]
    return [path.read_bytes().decode("utf-8", "replace") for path in paths] or None


def find_number(texts: list[str], pattern: str) -> float:
    r"""The number that the first match says: its first group, or all of it. ``^`` and ``$`` stand for ends of lines.

    DataError where nothing matches, or what does is no finite number.

    >>> find_number(["read 1,024 bytes"], r"read ([\d,]+)")
    1024.0
    """
    found = next(filter(None, (re.search(pattern, text, re.MULTILINE) for text in texts)), None)
    if found is None:
        raise DataError("nothing that it printed matches" if any(texts) else "it printed nothing")
    said = (found[1] if found.re.groups else found[0]) or ""
    try:
        number = float(said.replace(",", "") if _THOUSANDS.fullmatch(said) else said)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{said[:40]!r} is no number")
    return number
