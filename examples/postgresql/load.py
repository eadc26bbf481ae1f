"""Loads PostgreSQL with pgbench in short bursts, transactions with a report among them; a reading a burst, then the result."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

PGBENCH = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin/pgbench"), reverse=True)), "pgbench")
REPORT = Path(__file__).with_name("report.sql")
FIRST = 5
"""Transactions of each client in the first burst; so that a slow server does not take minutes."""
BURST_S = 0.2
"""How long bursts are to take."""


def burst(port: int, transactions: int, clients: int) -> tuple[int, float]:
    """Each client sends so many; how many transactions that were, and how many a second without the connecting."""
    command = [str(PGBENCH), "-h", "127.0.0.1", "-p", str(port), "-U", "perflaw", "-n", "-M", "prepared"]
    command += [
        "-c",
        str(clients),
        "-j",
        "1",
        "-t",
        str(transactions),
        "-b",
        "tpcb-like@15",
        "-f",
        f"{REPORT}@1",
        "trips",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    rate = re.search(r"^tps = ([0-9.]+)", done.stdout, re.MULTILINE)
    if done.returncode or not rate:
        sys.exit(f"pgbench: {done.stderr.strip() or done.stdout.strip()}")
    return transactions * clients, float(rate[1])


def main() -> None:
    """Bursts until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=int(os.environ.get("PERFLAW_POSTGRESQL_PORT", "7482")))
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--clients", type=int, default=4)
    options = parser.parse_args()
    start, total, transactions = time.monotonic(), 0, FIRST
    while time.monotonic() - start < options.seconds:
        sent, rate = burst(options.port, transactions, options.clients)
        total += sent
        transactions = max(FIRST, min(10 * transactions, int(rate * BURST_S / options.clients)))
        print(
            json.dumps({"at_s": round(time.monotonic() - start, 4), "transactions_per_s": rate, "n": sent}), flush=True
        )
    print(json.dumps({"result": {"transactions_per_s": total / (time.monotonic() - start), "transactions": total}}))


if __name__ == "__main__":
    main()
