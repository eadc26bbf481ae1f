"""Which tool wrote a trace: by what is in the file, never by its name."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Final

from perflaw.errors import DataError, UsageError
from perflaw.imports.chrome import ChromeReader
from perflaw.imports.otlp import OtlpReader
from perflaw.imports.tracks import Trace, mapping
from perflaw.imports.uftrace import is_data, read_data

# ---- Profiles that have no single invocations: recognised by how they begin, to say what they are and why not.

SAMPLED: Final = (
    "it holds sampled stacks: no single call with a begin and an end, so no call has a time that could vary"
)
TOTALS: Final = "it holds totals of functions: no single call, and sums have no variance"
_RefusedNEXT: Final = "perflaw record -- PROGRAM"
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
    return UsageError(f"{file}: {what}", why, _RefusedNEXT)


KNOWN = "trace-event JSON (Chrome, Perfetto, viztracer, uftrace dump --chrome), OTLP spans in JSON, uftrace data"
EARLY = "the array of events has no end: the program was still writing it, or it was cut"
_NEXT = "perflaw import --help"


def read_trace(path: Path) -> Trace:
    """The calls of a file, gzip or plain, or of a folder of uftrace.

    DataError says where it is damaged, UsageError why a profile without single calls is refused.
    """
    if is_data(path):
        return read_data(path)
    file = str(path)
    data = _bytes(path)
    refuse_bytes(file, data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}, byte {error.start}: no text in UTF-8", f"read are: {KNOWN}", _NEXT) from None
    if text.lstrip()[:1] not in ("{", "["):
        refuse_text(file, text)
        why = "the file is empty" if not text.strip() else f"read are: {KNOWN}"
        raise DataError(f"{file}: no trace", why, _NEXT)
    documents, lost = _documents(file, text)
    trace = _read(file, documents, lost)
    if not trace.processes:
        raise DataError(f"{file}: no call in it", f"it is {trace.tool} without one that has a begin", _NEXT)
    return trace


def _read(file: str, documents: list[object], lost: str) -> Trace:
    first = documents[0]
    if isinstance(first, list):
        return ChromeReader(file, _tool(None)).read(first, lost)
    document = mapping(first)
    refuse_document(file, document)
    if "resourceSpans" in document:
        return OtlpReader(file).read(documents)
    events = document.get("traceEvents")
    if not isinstance(events, list):
        seen = ", ".join(list(document)[:6])
        raise DataError(f"{file}: JSON of an unknown tool, an object with {seen[:100]}", f"read are: {KNOWN}", _NEXT)
    trace = ChromeReader(file, _tool(document)).read(events, lost)
    if not trace.processes and ("stackFrames" in document or any(mapping(one).get("ph") == "P" for one in events)):
        raise refuse_samples(file)
    return trace


def _tool(document: object) -> str:
    told = mapping(document)
    if "viztracer_metadata" in told:
        return "viztracer"
    if "uftrace" in str(told.get("metadata", "")) or "uftrace" in str(told.get("otherData", "")):
        return "uftrace"
    return "trace-event JSON"


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise DataError(f"{path}: cannot be read", why, f"ls -l {path}") from error
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip", str(error).lower(), f"gzip -t {path}") from None


def _documents(file: str, text: str) -> tuple[list[object], str]:
    """The document, or one a line; and why it is not whole: an array of events may lack its end, by its format."""
    try:
        return [_parsed(text)], ""
    except json.JSONDecodeError as error:
        wrong = error
    except (ValueError, RecursionError, ArithmeticError) as error:
        raise DataError(f"{file}: cannot be read as JSON", str(error)[:100], _NEXT) from None
    if wrong.msg == "Extra data":
        return _lines(file, text), ""
    if text.lstrip().startswith("["):
        try:
            return [_parsed(text.rstrip().rstrip(",") + "]")], EARLY
        except ValueError:
            pass  # it is not the bracket alone that is missing
    raise _not_json(file, wrong, wrong.lineno)


def _lines(file: str, text: str) -> list[object]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                found.append(_parsed(line))
            except json.JSONDecodeError as error:
                raise _not_json(file, error, number) from None
    return found


def _parsed(text: str) -> object:
    found: object = json.loads(text, parse_float=Decimal, parse_constant=_no_number)
    return found


def _no_number(word: str) -> object:
    raise ValueError(f"{word} is no number of JSON")


def _not_json(file: str, error: json.JSONDecodeError, line: int) -> DataError:
    return DataError(f"{file}, line {line}, column {error.colno}: not JSON", error.msg.lower(), _NEXT)
