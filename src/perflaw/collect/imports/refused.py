"""Profiles that have no single invocations: recognised by how they begin, to say what they are and why not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from perflaw.errors import UsageError

SAMPLED: Final = (
    "it holds sampled stacks: no single call with a begin and an end, so no call has a time that could vary"
)
TOTALS: Final = "it holds totals of functions: no single call, and sums have no variance"
_NEXT: Final = "perflaw record -- PROGRAM"
_COLLAPSED = re.compile(r"[^;\n]+(;[^;\n]+)* \d+")
_PERF_SCRIPT = re.compile(r"\S.*? +\d+(/\d+)? +(\[\d+\] +)?\d+\.\d+: ")
_MARSHAL_DICT, _MARSHAL_TUPLE = (0x7B, 0xFB), (0x28, 0x29, 0xA8, 0xA9)


def refuse_bytes(file: str, data: bytes) -> None:
    """UsageError where the file is a known binary profile."""
    if data.startswith(b"PERFILE2"):
        raise _refused(file, "perf.data", SAMPLED)
    if data.startswith(b"gmon"):
        raise _refused(file, "a profile of gprof", TOTALS)
    if len(data) > 1 and data[0] in _MARSHAL_DICT and data[1] in _MARSHAL_TUPLE:
        raise _refused(file, "statistics of cProfile", TOTALS)
    if data[:1] == b"\x0a" and data[2:3] == b"\x08" and data[1:2] <= b"\x0c":
        raise _refused(file, "a profile of pprof", SAMPLED)
    if data[:1] == b"\x0a" and b"\0" in data[:4096]:
        why = "the binary form is not read"
        raise UsageError(f"{file}: looks like a trace of Perfetto", why, f"traceconv json {file} trace.json")


def refuse_text(file: str, text: str) -> None:
    """UsageError where the text is a known profile."""
    lines = [line for line in text[:20000].splitlines()[:50] if line.strip() and not line.startswith("#")]
    if text.startswith("# callgrind format") or (lines and re.match(r"(version|creator|events|positions): ", lines[0])):
        raise _refused(file, "a profile of callgrind", TOTALS)
    if "Flat profile:" in text[:2000] or "Each sample counts as" in text[:2000]:
        raise _refused(file, "a report of gprof", TOTALS)
    if re.search(r"\d+ function calls.* in [\d.]+ seconds", text[:2000]):
        raise _refused(file, "a report of cProfile", TOTALS)
    if text.lstrip().startswith(("<?xml", "<svg")):
        raise _refused(file, "a flame graph", SAMPLED)
    if lines and _PERF_SCRIPT.match(lines[0]):
        raise _refused(file, "the output of perf script", SAMPLED)
    if lines and all(_COLLAPSED.fullmatch(line) for line in lines[:-1] or lines):
        raise _refused(file, "collapsed stacks", SAMPLED)


def refuse_document(file: str, document: Mapping[str, object]) -> None:
    """UsageError where the JSON is a known profile."""
    if "speedscope" in str(document.get("$schema", "")):
        profiles = document.get("profiles")
        kinds = (
            {str(one.get("type")) for one in profiles if isinstance(one, dict)} if isinstance(profiles, list) else set()
        )
        if "evented" not in kinds:
            raise _refused(file, "a profile of speedscope", SAMPLED)
        why = "its events are not read"
        raise UsageError(f"{file}: an evented profile of speedscope", why, "export trace-event JSON or OTLP instead")
    if "nodes" in document and ("samples" in document or "timeDeltas" in document):
        raise _refused(file, "a CPU profile of V8", SAMPLED)
    if "root_frame" in document or ("frame_tree" in document and "sample_count" in document):
        raise _refused(file, "a profile of pyinstrument", SAMPLED)


def refuse_samples(file: str) -> UsageError:
    """A trace that has samples and no calls."""
    return _refused(file, "a trace without calls", SAMPLED)


def _refused(file: str, what: str, why: str) -> UsageError:
    return UsageError(f"{file}: {what}", why, _NEXT)
