"""Specifications of a real server in C: Redis of Debian under load, five runs and one at half a processor (Figure 5).

    python benchmarks/mine_redis.py [--requests 20000] [--programs FOLDER] [--keep FOLDER]

Builds Redis with hooks, records all of it once to see which functions take long enough to be measured beside what they
call, then these six times while its load generator drives it from another process, and prints how many
functions have specifications, the atoms they need, and after each merge the share of call paths and of calls that are
consistent: least, quartiles and most over functions, beside the level of chance. Exits with 1 where after all merges the
median share of calls is below 90 %, or where a specification needs more than 8 atoms.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from long_enough import long_enough
from mined import merged, show
from redis_server import build, record

RUNS, HALF, LEAST_NS = 5, 0.5, 1000.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20_000, help="of each command")
    parser.add_argument(
        "--programs", type=Path, help="folder with redis-server, redis-cli and redis-benchmark, built before"
    )
    parser.add_argument("--keep", type=Path, help="folder for the recordings; else they are not kept")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        programs = given.programs or build(Path(folder))
        where = given.keep or Path(folder)
        where.mkdir(exist_ok=True)
        record(programs, where, "trial", given.requests // 10)
        chosen = long_enough(where, "trial", LEAST_NS)
        for _ in range(RUNS):
            record(programs, where, "redis", given.requests, select=chosen)
        record(programs, where, "redis", given.requests // 2, HALF, chosen)
        return 0 if show(merged(where, "redis")) else 1


if __name__ == "__main__":
    sys.exit(main())
