"""Loads a redis server with Debian's redis-benchmark in short bursts; a reading a burst, then the result."""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import time

COMMANDS = ("set", "get", "lpush", "lrange_100")
"""A mix of small writes, small reads, growing lists and large answers."""
FIRST = 100
"""Requests of each command in the first burst; so that a slow server does not take minutes."""
BURST_S = 0.15
"""How long bursts are to take."""


def burst(port: int, requests: int, clients: int, bytes_: int) -> int:
    """Send each command so often; how many requests that were."""
    command = ["redis-benchmark", "-p", str(port), "--csv", "-n", str(requests), "-c", str(clients), "-d", str(bytes_)]
    done = subprocess.run(
        [*command, "-r", "1000", "-t", ",".join(COMMANDS)], capture_output=True, text=True, timeout=60
    )
    if done.returncode:
        sys.exit(f"redis-benchmark: {done.stderr.strip() or done.stdout.strip()}")
    rows = list(csv.reader(done.stdout.splitlines()))[1:]
    if not rows:
        sys.exit(f"redis-benchmark printed {done.stdout!r}")
    return requests * len(rows)


def main() -> None:
    """Bursts until the time is over; the list is emptied between them, so that no burst finds a longer one than another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=7479)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--bytes", type=int, default=64, help="of a value")
    options = parser.parse_args()
    start, total, requests = time.monotonic(), 0, FIRST
    while (at := time.monotonic()) - start < options.seconds:
        sent = burst(options.port, requests, options.clients, options.bytes)
        now = time.monotonic()
        total += sent
        print(json.dumps({"at_s": round(now - start, 4), "requests_per_s": sent / (now - at), "n": sent}), flush=True)
        subprocess.run(["redis-cli", "-p", str(options.port), "del", "mylist"], capture_output=True, timeout=60)
        requests = max(FIRST, min(10 * requests, int(requests * BURST_S / (now - at))))
    print(json.dumps({"result": {"requests_per_s": total / (time.monotonic() - start), "requests": total}}))


if __name__ == "__main__":
    main()
