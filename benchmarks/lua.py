"""The Lua interpreter of Debian under the hooks, in a script of deep recursion, errors, coroutines and finalisers.

Usage: python benchmarks/lua.py [--rounds 40] [--keep FOLDER]. Lua leaves C functions by longjmp: for each error and each
yield. Bars, none of which depends on the machine's load: ΣΣP == ΣX² on every node in every metric; calls of luaB_error,
luaB_yield and sort_comp as the script itself counted, the first two of which never end; without inlining, each context's
call stands within the code of its caller, so that nothing came to lie in a call that was dead.
"""

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from debian_source import fetch
from shared import PROGRAMS, Bars

from perflaw.store.experiment import Recording, open_experiment

FLAGS = ["-O2", "-g", "-w", "-finstrument-functions", "-DLUA_USE_POSIX", "-Dluai_makeseed(L)=0", "-I."]
APART = ["-fno-inline", "-fno-ipa-icf", "-fno-partial-inlining", "-fno-reorder-blocks-and-partition"]
"""No function's code stands in another's, or in two places."""
WAYS = {"gcc -O2": ["gcc"], "gcc -O2 -fno-inline": ["gcc", *APART], "clang -O2": ["clang"]}


def build(source: Path, name: str, words: list[str]) -> Path:
    """The interpreter in one program; the header that Debian's rules would write is empty."""
    (source / "lua5.4-deb-multiarch.h").write_text('#define DEB_HOST_MULTIARCH ""\n')
    files = sorted(path.name for path in source.glob("*.c") if path.name != "luac.c")
    program = source / name.replace(" ", "")
    subprocess.run([*words, *FLAGS, "-o", program, *files, "-lm"], cwd=source, check=True)
    return program


def record(folder: Path, program: Path, rounds: int) -> tuple[list[int], Recording]:
    """What the script said that it did, and the recording."""
    script = PROGRAMS / "deep.lua"
    words = ["record", "-e", program.name, "--", program, script, str(rounds)]
    done = subprocess.run([sys.executable, "-m", "perflaw", *words], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    print(done.stderr.strip().splitlines()[-1].partition(" · .perflaw")[0])
    (recording,) = open_experiment(program.name, folder).recordings()
    return [int(word) for word in done.stdout.split()], recording


def broken(recording: Recording) -> tuple[int, int]:
    """Nodes and metrics whose products of callees' costs do not add up to the sum of squares, of how many."""
    tables = recording.tables()
    sums: Counter[tuple[int, str]] = Counter()
    for node, metric, i, j, total in tables["pairs"]:
        sums[node, metric] += total if i == j else 2 * total
    rows = [row for row in tables["moments"] if row[2]]
    return sum(sums[row[0], row[1]] != row[4] for row in rows), len(rows)


def astray(recording: Recording) -> tuple[int, int]:
    """Contexts whose call stands outside of their caller's code, or nowhere, of how many."""
    called = [row for row in recording.tables()["calltree"] if row[1] > 0]
    return sum(site < 0 or line == 0 for _, _, _, site, line, _ in called), len(called)


def judge(bars: Bars, name: str, said: list[int], recording: Recording) -> None:
    """Print what was found beside the bars."""
    errors, yields, _, compared = said
    rows = {row[1]: (row[7], row[8]) for row in recording.tables()["components"]}
    wrong, of = broken(recording)
    print(f"{name}: ΣΣP ≠ ΣX² on {wrong} of {of} nodes and metrics, {bars.check(f'{name}, identity', wrong, 0)}")
    for what, expected in (("luaB_error", (0, errors)), ("luaB_yield", (0, yields)), ("sort_comp", (compared, None))):
        off = sum(abs(found - wanted) for found, wanted in zip(rows[what], expected, strict=True) if wanted is not None)
        told = bars.check(f"{name}, {what}", off, 0)
        print(f"{name}: {what} {rows[what][0]} ended and {rows[what][1]} not: {off} off, {told}")
    if "-fno-inline" in name:
        lost, of = astray(recording)
        print(
            f"{name}: {lost} of {of} contexts are not where they were called, {bars.check(f'{name}, astray', lost, 0)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--keep", type=Path, help="a folder that is left there")
    asked = parser.parse_args()
    bars = Bars()
    with tempfile.TemporaryDirectory() as name:
        folder = (asked.keep or Path(name)).resolve()
        source = fetch("lua5.4", folder) / "src"
        for way, words in WAYS.items():
            judge(bars, way, *record(folder, build(source, way, words), asked.rounds))
    bars.leave()


if __name__ == "__main__":
    main()
