"""The output of a run, where it was kept, and numbers that a pattern finds in it."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Final

from perflaw.errors import DataError

STREAMS: Final = ("stdout", "stderr")
"""Streams that are kept, in the order in which they are searched."""
_THOUSANDS: Final = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")


def output_path(folder: Path, stream: str) -> Path:
    """File with the output of the run in ``folder`` on a stream."""
    return folder / f"{stream}.txt"


def read_output(folder: Path) -> list[str] | None:
    """The output of a run, stream by stream; None where it was not kept."""
    paths = [path for stream in STREAMS if (path := output_path(folder, stream)).is_file()]
    return [path.read_bytes().decode("utf-8", "replace") for path in paths] or None


def find_number(texts: list[str], pattern: str) -> float:
    r"""The number in the first match of a pattern: its first group, or all of it. ``^`` and ``$`` match at ends of lines.

    DataError where nothing matches, or the match is not a finite number.

    >>> find_number(["read 1,024 bytes"], r"read ([\d,]+)")
    1024.0
    """
    found = next(filter(None, (re.search(pattern, text, re.MULTILINE) for text in texts)), None)
    if found is None:
        raise DataError("nothing that it printed matches" if any(texts) else "it printed nothing")
    word = (found[1] if found.re.groups else found[0]) or ""
    try:
        number = float(word.replace(",", "") if _THOUSANDS.fullmatch(word) else word)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{word[:40]!r} is no number")
    return number
