"""Which tool wrote a trace: by what is in the file, never by its name."""

from __future__ import annotations

import gzip
import json
import zlib
from decimal import Decimal
from pathlib import Path

from perflaw.collect.imports.chrome import ChromeReader
from perflaw.collect.imports.events import mapping
from perflaw.collect.imports.otlp import OtlpReader
from perflaw.collect.imports.refused import refuse_bytes, refuse_document, refuse_samples, refuse_text
from perflaw.collect.imports.trace import Trace
from perflaw.collect.imports.uftrace import is_data, read_data
from perflaw.errors import DataError

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
