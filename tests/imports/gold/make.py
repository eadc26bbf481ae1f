"""Make the traces of other tools in this folder with the tools themselves.

    python -m venv tools && tools/bin/pip install opentelemetry-sdk opentelemetry-exporter-zipkin-json \
        opentelemetry-exporter-otlp-proto-common perfetto speedscope
    apt-get install hyperfine golang-go cargo librust-criterion-dev default-jdk-headless
    tools/bin/python tests/imports/gold/make.py

The programs sleep so that their times are known, and the tests ask only for lower bounds of them.
"""

import base64
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

FOLDER = Path(__file__).parent


class Shop:
    """Orders: each with a payment that waits and a mail that runs beside it; one in five fails."""

    def __init__(self, tracer, links):
        self.tracer, self.links = tracer, links

    def order(self, number):
        from opentelemetry.trace import Link, Status, StatusCode

        with self.tracer.start_as_current_span("order", attributes={"items": number, "gift": number % 2 == 0}) as span:
            mail = self.tracer.start_span("mail")
            with self.tracer.start_as_current_span("pay", attributes={"euro": 2.5 * number, "card": "visa"}):
                time.sleep(0.0002 * number)
            if number % 5 == 0:
                span.set_status(Status(StatusCode.ERROR, "no stock"))
            self.links.append(Link(span.get_span_context()))
        mail.end()

    def batch(self):
        with self.tracer.start_as_current_span("batch", links=self.links[:4]):
            time.sleep(0.0002)


def opentelemetry():
    """OTLP in protobuf, OTLP in JSON, and Zipkin's JSON, by OpenTelemetry's own SDK and exporters."""
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.exporter.zipkin.json.v2 import JsonV2Encoder
    from opentelemetry.exporter.zipkin.node_endpoint import NodeEndpoint
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept, provider = InMemorySpanExporter(), TracerProvider(resource=Resource({"service.name": "shop"}))
    provider.add_span_processor(SimpleSpanProcessor(kept))
    shop = Shop(provider.get_tracer("shop"), [])
    for number in range(1, 11):
        shop.order(number)
    shop.batch()
    spans = kept.get_finished_spans()
    request = encode_spans(spans)
    (FOLDER / "otlp.pb").write_bytes(request.SerializeToString())
    document = MessageToDict(request)
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:  # OTLP writes identities in hexadecimal, not in Base64 as protobuf's JSON
                for key in ("traceId", "spanId", "parentSpanId"):
                    if key in span:
                        span[key] = base64.b64decode(span[key]).hex()
    (FOLDER / "otlp.json").write_text(json.dumps(document))
    (FOLDER / "zipkin.json").write_bytes(JsonV2Encoder().serialize(spans, NodeEndpoint()).encode())


def perfetto():
    """Slices of two threads by Perfetto's own builder; names as numbers, stamps in steps."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackDescriptor, TrackEvent
    from perfetto.trace_builder.proto_builder import TraceProtoBuilder

    builder, sequence = TraceProtoBuilder(), 7
    process, threads = uuid.uuid4().int & (1 << 63) - 1, [11, 12]
    packet = builder.add_packet()
    packet.track_descriptor.uuid = process
    packet.track_descriptor.process.pid, packet.track_descriptor.process.process_name = 42, "encoder"
    for thread in threads:
        descriptor: TrackDescriptor = builder.add_packet().track_descriptor
        descriptor.uuid, descriptor.parent_uuid = thread, process
        descriptor.thread.pid, descriptor.thread.tid, descriptor.thread.thread_name = 42, thread, f"worker {thread}"
    packet = builder.add_packet()
    packet.trusted_packet_sequence_id, packet.sequence_flags = sequence, 1
    for iid, name in enumerate(("frame", "block"), 1):
        entry = packet.interned_data.event_names.add()
        entry.iid, entry.name = iid, name
    clock = 10**15 + 1
    for thread in threads:
        for frame in range(1, 21):
            for kind, name, step in [
                (TrackEvent.TYPE_SLICE_BEGIN, 1, 100),
                (TrackEvent.TYPE_SLICE_BEGIN, 2, 1000),
                (TrackEvent.TYPE_SLICE_END, 0, 1000 * frame),
                (TrackEvent.TYPE_SLICE_END, 0, 500),
            ]:
                clock += step
                packet = builder.add_packet()
                packet.timestamp, packet.trusted_packet_sequence_id, packet.sequence_flags = clock, sequence, 2
                packet.track_event.type, packet.track_event.track_uuid = kind, thread
                if name:
                    packet.track_event.name_iid = name
                if name == 2:
                    annotation = packet.track_event.debug_annotations.add()
                    annotation.name, annotation.int_value = "rows", frame
    (FOLDER / "perfetto.pftrace").write_bytes(builder.serialize())


ORDERS = """import time, speedscope
def leaf(n): time.sleep(0.0002 * n)
def work(n): leaf(n), leaf(2 * n)
with speedscope.track("orders.speedscope.json"):
    for n in range(1, 11): work(n)
"""


def evented():
    """Calls of a Python program by the package speedscope."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "orders.py").write_text(ORDERS)
        subprocess.run([sys.executable, "orders.py"], cwd=folder, check=True)
        told = (Path(folder) / "orders.speedscope.json").read_text().replace(folder + "/", "")
    (FOLDER / "orders.speedscope.json").write_text(told)


