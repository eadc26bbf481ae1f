"""Every study of examples/ with a few trials: all are data points (but page sizes that SQLite ignores), within a minute each.

Usage: explore_examples.py [--trials 6] [--rows 1000000] [STUDY...]
"""

from __future__ import annotations

import argparse
import subprocess
import time

from explore_live import copied, explored, traps
from shared import ROOT, Bars

STUDIES = ("sqlite", "redis", "postgresql", "service", "compiler", "fftw")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", default=STUDIES)
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--rows", type=int, default=1_000_000)
    asked = parser.parse_args()
    subprocess.run(["sh", "scripts/servers.sh"], cwd=ROOT, check=True)
    bars, environment = Bars(), {"TRIPS_ROWS": str(asked.rows)}
    for name in asked.studies:
        folder, start = copied(ROOT / "examples" / name), time.monotonic()
        found = explored(folder, f"{name}.yaml", "--trials", str(asked.trials), environment=environment)
        took, bad = time.monotonic() - start, [one["reason"] for one in found["trials"] if not one["valid"]]
        words = bars.check(f"{name}: invalid trials", len(bad), 0), bars.check(f"{name}: seconds", took, 60)
        print(
            f"{name:10} {len(found['trials'])} trials, {len(bad)} invalid {words[0]}, {took:.0f} s {words[1]}",
            flush=True,
        )
        for reason in bad:
            print(f"  {reason}")
    traps(copied(ROOT / "examples" / "sqlite"), "page-sizes.yaml", bars, environment)
    bars.leave()


if __name__ == "__main__":
    main()
