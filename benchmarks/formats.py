"""How fast each format of `perflaw import` is read, and with how much memory.

    python benchmarks/formats.py [--calls 200000]

Each format is written with so many calls, in requests of eleven, and read by a process of its own: the file, its calls
and their call tree. Printed are calls a second of CPU time, and the peak of resident memory beside the size of the file.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PARTS = 10
"""Calls within each request."""


def requests(calls: int) -> Iterator[tuple[int, int, str, int, int]]:
    """Number, number of the parent or -1, name, begin and end in ns of each call; parents first."""
    clock, number = 10**15, 0
    while number < calls:
        root = number
        ends = clock + 1000 * PARTS + 1000
        yield root, -1, "request", clock, ends
        for part in range(PARTS):
            number += 1
            yield number, root, f"part {part}", clock + 1000 * part + 500, clock + 1000 * part + 1400
        clock, number = ends + 1000, number + 1


def chrome(calls: int, complete: bool) -> bytes:
    """Trace-event JSON with X events, or with B and E events."""
    events = []
    stack: list[tuple[str, int]] = []
    for _, parent, name, begin, end in requests(calls):
        common = {"name": name, "pid": 1, "tid": 1}
        if complete:
            events.append({"ph": "X", "ts": begin / 1000, "dur": (end - begin) / 1000, **common})
            continue
        while len(stack) > (parent >= 0):
            events.append({"ph": "E", "ts": stack[-1][1] / 1000, "pid": 1, "tid": 1, "name": stack.pop()[0]})
        events.append({"ph": "B", "ts": begin / 1000, **common})
        stack.append((name, end))
    events += [{"ph": "E", "ts": end / 1000, "pid": 1, "tid": 1, "name": name} for name, end in reversed(stack)]
    return json.dumps({"traceEvents": events}).encode()


BATCH = 512
"""Spans of an export, as OpenTelemetry's SDK sends them."""


def otlp(calls: int) -> Iterator[bytes]:
    """Messages of OTLP by OpenTelemetry's own classes, one for each export; each request is a trace."""
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    data, trace = TracesData(), 0
    for count, (number, parent, name, begin, end) in enumerate(requests(calls)):
        if count % BATCH == 0:
            yield data.SerializeToString()
            data = TracesData()
            resource_spans = data.resource_spans.add()
            service = resource_spans.resource.attributes.add()
            service.key, service.value.string_value = "service.name", "shop"
            scope = resource_spans.scope_spans.add()
        trace = number if parent < 0 else trace
        span = scope.spans.add(
            trace_id=trace.to_bytes(16, "big"), span_id=(number + 1).to_bytes(8, "big"), name=name,
            start_time_unix_nano=begin, end_time_unix_nano=end,
        )  # fmt: skip
        if parent >= 0:
            span.parent_span_id = (parent + 1).to_bytes(8, "big")
        items = span.attributes.add()
        items.key, items.value.int_value = "items", number % 100
    yield data.SerializeToString()


def otlp_json(calls: int) -> bytes:
    spans = [
        {
            "traceId": f"{number if parent < 0 else parent:032x}", "spanId": f"{number + 1:016x}",
            "parentSpanId": f"{parent + 1:016x}" if parent >= 0 else "", "name": name,
            "startTimeUnixNano": str(begin), "endTimeUnixNano": str(end),
            "attributes": [{"key": "items", "value": {"intValue": str(number % 100)}}],
        }
        for number, parent, name, begin, end in requests(calls)
    ]  # fmt: skip
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


def zipkin(calls: int) -> bytes:
    spans = [
        {
            "traceId": f"{number if parent < 0 else parent:032x}", "id": f"{number + 1:016x}",
            **({"parentId": f"{parent + 1:016x}"} if parent >= 0 else {}), "name": name,
            "timestamp": begin / 1000, "duration": (end - begin) / 1000, "tags": {"items": str(number % 100)},
        }
        for number, parent, name, begin, end in requests(calls)
    ]  # fmt: skip
    return json.dumps(spans).encode()


def speedscope(calls: int) -> bytes:
    names = ["request", *(f"part {part}" for part in range(PARTS))]
    events: list[dict[str, Any]] = []
    open_until: list[tuple[int, int]] = []
    for _, parent, name, begin, end in requests(calls):
        while len(open_until) > (parent >= 0):
            frame, at = open_until.pop()
            events.append({"type": "C", "frame": frame, "at": at})
        events.append({"type": "O", "frame": names.index(name), "at": begin})
        open_until.append((names.index(name), end))
    events += [{"type": "C", "frame": frame, "at": at} for frame, at in reversed(open_until)]
    profile = {"type": "evented", "unit": "nanoseconds", "events": events}
    document = {"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": [profile]}
    return json.dumps({**document, "shared": {"frames": [{"name": name} for name in names]}}).encode()


