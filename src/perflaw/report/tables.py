"""Tables without lines and texts in narrow columns, by Rich; plain text where the output is no terminal; HTML for notebooks."""

from __future__ import annotations

import html
import io
import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

WIDTH, NAME_WIDTH = 80, 23
"""Columns of a table, and of a column of names, where the output is no terminal."""
MIN_WIDTH: Final = 40
"""Narrower terminals wrap the lines themselves."""
MAX_LINE = 140
"""Longest line of a sentence."""
_GAP = 2
"""Columns between two columns of a table."""
_MIN_COLUMN = 6
_GLUE = "\u00a0"
"""Stands for a space that no line ends at."""
_KEPT = re.compile(r"(?<=\d) (?=[%a-zA-Zµ])|(?<=[<>=]) (?=\S)| (?=[<>=!]=? )")
"""Spaces within a quantity (``14 ns``) and about a comparison (``n <= 3``)."""


def width() -> int:
    """Columns of the output: what ``COLUMNS`` says, else the terminal's, else 80."""
    if not os.environ.get("COLUMNS", "").strip("0") and not sys.stdout.isatty():
        return WIDTH
    return max(MIN_WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)


def column(usual: int) -> int:
    """Columns for what has ``usual`` ones of 80."""
    return max(_MIN_COLUMN, usual * width() // WIDTH)


def line_width() -> int:
    """Columns of a sentence: those of the screen, but no more than a person reads without losing the line."""
    return min(MAX_LINE, width())


def text_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[int],
    colour: bool,
    names: Mapping[int, Sequence[str]] = MappingProxyType({}),
) -> str:
    """A table without lines; cells wrap where the width does not hold them. Text is literal.

    ``names`` are columns that share what the others leave of the width: their cells are broken behind these
    separators.
    """
    if names:
        rows = _with_broken_names([headings, *rows], names)[1:]
    table_rows = [[[printable(line) for line in cell.split("\n")] for cell in row] for row in (headings, *rows)]
    if not colour and (plain := _plain_table(table_rows, right)) is not None:
        return plain
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold" if colour else None)
    for index, heading in enumerate(headings):
        table.add_column(Text(heading), justify="right" if index in right else "left", overflow="fold")
    for row in table_rows[1:]:
        table.add_row(*(Text("\n".join(lines)) for lines in row))
    out = io.StringIO()
    Console(file=out, width=width(), force_terminal=colour, highlight=False).print(table)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def _with_broken_names(rows: Sequence[Sequence[str]], names: Mapping[int, Sequence[str]]) -> list[list[str]]:
    """The rows with the cells of the columns ``names`` broken to equal parts of what the other columns leave."""
    widths = [max(len(line) for cell in column for line in cell.split("\n")) for column in zip(*rows, strict=True)]
    taken = sum(size for index, size in enumerate(widths) if index not in names)
    room = (width() - taken - _GAP * (len(widths) - 1)) // len(names)
    return [
        [broken(printable(cell), names[index], room) if index in names else cell for index, cell in enumerate(row)]
        for row in rows
    ]


def _plain_table(rows: Sequence[Sequence[Sequence[str]]], right: Sequence[int]) -> str | None:
    """The lines of each cell of each row beside each other; None where Rich is needed to wrap or to measure them.

    Rich makes the same, but takes a second for a thousand rows.
    """
    texts = {character for row in rows for lines in row for line in lines for character in line}
    if any(unicodedata.east_asian_width(one) in "WF" or unicodedata.combining(one) for one in texts):
        return None
    widths = [max(len(line) for lines in column for line in lines) for column in zip(*rows, strict=True)]
    if sum(widths) + _GAP * (len(widths) - 1) > width():
        return None
    out = []
    for row in rows:
        for place in range(max(map(len, row))):
            cells = [lines[place] if place < len(lines) else "" for lines in row]
            padded = [
                cell.rstrip().rjust(size) if index in right else cell.ljust(size)
                for index, (cell, size) in enumerate(zip(cells, widths, strict=True))
            ]
            out.append((" " * _GAP).join(padded).rstrip() + "\n")
    return "".join(out)


def printable(text: str) -> str:
    """The text with control characters escaped: a name must not drive the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def clipped(name: str, columns: int) -> str:
    """The end of a name that ``columns`` hold: whole parts between dots where the last part fits, ``….Class.function``."""
    if len(name) <= columns:
        return name
    end = name[len(name) - columns + 1 :]
    return "…" + end[max(end.find("."), 0) :]


def broken(text: str, separators: str | Sequence[str], width: int) -> str:
    """The text in lines of at most ``width``, broken behind the first separator that helps, else anywhere.

    Continued lines are indented by one. Quantities and comparisons stay whole where they can.

    >>> print(broken("package.module.Class.function", ".", 20))
    package.module.
     Class.function
    >>> print(broken("[a > 3 && b.len <= 20] {9 %} 14 ns · n", [" && ", " "], 16))
    [a > 3 &&
     b.len <= 20]
     {9 %} 14 ns · n
    """
    several = [separators] if isinstance(separators, str) else list(separators)
    lines = _lines(_KEPT.sub(_GLUE, text), several, max(width, _MIN_COLUMN))
    return "\n ".join(line.strip(" " + _GLUE) for line in lines).replace(_GLUE, " ")


def _lines(text: str, separators: list[str], width: int, used: int = 0) -> Iterator[str]:
    """Lines of the text; ``used`` is how far the first is indented, the others are by one."""
    line, indent = "", used
    pieces = text.split(separators[0]) if separators else []
    pieces[:-1] = [piece + separators[0] for piece in pieces[:-1]]
    for piece in pieces:
        if len((line + piece).rstrip(" ")) + indent <= width:
            line += piece
            continue
        if line:
            yield line
            line, indent = "", 1
        *whole, line = _lines(piece, separators[1:], width, indent) if separators else [piece]
        for one in whole:
            yield one
            indent = 1
    if separators:
        yield line
        return
    while len(text.rstrip(" ")) + indent > width:
        yield text[: width - indent]
        text, indent = text[width - indent :], 1
    yield text


def paragraph(text: str) -> str:
    r"""A sentence below a table, in lines of at most 80 columns; what is continued is indented by two.

    >>> paragraph("a " * 45)
    'a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a\n  a a a a a\n'
    """
    indent = " " * (len(text) - len(text.lstrip(" ")))
    # Options that a person copies stay whole.
    lines = textwrap.wrap(
        text.strip(), line_width(), initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False
    )
    return "\n".join(lines) + "\n"


MAX_HTML_ROWS: Final = 30
"""Rows that a table in a notebook shows."""


MAX_SHORT: Final = 1e5
"""Numbers below which six digits are enough to read; larger ones are told in full."""


def html_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table as HTML; what is no text is written by ``str``, fractions below 100,000 with six digits.

    Further rows are counted.

    >>> html_table(["n"], [["<b>"], [1.6567625211289044]])
    '<table><thead><tr><th>n</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr><tr><td>1.65676</td></tr></tbody></table>'
    """

    def shown(cell: object) -> str:
        return html.escape(f"{cell:.6g}" if isinstance(cell, float) and abs(cell) < MAX_SHORT else str(cell))

    head = "".join(f"<th>{html.escape(one)}</th>" for one in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{shown(cell)}</td>" for cell in row) + "</tr>" for row in rows[:MAX_HTML_ROWS]
    )
    more = f"<p>{len(rows) - MAX_HTML_ROWS} more</p>" if len(rows) > MAX_HTML_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
