"""Bzip2 of Debian under gcc's coverage on tarballs from 40 kB to 30 MB: Figure 5 of Goldsmith et al., FSE'07, on this machine.

Usage: python benchmarks/bzip2.py [--quick] [--keep FOLDER]. Prints the clusters as the figure does, and the bars: BYTES
1.00–1.05, clusters of blocksort.c 1.0–1.15, at most 25 clusters. Exit status 1 where one is missed. Counts do not depend on
the machine's load; the tarballs depend on the packages that are here. Locations are lines: outcomes of branches would count
the same executions again.

Bzip2 sorts blocks of 100 kB here (--fast), as the paper's tarballs were 0.4 to 2,900 blocks of 900 kB: these are 0.4 to 300.
While a tarball is less than a block, its matches get deeper with its size, so the deep comparisons of blocksort.c (from line
412 on) grow faster than it: with --best on the same tarballs as bytes^1.17 to bytes^1.25. Members are short, because a few
long files would make up a small tarball and not a large one.
"""

import subprocess
from pathlib import Path

from coverage_runs import clusters, counted, in_folder, record, table
from debian_source import fetch
from shared import Bars
from tarballs import make_tarballs

SOURCES = ["bzip2.c", "blocksort.c", "huffman.c", "crctable.c", "randtable.c", "compress.c", "decompress.c", "bzlib.c"]
FLAGS = ["-O0", "-g", "--coverage", "-w", "-D_FILE_OFFSET_BITS=64"]
FEATURE, AT = "c.bytes", 5e9
"""The size of the file behind -c, which perflaw finds by itself; where the paper predicts."""


def build(folder: Path) -> Path:
    """bzip2 as one program, compiled in place."""
    source = fetch("bzip2", folder)
    subprocess.run(["gcc", *FLAGS, "-o", "bzip2", *SOURCES], cwd=source, check=True)
    return source / "bzip2"


def main(quick: bool, folder: Path) -> None:
    made = (12, 40_000, 3_000_000) if quick else (40, 40_000, 30_000_000)
    tars = folder / "tars"
    tars.mkdir()
    record(folder, [build(folder), "--fast", "-c", "{file}"], "file", make_tarballs(tars, *made))
    lines, costs = counted(folder)
    found = clusters(folder, FEATURE, AT, "--kind", "line")
    print(
        f"{len(costs)} tarballs · {lines} lines of code · {min(costs):.2g} to {max(costs):.2g} executions of lines a run"
    )
    print(table(found, "bytes", "at 5 GB"))
    bars = Bars()
    _judge(bars, [one for one in found if one.is_feature], "BYTES", 1.05)
    blocksort = [one for one in found if one.of("blocksort.c") and one.share >= 0.02]
    _judge(bars, blocksort, "blocksort.c", 1.15)
    print(f"clusters: {len(found)}, {bars.check('clusters', len(found), 25)}")
    bars.leave()


def _judge(bars: Bars, found: list, what: str, most: float) -> None:
    print(f"clusters of {what}: {len(found)}, {bars.check(f'clusters of {what}', len(found), 1, least=True)}")
    for one in found:
        figure = round(one.exponent, 2)  # as the paper's figure has it
        words = [bars.check(one.name, figure, 1.0, least=True), bars.check(one.name, figure, most)]
        print(f"{one.name}: bytes^{one.exponent:.3f} ({one.low:.3f}–{one.high:.3f}), {', '.join(words)}")


if __name__ == "__main__":
    in_folder(main)
