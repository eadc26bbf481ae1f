"""A small HTTP service: worker processes, each with a pool of threads; answers wait, compute, and are journalled in batches."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

UPSTREAM_S = 0.004
"""How long the service that this one asks takes."""
TERMS = 5000
"""Of the sum that an answer is: half a millisecond or so of Python, which one thread of a process at a time computes."""


class Journal:
    """Lines on disk; a batch of them at once, for each time costs an fsync."""

    def __init__(self, path: str, batch: int) -> None:
        self._file = Path(path).open("a")  # noqa: SIM115 (kept open)
        self._batch, self._lines, self._lock = batch, list[str](), threading.Lock()

    def add(self, line: str) -> None:
        """Keep a line; whoever fills the batch writes it."""
        with self._lock:
            self._lines.append(line)
            if len(self._lines) >= self._batch:
                self._file.write("".join(self._lines))
                self._file.flush()
                os.fsync(self._file.fileno())
                self._lines.clear()


class Handler(BaseHTTPRequestHandler):
    """``/settings`` tells the settings in force; everything else is a question."""

    journal: ClassVar[Journal]
    settings: ClassVar[dict[str, int]]

    def do_GET(self) -> None:
        """Answer."""
        answer: Any = self.settings if self.path == "/settings" else self._quote()
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _quote(self) -> dict[str, float]:
        time.sleep(UPSTREAM_S)
        price = sum((i * 7919 % 1013) / (i + 1) for i in range(TERMS))
        self.journal.add(f"{self.path} {price}\n")
        return {"price": price}

    def log_message(self, *args: object) -> None:
        """Say nothing: the journal is the log."""


class Pooled(HTTPServer):
    """Requests are answered by a pool of threads."""

    request_queue_size = 256
    pool: ThreadPoolExecutor

    def process_request(self, request: Any, client_address: Any) -> None:
        """Hand it to the pool."""
        self.pool.submit(self._answer, request, client_address)

    def _answer(self, request: Any, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except OSError:
            pass  # the client has gone
        finally:
            self.shutdown_request(request)


def main() -> None:
    """Fork the workers, which accept from one socket, and wait to be told to end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=7485)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--pool", type=int, default=4)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--journal", default="journal.txt")
    options = parser.parse_args()
    server = Pooled(("127.0.0.1", options.port), Handler)
    Handler.settings = {name: getattr(options, name) for name in ("workers", "pool", "batch")}
    children = [pid for _ in range(options.workers) if (pid := _worker(server, options))]

    def end(signum: int, frame: FrameType | None) -> None:
        for child in children:
            os.kill(child, signal.SIGKILL)
        sys.exit()

    signal.signal(signal.SIGTERM, end)
    for child in children:
        os.waitpid(child, 0)


def _worker(server: Pooled, options: argparse.Namespace) -> int:
    """The child's pid in the parent; a child serves for ever."""
    pid = os.fork()
    if pid == 0:
        server.pool = ThreadPoolExecutor(options.pool)
        Handler.journal = Journal(options.journal, options.batch)
        server.serve_forever()
    return pid


if __name__ == "__main__":
    main()
