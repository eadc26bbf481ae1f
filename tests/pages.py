"""What a page of the documentation has a person type, write and see.

- A block in fences whose first line is a comment ``file: NAME`` is a file; the comment is part of it.
- A ``console`` block has commands (``$ …``), the lines of their here-documents, and below a command what it prints.
- An indented block is what the commands of the ``console`` block before it print.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cache
from itertools import chain
from pathlib import Path

import perflaw

TITLE = re.compile(r"(?:#|//|/\*|<!--) file: (\S+)")
HERE_DOCUMENT = re.compile(r"<<'?(\w+)'?$")
NUMBER = re.compile(r"[-−~+=<>≤≥×/·(\[{]*\d[\d.,:^–/…]*(?:e[+-]?\d+)?x?[)\]}]*[,;:.]?")
UNITS = {"%", "ns", "µs", "ms", "s", "k", "M", "G", "B/s", "kB", "MB", "GB", "MB/s", "GB/s", "kB/s"}
PLACE = re.compile(r".*\w:\d+(-\d+)?")
SOURCES = Path(perflaw.__file__).parent
MEASURED = re.compile(r"\d (?:[nµm]?s|[kMG]?B/s)\b|(?<!slowdown )\b\d+(?:\.\d+)?x\b")
"""What shows that a sample is of measured times: a time, a rate, or a ratio (3.1 µs, 270 MB/s, 1.8x)."""
SAME_WORDS = 0.4
"""Share of the words that a sample of measured times has in common with what the commands print."""


@dataclass(frozen=True)
class File:
    """A file that the page shows."""

    name: str
    text: str


@dataclass(frozen=True)
class Commands:
    """The commands of one block, and what the page says they print."""

    commands: list[str] = field(default_factory=list)
    sample: list[str] = field(default_factory=list)


def read_page(text: str) -> list[File | Commands]:
    """Files and commands of a page, in its order."""
    steps: list[File | Commands] = []
    for language, lines in _blocks(text):
        title = TITLE.match(lines[0])
        if language == "console":
            steps.append(_commands(lines))
        elif title:
            steps.append(File(title[1], "\n".join(lines) + "\n"))
        elif not language:
            last = steps[-1] if steps else None
            assert isinstance(last, Commands), f"no commands before this output: {lines[0]}"
            last.sample.extend(lines)
    return steps


def _blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """Language and lines of each block; the language of an indented one is empty."""
    language, block, above = None, [], ""
    for line in text.split("\n"):
        if language:  # within fences
            if line == "```":
                yield language, block
                language, block = None, []
            else:
                block.append(line)
        elif line.startswith("    ") and (block or not above):
            block.append(line[4:])
        elif block and not line:
            block.append(line)
        else:
            if block:
                yield "", block
            language, block = line.removeprefix("```") if line.startswith("```") else None, []
        above = line


def _commands(lines: list[str]) -> Commands:
    block, end = Commands(), None
    for line in lines:
        if end:
            block.commands[-1] += f"\n{line}"
            end = None if line == end else end
        elif line.startswith("$ "):
            block.commands.append(line[2:])
            if here := HERE_DOCUMENT.search(line):
                end = here[1]
        else:
            block.sample.append(line)
    return block


def words(text: str) -> list[str]:
    """The words of an output; numbers with their units become ``#``, bars and lines of a drawing go."""
    found: list[str] = []
    for word in text.split():
        if NUMBER.fullmatch(word):
            word = "#"
        elif (word in UNITS and found and found[-1] == "#") or not re.search(r"\w", word):
            continue
        if word != "#" or found[-1:] != ["#"]:
            found.append(word)
    return found


def difference(sample: list[str], printed: str, known: str) -> str | None:
    """How a page's sample differs from what the commands print, or None where it does not.

    Numbers are masked. What does not depend on clocks is printed line by line. Measured times differ from one run to
    the next, and with them which rows a table has and what is said of them: there a good part of the words must be
    printed in the sample's order, and every other word must be one that perflaw still has or one of the ``known``
    text, the programs of the page. Places in programs must be printed in any case.
    """
    expected, found = [words(line) for line in sample], [words(line) for line in printed.splitlines()]
    if not MEASURED.search("\n".join(sample)):
        return _missing_line([line for line in expected if line], found)
    all_expected, all_found = list(chain.from_iterable(expected)), list(chain.from_iterable(found))
    blocks = SequenceMatcher(None, all_expected, all_found, autojunk=False).get_matching_blocks()
    share = sum(block.size for block in blocks) / len(all_expected)
    missing = set(all_expected) - set(all_found)
    gone = pieces(" ".join(missing)) - vocabulary() - pieces(known) | set(filter(PLACE.fullmatch, missing))
    if share >= SAME_WORDS and not gone:
        return None
    return f"{share:.0%} of the words are printed; words that nothing prints: {sorted(gone)}"


def _missing_line(expected: list[list[str]], found: list[list[str]]) -> str | None:
    """The first line of a sample that is not printed after the lines before it."""
    rest = iter(found)
    return next((f"not printed: {' '.join(line)}" for line in expected if line not in rest), None)


@cache
def vocabulary() -> set[str]:
    """Words in the strings of perflaw's sources."""
    nodes = (node for path in SOURCES.rglob("*.py") for node in ast.walk(ast.parse(path.read_text())))
    strings = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return pieces(" ".join(strings))


def pieces(text: str) -> set[str]:
    """Words and parts of names; numbers are none."""
    return set(re.findall(r"[^\W\d]+", text))
