"""Which tool wrote a JSON file: by what is in it, never by its name."""

from __future__ import annotations

from typing import Protocol, cast

from perflaw.documents import DocumentNode, DocumentSource, json_document
from perflaw.errors import DataError
from perflaw.imports import asv, google_benchmark, pytest_benchmark
from perflaw.imports.benchmarks import Benchmarks

NEXT = "pytest --benchmark-json FILE.json, then perflaw fit FILE.json"
"""One way to a file that is read."""


class Importer(Protocol):
    """A module that reads the results of one tool."""

    def recognises(self, document: DocumentNode) -> bool:
        """Whether the document is the tool's."""

    def read(self, document: DocumentNode) -> Benchmarks:
        """Its benchmarks; DataError where the document is not as the tool writes it."""


IMPORTERS = cast("tuple[Importer, ...]", (pytest_benchmark, google_benchmark, asv))
"""Those that are asked, in this order."""


def is_json(text: str) -> bool:
    """Whether a text can only be meant as JSON: no header of a CSV file begins with a bracket."""
    return text.lstrip()[:1] in ("{", "[")


def read_benchmarks(name: str, text: str) -> Benchmarks:
    """Benchmarks of a tool's JSON; ``name`` is the file for messages and for what lies beside it.

    Raises DataError where it is no JSON, of no known tool, damaged, or without benchmarks.
    """
    document = json_document(text, DocumentSource(name, DataError, NEXT))
    for importer in IMPORTERS:
        if importer.recognises(document):
            found = importer.read(document)
            if not found.responses():
                raise DataError(f"{name} has no results", f"{found.tool} wrote it without one that worked", NEXT)
            return found
    known = "pytest-benchmark, google-benchmark and asv's results are read, and CSV"
    raise DataError(f"{name}: JSON of an unknown tool, {_seen(document.value)}", known, NEXT)


def _seen(value: object) -> str:
    """What the document is, in a few words."""
    if not isinstance(value, dict):
        return f"a list of {len(value)}" if isinstance(value, list) else "a single value"
    if isinstance(value.get("schema"), str):
        return f"schema {value['schema']}"
    names = [str(key)[:30] for key in list(value)[:6]]
    more = ", …" if len(value) > len(names) else ""
    return f"an object with {', '.join(names)}{more}" if names else "an empty object"


# ---- Results of other tools' benchmarks: pytest-benchmark, asv, google-benchmark.

__all__ = ["Benchmarks", "is_json", "read_benchmarks"]
