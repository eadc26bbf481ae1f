"""Where the keys of a TOML file stand: ``tomllib`` tells values alone, and an error has to name a line."""

from __future__ import annotations

import re

Key = tuple[str | int, ...]
"""Names of tables and keys from the top, numbers of tables in arrays of them (from 0)."""
_HEADER = re.compile(r"\s*(\[\[?)([^\[\]]+)\]\]?\s*(#.*)?")
_ASSIGNMENT = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


def lines_of(text: str) -> dict[Key, int]:
    r"""Line of each table and key, from 1, as they are written; keys of inline tables are not told.

    >>> lines_of("repeat = 2\n[[workload]]\nname = 'a'\n[[workload]]\nname = 'b'")[("workload", 1, "name")]
    5
    """
    found: dict[Key, int] = {}
    counts: dict[Key, int] = {}
    table: Key = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table = _table(header[2], header[1] == "[[", counts)
            found.setdefault(table, number)
        elif assignment := _ASSIGNMENT.match(line):
            found.setdefault((*table, *_parts(assignment[1])), number)
    return found


def line_of(lines: dict[Key, int], key: Key) -> int | None:
    """Line of a key, or of the nearest table around it; None where none was found."""
    return next((lines[key[:end]] for end in range(len(key), 0, -1) if key[:end] in lines), None)


def _parts(text: str) -> list[str]:
    return [part.strip("\"'") for part in _PART.findall(text)]


def _table(text: str, array: bool, counts: dict[Key, int]) -> Key:
    """The table that a header opens; within arrays it belongs to their newest element."""
    key: Key = ()
    parts = _parts(text)
    for place, part in enumerate(parts):
        key = (*key, part)
        if array and place == len(parts) - 1:
            counts[key] = counts.get(key, -1) + 1
        if key in counts:
            key = (*key, counts[key])
    return key
