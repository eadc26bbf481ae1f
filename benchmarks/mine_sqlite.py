"""Specifications of a real program in C: SQLite's shell of Debian, five runs and one at half the processors (Figure 5).

    python benchmarks/mine_sqlite.py [--program FILE] [--keep FOLDER]

Builds SQLite with hooks, records all of it once to see which functions take long enough to be measured beside what they
call, then these in six runs of a script of statements drawn at random, another one each time. Prints how many functions
have specifications, the atoms they need, and after each merge the share of call paths and of calls that are consistent:
least, quartiles and most over functions, beside the level of chance. Exits with 1 where after all merges the median share
of calls is below 90 %, where a specification needs more than 8 atoms, or where no function's calls differ by path.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from long_enough import long_enough
from mined import merged, show
from sqlite_shell import build, record

RUNS, HALF, LEAST_NS = 5, 1.0, 1000.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, help="SQLite's shell, built with hooks before")
    parser.add_argument("--keep", type=Path, help="folder for the recordings; else they are not kept")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = (given.program or build(Path(folder))).resolve()
        where = given.keep or Path(folder)
        where.mkdir(exist_ok=True)
        record(program, where, "trial", seed=0)
        chosen = long_enough(where, "trial", LEAST_NS)
        for seed in range(1, RUNS + 1):
            record(program, where, "sqlite", seed, select=chosen)
        record(program, where, "sqlite", RUNS + 1, HALF, chosen)
        told = merged(where, "sqlite")
        return 0 if show(told) and any(len(spec["groups"]) > 1 for spec in told["specs"]) else 1


if __name__ == "__main__":
    sys.exit(main())
