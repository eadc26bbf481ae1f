"""A planted query, told by Prometheus from what a continuous check sends: mine_prometheus.py [MINED_S] [CLEAN_S].

Starlette on uvicorn under load is mined, and watched by ``perflaw check --watch --otlp --metrics``. What the check sends is
read by OpenTelemetry's own messages, which refuse unknown fields, and handed to Debian's Prometheus as native histograms, as a
collector would. Prometheus also reads the check's file of metrics, and evaluates the exported rules, over a shorter time than
they have by default. Then a query is planted on one call path: an alert has to name the function, and none may fire before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.internal.encoder import _VarintBytes  # type: ignore[attr-defined]  # the length before each message
from mine_live import CALLEE, Load, mining
from mine_servers import debian, started
from mine_web import PACKAGES, free_port
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from shared import Bars, environment

from perflaw.report.mine.exports import LASTING, METRIC, WINDOW

BUDGET, SHORT_WINDOW, SHORT_LASTING, FOUND_S = 0.1, "1m", "20s", 180.0
SCRAPED = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
FINEST = 8
"""Largest scale of Prometheus' native histograms."""
CONFIGURATION = """
global: {{scrape_interval: 2s, evaluation_interval: 2s}}
rule_files: [rules.yml]
scrape_configs:
- job_name: collector
  static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
- job_name: check
  metrics_path: /check
  static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""
FIELDS = {
    "LabelPair": [("name", 1, "string"), ("value", 2, "string")],
    "BucketSpan": [("offset", 1, "sint32"), ("length", 2, "uint32")],
    "Histogram": [
        ("sample_count", 1, "uint64"),
        ("sample_sum", 2, "double"),
        ("schema", 5, "sint32"),
        ("zero_threshold", 6, "double"),
        ("zero_count", 7, "uint64"),
        ("positive_span", 12, "BucketSpan"),
        ("positive_delta", 13, "sint64"),
    ],
    "Metric": [("label", 1, "LabelPair"), ("histogram", 7, "Histogram")],
    "MetricFamily": [("name", 1, "string"), ("type", 3, "int32"), ("metric", 4, "Metric")],
}
"""The messages of Prometheus that a native histogram needs, with the numbers of their fields."""
REPEATED = {"positive_span", "positive_delta", "label", "metric"}
HISTOGRAM = 4


def messages() -> dict[str, Any]:
    """Their classes."""
    file = descriptor_pb2.FileDescriptorProto(name="metrics.proto", package="io.prometheus.client", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            label = kinds.LABEL_REPEATED if field in REPEATED else kinds.LABEL_OPTIONAL
            made = message.field.add(name=field, number=number, label=label)
            made.type = kinds.TYPE_MESSAGE if kind in FIELDS else getattr(kinds, f"TYPE_{kind.upper()}")
            if kind in FIELDS:
                made.type_name = f".io.prometheus.client.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = {one: pool.FindMessageTypeByName(f"io.prometheus.client.{one}") for one in FIELDS}
    return {name: message_factory.GetMessageClass(one) for name, one in found.items()}


class Collector:
    """Takes requests of OTLP, and gives the latest one to Prometheus."""

    def __init__(self, file: Path) -> None:
        """``file``: the metrics of the check, as Prometheus' node exporter would give them."""
        self.file, self.port, self.requests = file, free_port(), 0
        self.kinds = messages()
        self.latest = ExportMetricsServiceRequest()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["Content-Length"])).decode()
                assert self.headers["Content-Type"] == "application/json"
                collector.latest = json_format.Parse(text, ExportMetricsServiceRequest())
                collector.requests += 1
                self.answer(b"{}", "application/json")

            def do_GET(self) -> None:
                if self.path == "/check":
                    self.answer(collector.file.read_bytes() if collector.file.exists() else b"", "text/plain")
                else:
                    self.answer(collector.scraped(), SCRAPED)

            def answer(self, body: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def scraped(self) -> bytes:
        """The latest durations as native histograms."""
        family = self.kinds["MetricFamily"](name=METRIC, type=HISTOGRAM)
        for resource in self.latest.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.exponential_histogram.data_points:
                        self.add(family, point)
        body: bytes = family.SerializeToString()
        return bytes(_VarintBytes(len(body))) + body if family.metric else b""

    def add(self, family: Any, point: Any) -> None:
        """One histogram: a bucket i of OTLP is the bucket i + 1 of Prometheus, and each step of scale joins two."""
        counts: dict[int, int] = {}
        for place, calls in enumerate(point.positive.bucket_counts, point.positive.offset):
            index = (place >> max(point.scale - FINEST, 0)) + 1
            counts[index] = counts.get(index, 0) + calls
        made = family.metric.add()
        for attribute in point.attributes:
            made.label.add(name=attribute.key.replace(".", "_"), value=attribute.value.string_value)
        told = made.histogram
        told.sample_count, told.schema, told.zero_count = point.count, min(point.scale, FINEST), point.zero_count
        told.zero_threshold = 1e-9
        if counts:
            told.positive_span.add(offset=min(counts), length=len(counts))
            ordered = [counts[one] for one in sorted(counts)]
            told.positive_delta.extend(calls - before for calls, before in zip(ordered, [0, *ordered], strict=False))


class Prometheus:
    """A server of Debian's package."""

    def __init__(self, stack: ExitStack, folder: Path, port: int) -> None:
        (folder / "prometheus.yml").write_text(CONFIGURATION.format(port=port))
        self.address = f"127.0.0.1:{free_port()}"
        words = [f"--web.listen-address={self.address}", f"--storage.tsdb.path={folder / 'tsdb'}"]
        words += ["--config.file=prometheus.yml", "--enable-feature=native-histograms", "--log.level=warn"]
        started(stack, str(debian("prometheus", "usr/bin/prometheus")), *words, cwd=folder)

    def ask(self, path: str, **asked: str) -> Any:
        """The data of an answer."""
        address = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(asked)}"
        with urllib.request.urlopen(address, timeout=10) as answer:
            return json.load(answer)["data"]

    def firing(self) -> list[dict[str, str]]:
        """The labels of alerts that fire."""
        return [one["labels"] for one in self.ask("alerts")["alerts"] if one["state"] == "firing"]


