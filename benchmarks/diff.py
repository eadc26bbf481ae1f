"""GNU diff of Debian under gcc's coverage on versions of a file: a program with a cluster that grows faster than its input.

Usage: python benchmarks/diff.py [--quick] [--keep FOLDER]. The pairs are lines of source files that are here and an edited
copy, in which one line in ten was moved and one in twenty written anew, whatever the size: so the number of differences D
grows with the number of lines N, and the search for the shortest edit script, O(N·D) (Myers, 1986), with N². All else about
diff is linear. Bars: the cluster of the search (lib/diffseq.h) has an exponent of 1.7–2.2, that of the feature 0.9–1.1, and
at ten times the size the search is predicted to cost the most. Exit status 1 where one is missed.
"""

import random
import subprocess
from pathlib import Path

from coverage_runs import clusters, counted, in_folder, record, table
from debian_source import fetch
from shared import Bars
from tarballs import ROOTS, files, sizes

CONFIGURE = ["./configure", "--quiet", "--disable-nls", "--disable-dependency-tracking", "CFLAGS=-O0 -g --coverage -w"]
AS_SHIPPED = [f"{tool}=:" for tool in ("ACLOCAL", "AUTOCONF", "AUTOHEADER", "AUTOMAKE", "MAKEINFO")]
COMPARE = '"$0" "$1" "$2" > "$1.out"; test $? -le 1'
"""1 is what diff says of files that differ, not a failure."""
FEATURE = "argv4.lines"
"""Lines of the older version."""


def build(folder: Path) -> Path:
    """diff, configured and compiled in place."""
    source = fetch("diffutils", folder)
    make = ["make", "-s", "-j2", *AS_SHIPPED]
    for command in (CONFIGURE, [*make, "-C", "lib"], [*make, "-C", "src"]):
        subprocess.run(command, cwd=source, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return source / "src" / "diff"


def make_pairs(folder: Path, count: int, least: int, most: int) -> list[Path]:
    """Folders with two versions of a file of ``least`` to ``most`` lines."""
    pool = [line for path in files(ROOTS["source"]) if path.suffix in (".h", ".py") for line in _lines(path)]
    made = []
    for number, size in enumerate(sizes(count, least, most)):
        chance = random.Random(number)
        start = chance.randrange(len(pool) - size)
        old, pair = pool[start : start + size], folder / f"{number:02d}"
        pair.mkdir()
        (pair / "old").write_bytes(b"".join(old))
        (pair / "new").write_bytes(b"".join(edited(old, chance)))
        made.append(pair)
    return made


def edited(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """One line in twenty written anew, one in ten moved."""
    new = [b"anew %d\n" % chance.randrange(1 << 30) if chance.random() < 0.05 else line for line in lines]
    for _ in range(len(new) // 10):
        new.insert(chance.randrange(len(new)), new.pop(chance.randrange(len(new))))
    return new


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def main(quick: bool, folder: Path) -> None:
    made = (10, 200, 4_000) if quick else (30, 200, 20_000)
    pairs = folder / "pairs"
    pairs.mkdir()
    listed = make_pairs(pairs, *made)
    record(folder, ["sh", "-c", COMPARE, build(folder), "{pair}/old", "{pair}/new"], "pair", listed)
    lines, costs = counted(folder)
    at = 10 * made[2]
    found = clusters(folder, FEATURE, at, "--kind", "line")
    print(
        f"{len(costs)} pairs · {lines} lines of code · {min(costs):.2g} to {max(costs):.2g} executions of lines a run"
    )
    print(table(found, "lines", f"at {at:,} lines"))
    bars = Bars()
    for what, one, least, most in (
        ("the search", next(one for one in found if one.of("diffseq.h")), 1.7, 2.2),
        ("LINES", next(one for one in found if one.is_feature), 0.9, 1.1),
    ):
        words = [bars.check(what, one.exponent, least, least=True), bars.check(what, one.exponent, most)]
        print(f"{what}, {one.name}: lines^{one.exponent:.3f} ({one.low:.3f}–{one.high:.3f}), {', '.join(words)}")
    dearest = max((one for one in found if one.predicted[0] > 0), key=lambda one: sum(one.predicted))
    print(f"dearest at {at:,} lines: {dearest.name}, {bars.check('dearest', dearest.of('diffseq.h'), 1, least=True)}")
    bars.leave()


if __name__ == "__main__":
    in_folder(main)
