"""Spans of OpenTelemetry in its protocol (OTLP): JSON, one document or one a line, and protobuf.

The protobuf is a message ``TracesData``, several after each other, or each after its length in four bytes, as the
collector's file exporter writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import chain
from typing import Final

from perflaw.bounds import MAX_BYTES, check_size, read_pieces
from perflaw.imports import otlp_core
from perflaw.imports.formats import ForeignFile, Format, mapping, objects
from perflaw.imports.json_pieces import JsonPieces
from perflaw.imports.protobuf import Value, double, field, fields, message, messages, signed, text, whole
from perflaw.imports.spans import ForeignSpan, SpanReader
from perflaw.imports.tracks import Trace, number

_ERROR_STATUS: Final = (2, "STATUS_CODE_ERROR")
_BEGIN: Final = re.compile(rb'\s*\{\s*"resourceSpans"\s*:\s*\[')
_FRAME: Final = 4
"""Bytes of the length before an export."""
_RESOURCE_SPANS: Final = 0x0A
"""First byte of the message: field 1, bytes."""


class _JsonReader(SpanReader):
    """Reads the JSON of a file."""

    def pieces(self, text: JsonPieces) -> Iterator[ForeignSpan]:
        """The same from a text in pieces; ValueError where it is not as exporters write it."""
        count = 0
        while text.next():
            for key in text.members():
                for _ in text.items() if key == "resourceSpans" else text.pass_over():
                    service, before = "", count
                    for part in text.members():
                        if part == "resource":
                            if count > before:
                                raise ValueError("a resource after its spans")
                            service = str(_attributes(mapping(text.value())).get("service.name", ""))
                            continue
                        for _ in text.items() if part == "scopeSpans" else text.pass_over():
                            for inner in text.members():
                                for _ in text.items() if inner == "spans" else text.pass_over():
                                    count += 1
                                    yield self.span(count, service, mapping(text.value()))

    def spans(self) -> Iterator[ForeignSpan]:
        """All spans, in the order of the file."""
        count = 0
        resources = (one for document in self.file.documents for one in objects(mapping(document).get("resourceSpans")))
        for resource in resources:
            service = str(_attributes(mapping(resource.get("resource"))).get("service.name", ""))
            for scope in objects(resource.get("scopeSpans", resource.get("instrumentationLibrarySpans"))):
                for given in objects(scope.get("spans")):
                    count += 1
                    yield self.span(count, service, given)

    def span(self, count: int, service: str, given: Mapping[str, object]) -> ForeignSpan:
        """A span of the file."""
        name, trace, parent = given.get("name"), str(given.get("traceId", "")), str(given.get("parentSpanId") or "")
        end = None
        if given.get("endTimeUnixNano") not in (None, "", "0", 0):
            end = self.stamp(count, "endTimeUnixNano", given.get("endTimeUnixNano"), 1)
        return ForeignSpan(
            (trace, str(given.get("spanId", ""))),
            (trace, parent) if parent else None,
            service,
            name if isinstance(name, str) else "",
            self.stamp(count, "startTimeUnixNano", given.get("startTimeUnixNano"), 1),
            end,
            _attributes(given),
            mapping(given.get("status")).get("code") in _ERROR_STATUS,
            len(objects(given.get("links"))),
        )


def _attributes(holder: Mapping[str, object]) -> dict[str, object]:
    """Attributes by name: texts, numbers and truth values; lists and mappings are left out."""
    attributes = {}
    for pair in objects(holder.get("attributes")):
        value = mapping(pair.get("value"))
        for kind in ("stringValue", "intValue", "doubleValue", "boolValue"):
            if kind in value:  # 64-bit integers are texts in this JSON
                plain = number(value[kind]) if kind in ("intValue", "doubleValue") else value[kind]
                attributes[str(pair.get("key", ""))] = plain
    return attributes


class _ProtobufReader(SpanReader):
    """Reads the protobuf of a file."""

    def spans(self) -> Iterator[ForeignSpan]:
        """All spans, in the order of the file; DataError where a message is damaged."""
        count = 0
        try:
            for resource_spans in _resource_spans(self.file.data):
                parts = list(fields(resource_spans))
                resources = [message(value) for key, value in parts if key == 1]
                attributes = [_pair(message(value)) for one in resources for key, value in fields(one) if key == 1]
                service = str(dict(attributes).get("service.name", ""))
                for key, scope in parts:
                    for inner, given in fields(message(scope)) if key == 2 else ():
                        if inner == 2:
                            count += 1
                            yield _span(message(given), service)
        except ValueError as error:
            raise self.wrong(count + 1, f"its protobuf is damaged: {error}") from None


def _resource_spans(data: bytes) -> Iterator[bytes]:
    """The messages ``ResourceSpans`` of a file, whether or not each export stands after its length."""
    place = 0
    while place < len(data):
        framed = data[place] != _RESOURCE_SPANS
        length = int.from_bytes(data[place : place + 4], "big") if framed else len(data) - place
        place += 4 * framed
        if place + length > len(data):
            raise ValueError(f"an export of {length} bytes, of which only {len(data) - place} are there")
        yield from (message(value) for key, value in fields(data[place : place + length]) if key == 1)
        place += length


def _exports(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The exports of a file that is read in pieces, or single ``ResourceSpans`` where they have no lengths before them.

    ValueError where it is damaged.
    """
    held = bytearray()
    rest = iter(pieces)
    for piece in rest:
        held += piece
        while len(held) >= _FRAME:
            if held[0] == _RESOURCE_SPANS:
                yield from (field(1, one) for one in messages(chain([bytes(held)], rest), 1, MAX_BYTES))
                return
            end = _FRAME + int.from_bytes(held[:_FRAME], "big")
            check_size(end)
            if end > len(held):
                break
            yield bytes(held[:end])
            del held[:end]
    if held:
        raise ValueError("it ends in the middle of an export")