@contextmanager
def watching(folder: Path, load: Load, collector: Collector) -> Iterator[None]:
    command = [sys.executable, "-m", "perflaw", "check", "live.yaml", "--attach", str(load.service.pid), "--watch"]
    command += ["-e", "watch", "--budget", f"{BUDGET:.0%}", "--metrics", str(collector.file)]
    command += ["--otlp", f"http://127.0.0.1:{collector.port}/v1/metrics"]
    with subprocess.Popen(command, cwd=folder) as check:
        yield
        check.terminate()


def main(mined_s: int = 120, clean_s: int = 60) -> None:
    bars, python = Bars(), environment("3.11", PACKAGES, "mine_web")
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder, load = Path(name), Load(python)
        mining(folder, load, BUDGET, mined_s)
        for kind, file in (("yaml", "live.yaml"), ("prometheus", "rules.yml")):
            command = [sys.executable, "-m", "perflaw", "mine", "--export", kind]
            text = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
            (folder / file).write_text(text.replace(f"[{WINDOW}]", f"[{SHORT_WINDOW}]").replace(LASTING, SHORT_LASTING))
        collector = Collector(folder / "check.prom")
        prometheus = Prometheus(stack, folder, collector.port)
        with watching(folder, load, collector):
            while not collector.requests:
                time.sleep(0.5)
            end, before = time.monotonic() + clean_s, []
            while time.monotonic() < end:
                time.sleep(2)
                before += [one for one in prometheus.firing() if one not in before]
            calls = prometheus.ask("query", query=f"sum(histogram_count({METRIC}))")["result"]
            told = prometheus.ask("query", query="perflaw_spec_violated")["result"]
            print(f"{collector.requests} requests of OTLP, {calls[0]['value'][1]} calls,", end=" ")
            print(f"{len(told)} functions in the check's own metrics")
            for one in before:
                print(f"  fired: {one}")
            print(f"alerts in {clean_s} s:", bars.check("alerts before", len(before), 0))
            urllib.request.urlopen(f"http://127.0.0.1:{load.ports[0]}/plant").read()
            planted, right = time.monotonic(), []
            while not right and time.monotonic() - planted < FOUND_S:
                time.sleep(1)
                right = [one for one in prometheus.firing() if one["code_function_name"] == CALLEE]
            for one in right:
                print(f"  fired: {one}")
            print(f"told by Prometheus after {time.monotonic() - planted:.0f} s:", end=" ")
            print(bars.check("told by Prometheus", len(right), 1, least=True))
        load.end()
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