def hyperfine():
    """A command at three sizes."""
    command = ["hyperfine", "-N", "--runs", "4", "-P", "n", "1", "3", "sleep 0.00{n}"]
    subprocess.run([*command, "--export-json", str(FOLDER / "hyperfine.json")], check=True)


GO = """package gold
import ("fmt"; "sort"; "testing")
func BenchmarkSort(b *testing.B) {
    for _, kind := range []string{"random", "sorted"} {
        for _, n := range []int{100, 1000, 10000} {
            b.Run(fmt.Sprintf("n=%d/kind=%s", n, kind), func(b *testing.B) {
                b.ReportAllocs()
                for i := 0; i < b.N; i++ {
                    numbers := make([]int, n)
                    for j := range numbers {
                        numbers[j] = j
                        if kind == "random" { numbers[j] = j * 7919 % n }
                    }
                    sort.Ints(numbers)
                }
            })
        }
    }
}
func BenchmarkEmpty(b *testing.B) { for i := 0; i < b.N; i++ { } }
"""
RUST = """#![feature(test)]
extern crate test;
use test::{black_box, Bencher};
fn fold(n: u64) -> u64 { (0..black_box(n)).fold(0, |a, x| a ^ (x * x)) }
#[bench]
fn fold_100(b: &mut Bencher) { b.iter(|| fold(100)) }
#[bench]
fn fold_10000(b: &mut Bencher) { b.iter(|| fold(10000)) }
"""


def go():
    """Two repetitions of Go's benchmarks, with allocations."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "go.mod").write_text("module gold\ngo 1.19\n")
        (Path(folder) / "sort_test.go").write_text(GO)
        command = ["go", "test", "-bench", ".", "-benchtime", "200x", "-count", "2"]
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    (FOLDER / "go_bench.txt").write_text(done.stdout)


def rust():
    """Rust's own harness, whose lines Criterion writes too with ``--output-format bencher``."""
    with tempfile.TemporaryDirectory() as folder:
        about = '[package]\nname = "gold"\nversion = "0.1.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n'
        (Path(folder) / "Cargo.toml").write_text(about)
        (Path(folder) / "lib.rs").write_text(RUST)
        command, environment = ["cargo", "bench", "--offline"], {**os.environ, "RUSTC_BOOTSTRAP": "1"}
        done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    (FOLDER / "rust_bench.txt").write_text(done.stdout)


def jfr(to=FOLDER):
    """Recordings of Java's Flight Recorder, of calls and of samples, and what its own reader says of the calls."""
    with tempfile.TemporaryDirectory() as folder:
        for name, more in [("shop", ["5"]), ("samples", ["1", "samples"])]:
            subprocess.run(["java", str(FOLDER / "Shop.java"), f"{name}.jfr", *more], cwd=folder, check=True)
            (to / f"{name}.jfr.gz").write_bytes(gzip.compress((Path(folder) / f"{name}.jfr").read_bytes(), mtime=0))
        command = ["jfr", "print", "--json", "--events", "shop.*,jdk.FileRead,jdk.ThreadSleep", "shop.jfr"]
        told = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    events = [[one["type"], one["values"]] for one in json.loads(told)["recording"]["events"]]
    for _, values in events:
        values["eventThread"] = values["eventThread"]["javaThreadId"]
        values.pop("stackTrace", None)
    (to / "shop.jfr.json").write_text("[" + ",\n".join(map(json.dumps, events)) + "]\n")


CRITERION = """use criterion::{black_box, criterion_group, criterion_main, BenchmarkId, Criterion};
use std::time::Duration;
fn sums(c: &mut Criterion) {
    let mut group = c.benchmark_group("fold");
    group.sample_size(10).warm_up_time(Duration::from_millis(20)).measurement_time(Duration::from_millis(100));
    for n in [100u64, 1000, 10000] {
        group.bench_with_input(BenchmarkId::from_parameter(n), &n, |b, &n| b.iter(|| gold::fold(black_box(n))));
    }
    group.finish();
}
criterion_group!(benches, sums);
criterion_main!(benches);
"""


def criterion():
    """Criterion's own text; the crate and what it needs are Debian's (librust-criterion-dev)."""
    with tempfile.TemporaryDirectory() as folder:
        registry = (
            '[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "/usr/share/cargo/registry"\n'
        )
        about = '[package]\nname = "gold"\nversion = "0.1.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n'
        about += '[dev-dependencies]\ncriterion = "0.3"\n[[bench]]\nname = "sums"\npath = "sums.rs"\nharness = false\n'
        for name, text in {
            "config.toml": registry, "Cargo.toml": about, "sums.rs": CRITERION,
            "lib.rs": "pub fn fold(n: u64) -> u64 { (0..n).fold(0, |a, x| a ^ (x * x)) }",
        }.items():  # fmt: skip
            (Path(folder) / name).write_text(text)
        command = ["cargo", "--config", "config.toml", "bench", "--offline"]
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    (FOLDER / "criterion.txt").write_text(done.stdout)


if __name__ == "__main__":
    criterion()
    evented()
    jfr()
    opentelemetry()
    perfetto()
    hyperfine()
    go()
    rust()
