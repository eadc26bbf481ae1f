"""Sentences below tables, in lines of 80 columns."""

from __future__ import annotations

import textwrap

WIDTH = 80


def paragraph(text: str) -> str:
    r"""The text in lines that fit; what is continued is indented by two.

    >>> paragraph("a " * 45)
    'a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a\n  a a a a a\n'
    """
    indent = " " * (len(text) - len(text.lstrip(" ")))
    lines = textwrap.wrap(text.strip(), WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")
    return "\n".join(lines) + "\n"