def perfetto(calls: int) -> bytes:
    """Packets of slices, by Perfetto's own classes; names are numbers, as its library writes them."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket, TrackEvent

    def packed(packet: Any) -> bytes:
        packet.trusted_packet_sequence_id = 1
        data = packet.SerializeToString()
        size, length = len(data), bytearray()
        while size > 127:
            length.append(size & 127 | 128)
            size >>= 7
        return b"\x0a" + bytes([*length, size]) + data

    first = TracePacket(sequence_flags=TracePacket.SEQ_INCREMENTAL_STATE_CLEARED)
    first.track_descriptor.uuid, first.track_descriptor.thread.pid, first.track_descriptor.thread.tid = 7, 1, 1
    parts, stack, numbers = [packed(first)], [], {}

    def event(kind: int, stamp: int) -> Any:
        packet = TracePacket(timestamp=stamp)
        packet.track_event.type, packet.track_event.track_uuid = kind, 7
        return packet

    for number, parent, name, begin, end in requests(calls):
        while len(stack) > (parent >= 0):
            parts.append(packed(event(TrackEvent.TYPE_SLICE_END, stack.pop())))
        packet = event(TrackEvent.TYPE_SLICE_BEGIN, begin)
        if name not in numbers:
            numbers[name] = len(numbers) + 1
            packet.interned_data.event_names.add(iid=numbers[name], name=name)
        packet.track_event.name_iid = numbers[name]
        packet.track_event.debug_annotations.add(name="items", int_value=number % 100)
        parts.append(packed(packet))
        stack.append(end)
    parts += [packed(event(TrackEvent.TYPE_SLICE_END, end)) for end in reversed(stack)]
    return b"".join(parts)


PROGRAM_C = """#include <stdlib.h>
int part(int n) { __asm__ volatile(""); return n; }
int request(int n) { int sum = 0; for (int at = 0; at < PARTS; at++) sum += part(n + at); return sum; }
int main(int count, char **words) {
    int sum = 0;
    for (int at = atoi(words[1]); at > 0; at--) sum += request(at);
    return sum == 1;
}
"""
PROGRAM_PY = """import sys
def part(n): return n
def request(n): return sum([part(n + at) for at in range(PARTS)])
for at in range(int(sys.argv[1])): request(at)
"""


def uftrace(calls: int, path: Path) -> None:
    """A folder of uftrace: a program in C runs under it."""
    source, program = path.with_suffix(".c"), path.with_suffix(".out")
    source.write_text(PROGRAM_C.replace("PARTS", str(PARTS)))
    subprocess.run(["gcc", "-O1", "-fno-inline", "-pg", "-o", program, source], check=True)
    size = str(calls // (PARTS + 1))
    subprocess.run(["uftrace", "record", "-d", path, "-b", "32M", "-A", "part@arg1", program, size], check=True)


def viztracer(calls: int, path: Path) -> None:
    """Viztracer's JSON: a program in Python runs under it."""
    program = path.with_suffix(".py")
    program.write_text(PROGRAM_PY.replace("PARTS", str(PARTS)))
    words = [
        "-m",
        "viztracer",
        "--quiet",
        "--ignore_c_function",
        "--tracer_entries",
        str(3 * calls),
        "-o",
        f"{path}.json",
    ]
    subprocess.run([sys.executable, *words, program, str(calls // (PARTS + 1))], check=True, capture_output=True)
    Path(f"{path}.json").rename(path)


FORMATS: dict[str, Callable[[int], bytes]] = {
    "trace-event JSON, X events": lambda calls: chrome(calls, True),
    "trace-event JSON, B and E events": lambda calls: chrome(calls, False),
    "OTLP protobuf": lambda calls: b"".join(otlp(calls)),
    "OTLP JSON": otlp_json,
    "Zipkin": zipkin,
    "speedscope": speedscope,
    "Perfetto protobuf": perfetto,
}
TOOLS: dict[str, Callable[[int, Path], None]] = {"uftrace": uftrace, "viztracer": viztracer}
"""Formats whose files the tools themselves write."""


def read(path: Path) -> None:
    """What the process that is measured does: it prints its CPU seconds and peak memory."""
    from perflaw.imports.registry import read_trace
    from perflaw.imports.runs import core_file

    library = core_file(lambda text: None)
    began = sum(os.times()[:4])  # with that of the tools that read for us
    trace = read_trace(path, library)
    for process in trace.processes:
        process.tree(library, 1)
    status = Path("/proc/self/status").read_text()  # what getrusage tells includes the process that started this one
    peak = int(re.search(r"VmHWM:\s+(\d+)", status)[1])
    print(json.dumps({"seconds": sum(os.times()[:4]) - began, "kB": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--only", help="a part of the name of the formats to measure")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.read:
        read(chosen.read)
        return
    print(f"{'format':34} {'file':>8} {'calls/s':>9} {'memory':>8} {'of which file':>14}")
    for name in [*FORMATS, *TOOLS]:
        if chosen.only and chosen.only.lower() not in name.lower():
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace"
            if name in TOOLS:
                TOOLS[name](chosen.calls, path)
            else:
                path.write_bytes(FORMATS[name](chosen.calls))
            command = [sys.executable, __file__, "--read", str(path)]
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=dict(os.environ))
            found = json.loads(done.stdout)
            files = [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]
            size, peak = sum(one.stat().st_size for one in files) / 1e6, found["kB"] / 1e3
            speed = chosen.calls / found["seconds"]
            print(f"{name:34} {size:5.0f} MB {speed:9,.0f} {peak:5.0f} MB {peak / size:12.1f} x", flush=True)


if __name__ == "__main__":
    main()