def _span(data: bytes, service: str) -> ForeignSpan:
    """A message ``Span``."""
    single: dict[int, Value] = {}
    attributes: dict[str, object] = {}
    links = 0
    failed = False
    for key, value in fields(data):
        if key == 9:
            name, plain = _pair(message(value))
            attributes[name] = plain
        elif key == 13:
            links += 1
        elif key == 15:
            failed = any(inner == 3 and code == _ERROR_STATUS[0] for inner, code in fields(message(value)))
        else:
            single[key] = value
    trace, parent = message(single.get(1, b"")).hex(), message(single.get(4, b"")).hex()
    return ForeignSpan(
        (trace, message(single.get(2, b"")).hex()),
        (trace, parent) if parent else None,
        service,
        text(single.get(5, b"")),
        whole(single.get(7, 0)),
        whole(single.get(8, 0)) or None,
        attributes,
        failed,
        links,
    )


def _pair(data: bytes) -> tuple[str, object]:
    """A message ``KeyValue``: name and value, None where the value is a list or a mapping."""
    name = ""
    plain: object = None
    for key, value in fields(data):
        if key == 1:
            name = text(value)
        elif key == 2:
            for kind, one in fields(message(value)):
                if kind == 1:
                    plain = text(one)
                elif kind == 2:
                    plain = bool(one)
                elif kind == 3:
                    plain = signed(one)
                elif kind == 4:
                    plain = Decimal(double(one))
    return name, plain


def is_protobuf(file: ForeignFile) -> bool:
    """Whether a file begins with a message of spans, or with the length of one."""
    data = file.data
    try:
        first = next(_resource_spans(data), None) if data[:1] in (b"\0", b"\x0a") else None
        parts = list(fields(first)) if first else []
        if not parts or not {key for key, _ in parts} <= {1, 2, 3, 1000}:
            return False
        spans = (one for key, scope in parts if key == 2 for inner, one in fields(message(scope)) if inner == 2)
        span = next(spans, None)
        identity = {1: bytes(16), 2: bytes(8)} if span is None else dict(fields(message(span)))
        return len(message(identity.get(1, b""))) == 16 and len(message(identity.get(2, b""))) == 8
    except ValueError:
        return False


def _read_pieces(file: ForeignFile, text: JsonPieces) -> Trace | None:
    reader = _JsonReader(file)
    return reader.trace_in_pieces("OTLP", reader.pieces(text))


def _read_json(file: ForeignFile) -> Trace:
    reader = _JsonReader(file)
    return reader.trace("OTLP", reader.spans())


def _read_bytes(beginning: ForeignFile) -> Trace | None:
    path = beginning.path
    if beginning.library is None:
        return None
    try:
        return otlp_core.read(_exports(read_pieces(path)), beginning.library)
    except (OSError, ValueError):
        return None


def _read_protobuf(file: ForeignFile) -> Trace:
    if file.library and (trace := otlp_core.read([file.data], file.library)):
        return trace
    reader = _ProtobufReader(file)
    return reader.trace("OTLP", reader.spans())


JSON: Final = Format("OTLP spans in JSON", lambda file: "resourceSpans" in file.keys, _read_json, _BEGIN, _read_pieces)
PROTOBUF: Final = Format("OTLP spans in protobuf", is_protobuf, _read_protobuf, read_bytes=_read_bytes)
