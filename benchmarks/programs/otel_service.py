"""A service of a shop, with OpenTelemetry: otel_service.py NAME PORT FILE [PORT OF WHAT IT CALLS...].

It answers over HTTP, hands the trace on to the services that it calls, and writes its spans to FILE as the collector's file
exporter does, each export after its length. Planted: the time of ``cart`` grows with the items; ``price`` is slow where its
cache misses, one time in eight.
"""

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse
from urllib.request import Request, urlopen

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.propagate import extract, inject
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind

ITEM_S, MISS_S, HIT_S = 0.001, 0.25, 0.005
NAME, PORT, FILE, *CALLED = sys.argv[1:]


class FileExporter(SpanExporter):
    """Appends each export, after its length."""

    lock = threading.Lock()

    def export(self, spans):
        data = encode_spans(spans).SerializeToString()
        with self.lock, open(FILE, "ab") as file:
            file.write(len(data).to_bytes(4, "big") + data)
        return SpanExportResult.SUCCESS


provider = TracerProvider(resource=Resource({"service.name": NAME}))
provider.add_span_processor(SimpleSpanProcessor(FileExporter()))
tracer = provider.get_tracer("shop")


def work(number, items):
    if NAME == "cart":
        with tracer.start_as_current_span("load", attributes={"items": items}):
            time.sleep(ITEM_S * items)
    elif NAME == "price":
        miss = number * 5 % 8 == 0
        with tracer.start_as_current_span("lookup", attributes={"cache.miss": miss}):
            time.sleep(MISS_S if miss else HIT_S)


class Handler(BaseHTTPRequestHandler):
    """A request: own work, and then the other services, one after the other."""

    def do_GET(self):
        query = parse_qs(urlparse(self.path).query)
        number, items = int(query["number"][0]), int(query["items"][0])
        context = extract({name.lower(): value for name, value in self.headers.items()})
        with tracer.start_as_current_span("GET", context, SpanKind.SERVER, attributes={"items": items}):
            work(number, items)
            for port in CALLED:
                headers = {}
                inject(headers)
                with urlopen(Request(f"http://127.0.0.1:{port}{self.path}", headers=headers), timeout=20) as answer:
                    answer.read()
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words):
        pass


ThreadingHTTPServer(("127.0.0.1", int(PORT)), Handler).serve_forever()
