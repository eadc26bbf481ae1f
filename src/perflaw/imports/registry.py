"""All formats of other tools that perflaw reads: a new format is a module with a `Format` and an entry here."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from perflaw.bounds import MAX_BYTES, read_pieces
from perflaw.errors import DataError, UsageError
from perflaw.imports import (
    asv,
    benchmark_lines,
    chrome,
    google_benchmark,
    hyperfine,
    jaeger,
    jfr,
    junit,
    lttng,
    otlp,
    perfetto,
    pytest_benchmark,
    speedscope,
    streaming,
    uftrace,
    zipkin,
)
from perflaw.imports.benchmarks import Benchmarks
from perflaw.imports.formats import ForeignFile, Format
from perflaw.imports.json_pieces import JsonPieces
from perflaw.imports.profiles import PROFILES
from perflaw.imports.tracks import Trace

BINARY_TRACES: Final[tuple[Format[Trace], ...]] = (uftrace.FORMAT, lttng.FORMAT, otlp.PROTOBUF, perfetto.FORMAT)
"""They are recognised first, because all others look at the text of a file."""
TRACES: Final[tuple[Format[Trace], ...]] = (
    *BINARY_TRACES,
    zipkin.FORMAT,  # before Chrome's, which is a list of objects too
    chrome.FORMAT,
    otlp.JSON,
    jaeger.FORMAT,
    speedscope.FORMAT,
)
"""Formats that hold calls, for ``perflaw import``."""
BENCHMARKS: Final[tuple[Format[Benchmarks], ...]] = (
    pytest_benchmark.FORMAT,
    google_benchmark.FORMAT,
    asv.FORMAT,
    hyperfine.FORMAT,
    junit.FORMAT,
    benchmark_lines.GO,
    benchmark_lines.CRITERION,
    benchmark_lines.BENCHER,
)
"""Formats that hold results of benchmarks, for ``perflaw fit``."""


def read_trace(path: Path, library: Path | None = None) -> Trace:
    """The calls of a file, gzip or plain, or of a folder of uftrace. The C core reads what it can, if there is a library of it.

    DataError says where it is damaged, UsageError why a profile without single calls is refused.
    """
    if jfr.recognises(path):
        return jfr.read(path, library)
    streamed = streaming.read(path, library) if library and streaming.recognises(path) else None
    if streamed and streamed.processes:
        return streamed
    if (found := _read_pieces(path, library)) is not None:
        return found
    if (found := _read_bytes(path, library)) is not None:
        return found
    file = ForeignFile.open(path, library)
    format_ = next((one for one in BINARY_TRACES if one.recognises(file)), None)
    if format_ is None:
        for profile in PROFILES:
            if profile.recognises(file):
                raise profile.refusal(file)
        format_ = next((one for one in TRACES if one.recognises(file)), None)
    if format_ is not None:
        trace = format_.read(file)
        if not trace.processes:
            raise DataError(f"{path}: no call in it", f"it is {trace.tool} without a call that begins", file.advice)
        return trace
    for other in BENCHMARKS:
        if other.recognises(file):
            raise UsageError(f"{path}: results of {other.name}", "they are not calls", f"perflaw fit {path}")
    raise _unknown(file, TRACES)


def _read_pieces(path: Path, library: Path | None) -> Trace | None:
    """The calls of a file of JSON that is read in pieces; None where reading it whole tells what is wrong."""
    try:
        head = next(read_pieces(path), b"").removeprefix(b"\xef\xbb\xbf") if path.is_file() else b""
        for format_ in TRACES:
            if format_.begins and format_.read_pieces and format_.begins.match(head):
                trace = format_.read_pieces(ForeignFile(path, library=library), JsonPieces.of(path))
                return trace if trace and trace.processes else None
    except (OSError, ValueError):
        return None
    except DataError:
        if path.stat().st_size > MAX_BYTES:
            raise
    return None


def _read_bytes(path: Path, library: Path | None) -> Trace | None:
    """The calls of a binary file that is read in pieces; None where it is none, or where it holds no call."""
    try:
        head = next(read_pieces(path), b"") if path.is_file() else b""
    except (OSError, ValueError):
        return None  # reading it whole tells why
    beginning = ForeignFile(path, head, library=library)
    format_ = next((one for one in BINARY_TRACES if head and one.recognises(beginning)), None)
    if format_ is None or format_.read_bytes is None:
        return None
    trace = format_.read_bytes(beginning)
    return trace if trace and trace.processes else None


def read_benchmarks(file: ForeignFile) -> Benchmarks:
    """The benchmarks in the results of a tool; DataError where it is of no known tool, damaged, or without results."""
    for format_ in BENCHMARKS:
        if format_.recognises(file):
            benchmarks = format_.read(file)
            if not benchmarks.responses():
                why = f"{benchmarks.tool} wrote it without a benchmark that worked"
                raise DataError(f"{file.path} has no results", why, file.advice)
            return benchmarks
    for other in TRACES:
        if other.recognises(file):
            raise UsageError(f"{file.path}: a trace ({other.name})", "it holds calls", f"perflaw import {file.path}")
    raise _unknown(file, BENCHMARKS)


def holds_benchmarks(file: ForeignFile) -> bool:
    """Whether a file can only be meant as results of a benchmark tool, not as a table of numbers."""
    return file.is_json or any(format_.recognises(file) for format_ in BENCHMARKS)


def _unknown(file: ForeignFile, formats: Iterable[Format[object]]) -> DataError:
    """The error about a file of no known format; it says what the file seems to be."""
    known = f"perflaw reads {', '.join(format_.name for format_ in formats)}"
    if not file.documents:
        empty = not file.path.is_dir() and not file.text.strip()
        return DataError(f"{file.path}: not a trace", "the file is empty" if empty else known, file.advice)
    document, keys = file.documents[0], file.keys
    if isinstance(keys.get("schema"), str):
        shown = f"schema {keys['schema']}"
    elif isinstance(document, list):
        shown = f"a list of {len(document)}"
    elif not isinstance(document, dict):
        shown = "a single value"
    else:
        names = ", ".join(key[:30] for key in list(keys)[:6]) + ", …" * (len(keys) > 6)
        shown = f"an object with {names}" if keys else "an empty object"
    return DataError(f"{file.path}: JSON of an unknown tool, {shown}", known, file.advice)
