"""The state of a fleet in the terminal: its stubs, and what was measured of which function."""

from __future__ import annotations

from perflaw.report.quantity import NOTHING, count, percent, quantity
from perflaw.report.tables import paragraph, printable, text_table
from perflaw.types.documents import Document

STUB_HEADINGS = ("host", "program", "pid", "heard", "waiting", "measures")
FUNCTION_HEADINGS = ("function", "calls", "hosts", "borders", "groups", "stable")
_HEARD_S = 120.0


def heard_text(seconds: float) -> str:
    """How long ago a stub was heard of."""
    return "never" if seconds > 1e9 else f"{seconds:.0f} s ago" if seconds < _HEARD_S else f"{seconds / 60:.0f} min ago"


def stub_row(stub: Document) -> list[str]:
    """The cells of one stub."""
    measures = [one["kind"] if not one["functions"] else ", ".join(one["functions"]) for one in stub["measures"]]
    refused = f"; refused: {', '.join(stub['refused'][:3])}" if stub["refused"] else ""
    return [
        stub["host"], stub["program"], str(stub["pid"] or NOTHING), heard_text(stub["heard_s"]), count(stub["spooled"]),
        (", ".join(measures) or "nothing yet") + refused,
    ]  # fmt: skip


def function_row(function: Document) -> list[str]:
    """The cells of one function; specifications are known while the controller serves."""
    borders = function["borders"]
    known = borders is not None
    return [
        function["component"], count(function["calls"]), str(function["hosts"]),
        (", ".join(quantity(one, "ns") for one in borders) or "none") if known else NOTHING,
        str(function["groups"]) if known else NOTHING, ("yes" if function["stable"] else "no") if known else NOTHING,
    ]  # fmt: skip


def fleet_text(document: Document, colour: bool = False) -> str:
    """A table of stubs and one of functions for each service."""
    parts = []
    for service in document["services"]:
        allow = ", ".join(map(printable, service["allow"]))
        parts.append(
            paragraph(f"{printable(service['service'])}: budget {percent(service['budget'])}, allowed {allow}")
        )
        parts.append(text_table(STUB_HEADINGS, [stub_row(one) for one in service["stubs"]], (2, 4), colour))
        if service["functions"]:
            rows = [function_row(one)[:3] for one in service["functions"]]
            parts.append("\n" + text_table(FUNCTION_HEADINGS[:3], rows, (1, 2), colour))
    return "".join(parts) or "no service is enrolled\n"
