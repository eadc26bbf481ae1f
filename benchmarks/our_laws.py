"""How perflaw's own work grows, recorded and learnt by perflaw: our_laws.py [--most 32] [--repeat 3] [--write].

programs/ourselves.py calls a learner, the tree builder or the merger on made-up data of growing size, all sizes in one run:
a recording of each size and function took longer than what it recorded. perflaw records its CPU time and learns a law for
each function; a second series is the memory that it adds. Bars: no CPU time and no memory
grows faster than n^1.05 at the upper end of the sizes, by the lower end of the exponent's interval.
``--write`` keeps the laws in docs/our-laws.law: of another machine they tell the growth, not the speed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from shared import PROGRAMS, ROOT, Bars, recorded

BAR = 1.05
LAWS = ROOT / "docs" / "our-laws.law"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
SMALL_MB = 8.0
"""Memory that is attributed to the allocator's blocks."""


def perflaw(folder: str, *arguments: str) -> str:
    """What a command of perflaw prints."""
    command = [sys.executable, "-m", "perflaw", *arguments]
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    """Record, learn, and hold the exponents against the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=32)
    parser.add_argument("--repeat", default="3")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    factors = [2**i for i in range(asked.most.bit_length())]
    bars = Bars()
    with tempfile.TemporaryDirectory() as folder:
        peaks = Path(folder, "peaks.csv")
        peaks.write_text("work,n,mb\n")
        command = ["--repeat", asked.repeat, "--metric", "cpu", "--select", "*__main__.*_by_*"]
        path = os.pathsep.join((str(ROOT), str(ROOT / "benchmarks")))
        subprocess.run(
            recorded(*command, "--", str(PROGRAMS / "ourselves.py"), *map(str, factors)),
            cwd=folder,
            check=True,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": path, "PEAKS": str(peaks)},
        )
        told = json.loads(perflaw(folder, "annotate", "--metric", "cpu", "--calls", "--json"))
        for one in told["annotations"]:
            tell(one["component"], "CPU time", one["scopes"][0]["law"], bars)
        lines = perflaw(folder, "fit", str(peaks), "--by", "work", "--response", "mb", "--features", "n", "--json")
        largest = {line.split(",")[0]: float(line.split(",")[2]) for line in peaks.read_text().splitlines()[1:]}
        for document in map(json.loads, lines.splitlines()):
            if largest[document["series"]] > SMALL_MB:
                tell(document["series"], "memory", document["law"], bars)
            else:
                print(f"{document['series']:24} memory    below {SMALL_MB:g} MB")
        if asked.write:
            LAWS.write_text(perflaw(folder, "annotate", "--metric", "cpu", "--calls", "--text"))
    bars.leave()


def tell(name: str, what: str, law: dict[str, Any], bars: Bars) -> None:
    """A law's growth, beside its bar."""
    name = name.rpartition(".")[2]
    slope, low, high = (max(law[key].values(), default=0.0) for key in ("slope", "slope_low", "slope_high"))
    bar = bars.check(f"{name}, exponent of {what}", low, BAR)
    print(f"{name:24} {what:9} n^{slope:.2f} ({low:.2f} to {high:.2f}) {bar}   {law['expression']}", flush=True)


if __name__ == "__main__":
    main()
