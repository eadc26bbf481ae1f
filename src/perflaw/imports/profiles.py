"""Profiles without single calls. They are recognised only to say what they are and why perflaw cannot use them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from perflaw.errors import UsageError
from perflaw.imports import speedscope
from perflaw.imports.formats import ForeignFile

SAMPLED: Final = (
    "it holds sampled stacks: no single call with a begin and an end, so no call has a time that could vary"
)
TOTALS: Final = "it holds totals of functions: no single call, and sums have no variance"
_COLLAPSED = re.compile(r"[^;\n]+(;[^;\n]+)* \d+")
_PERF_SCRIPT = re.compile(r"\S.*? +\d+(/\d+)? +(\[\d+\] +)?\d+\.\d+: ")
_CALLGRIND = re.compile(r"# callgrind format|(version|creator|events|positions): ")
_MARSHALLED_DICT, _MARSHALLED_TUPLE = (0x7B, 0xFB), (0x28, 0x29, 0xA8, 0xA9)


@dataclass(frozen=True, slots=True)
class Profile:
    """A kind of file that cannot be imported."""

    name: str
    """What it is, for messages."""
    reason: str
    """Why it cannot be imported."""
    recognises: Callable[[ForeignFile], bool]
    """Tells by the content whether a file is one."""
    advice: str = "perflaw record -- PROGRAM"
    """What to do instead."""

    def refusal(self, file: ForeignFile) -> UsageError:
        """The error about a file of this kind."""
        return UsageError(f"{file.path}: {self.name}", self.reason, self.advice.format(file=file.path))


def _first_lines(file: ForeignFile) -> list[str]:
    """The first lines of a text that is not JSON, without blank lines and comments."""
    lines = [] if file.is_json else file.text[:20000].splitlines()[:50]
    return [line for line in lines if line.strip() and not line.startswith("#")]


def _is_collapsed(file: ForeignFile) -> bool:
    lines = _first_lines(file)
    return bool(lines) and all(_COLLAPSED.fullmatch(line) for line in lines[:-1] or lines)  # the last may be cut


NO_CALLS: Final = Profile("a trace without calls", SAMPLED, lambda file: False)
"""A trace that has samples instead of calls, which only its reader can tell."""
PROFILES: Final = (
    # Binary files come first, for the others look at the text.
    Profile("perf.data", SAMPLED, lambda file: file.data.startswith(b"PERFILE2")),
    Profile("a profile of gprof", TOTALS, lambda file: file.data.startswith(b"gmon")),
    Profile(
        "statistics of cProfile",
        TOTALS,
        lambda file: len(file.data) > 1 and file.data[0] in _MARSHALLED_DICT and file.data[1] in _MARSHALLED_TUPLE,
    ),
    Profile(
        "a profile of pprof",
        SAMPLED,
        lambda file: file.data[:1] == b"\x0a" and file.data[1:2] <= b"\x0c" and file.data[2:3] == b"\x08",
    ),
    Profile(
        "a profile of callgrind",
        TOTALS,
        lambda file: (
            file.text.startswith("# callgrind format") or bool(_CALLGRIND.match("".join(_first_lines(file)[:1])))
        ),
    ),
    Profile(
        "a report of gprof",
        TOTALS,
        lambda file: not file.is_json and bool(re.search("Flat profile:|Each sample counts as", file.text[:2000])),
    ),
    Profile(
        "a report of cProfile",
        TOTALS,
        lambda file: bool(re.search(r"\d+ function calls.* in [\d.]+ seconds", file.text[:2000])),
    ),
    Profile("a flame graph", SAMPLED, lambda file: file.text.lstrip().startswith(("<?xml", "<svg"))),
    Profile(
        "the output of perf script", SAMPLED, lambda file: bool(_PERF_SCRIPT.match("".join(_first_lines(file)[:1])))
    ),
    Profile("collapsed stacks", SAMPLED, _is_collapsed),
    Profile(
        "a profile of speedscope",
        SAMPLED,
        lambda file: "speedscope" in str(file.keys.get("$schema", "")) and not speedscope.recognises(file),
    ),
    Profile(
        "a CPU profile of V8",
        SAMPLED,
        lambda file: "nodes" in file.keys and bool({"samples", "timeDeltas"} & file.keys.keys()),
    ),
    Profile(
        "a profile of pyinstrument",
        SAMPLED,
        lambda file: "root_frame" in file.keys or {"frame_tree", "sample_count"} <= file.keys.keys(),
    ),
)
