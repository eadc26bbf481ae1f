"""Laws of real compiled programs built with hooks: SQLite and x264 of Debian, and std::list::sort of libstdc++.

    python benchmarks/native_programs.py [--quick] [--keep FOLDER] [sort] [expressions] [rows] [x264]
    python benchmarks/native_programs.py --bars [WORD]

The second prints what is wanted of compiled programs, row by row (those with a word in them, if one is given), runs what shows
each, and says whether its bar is met: about an hour on a quiet machine.

Prints what is said of each function beside the bar: over what feature, how steep at the upper end of the data, under what
condition. Laws are of CPU time, which other programs disturb less. Each program is then recorded once more and killed in the
middle: what it had completed is in the recording. Building takes some minutes; --keep keeps what was built. Parts that are
named are made alone, each within some three minutes.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sqlite_shell
from coverage_runs import in_folder, perflaw
from debian_source import fetch
from shared import PROGRAMS, Bars

from perflaw.store.experiment import open_experiment
from perflaw.types import Run

HOOKS = "-finstrument-functions"
SORT = "std::__cxx11::list<int, std::allocator<int> >::sort"
ENCODE = "x264_8_encoder_encode"
HEIGHTS, FRAMES = (64, 90, 126, 180, 252, 360, 504), 12
CONFIGURE = ["./configure", "--disable-asm", "--disable-opencl", "--disable-avs", "--disable-swscale", "--disable-lavf",
             "--disable-ffms", "--disable-gpac", "--disable-lsmash", "--bit-depth=8", f"--extra-cflags=-g {HOOKS}"]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """A program to record."""

    name: str
    """Experiment of its recordings."""
    select: tuple[str, ...]
    """Functions that are recorded."""
    command: tuple[object, ...]
    """The program and its arguments."""
    options: tuple[str, ...] = ()
    """Further options of ``perflaw record``."""
    statements: Path | None = None
    """Its standard input."""

    def line(self, experiment: str) -> list[str]:
        """The command line that records it."""
        chosen = [word for name in self.select for word in ("--select", name)]
        perflaw = [sys.executable, "-m", "perflaw", "record", "-e", experiment, *chosen, *self.options]
        return [*perflaw, "--", *map(str, self.command)]


def record(target: Target, folder: Path, experiment: str, kill: Callable[[], bool] | None = None) -> None:
    """Record a target, which prints to a file. It is killed once ``kill`` says so."""
    output = (folder / f"{experiment}.out").open("wb")
    with output, Path(target.statements or os.devnull).open("rb") as statements:
        recorder = subprocess.Popen(target.line(experiment), cwd=folder, stdin=statements, stdout=output)
        while kill and recorder.poll() is None:
            if kill() and (pids := running(Path(str(target.command[0])))):
                os.kill(pids[0], signal.SIGKILL)
                break
            time.sleep(0.002)
        status = recorder.wait()
    if status != (128 + signal.SIGKILL if kill else 0):
        sys.exit(f"exit status {status}: {' '.join(target.line(experiment))}")


def running(program: Path) -> list[int]:
    """Processes of a program."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "exe").resolve() == program.resolve():
                found.append(int(process.name))
        except OSError:
            continue  # it has ended
    return found


def runs(folder: Path, experiment: str) -> list[tuple[Run, dict[str, int], dict[str, dict[str, int]]]]:
    """Each run, its completed calls by function, and function → metric → cost of all its calls."""
    found = []
    for recording in open_experiment(experiment, folder).recordings():
        tables = recording.tables()
        names = {row[0]: row[1] for row in tables["components"]}
        costs: dict[str, dict[str, int]] = {name: {} for name in names.values()}
        for number, metric, total, _ in tables["component_costs"]:
            costs[names[number]][metric] = int(total)
        found.append((recording.run, {row[1]: row[7] for row in tables["components"]}, costs))
    return found


def scopes(folder: Path, experiment: str, function: str, metric: str = "cpu") -> list[dict]:
    """What ``perflaw annotate`` says of a function: its scopes, with their conditions and laws; printed as well."""
    document = json.loads(perflaw(folder, "annotate", "-e", experiment, "--metric", metric, "--json"))
    [found] = [one["scopes"] for one in document["annotations"] if one["component"] == function]
    for scope in found:
        law = scope["law"]
        condition = f"[{scope['condition']}] " if scope["condition"] else ""
        fit = "a piece" if law["r2"] is None else f"R² {law['r2']:.3f}"
        print(f"  {function}: {condition}{law['expression']} ({law['verdict']}, {fit}, n {law['n']})")
    return found


def judge(bars: Bars, what: str, law: dict, feature: str, low: float, high: float) -> None:
    """Whether a law is over a feature and as steep there as it should be."""
    slope = law["slope"].get(feature)
    if slope is None or law["verdict"] != "law":
        bars.missed.append(f"{what}: a law over {feature} is wanted, it is {law['verdict']} over {law['features']}")
        return
    steepness = [
        bars.check(f"{what}, steepness", slope, low, least=True),
        bars.check(f"{what}, steepness", slope, high),
    ]
    print(f"  {what}: {feature}^{slope:.2f}, {', '.join(steepness)}")


def killed(
    bars: Bars, target: Target, folder: Path, function: str, least: int, done: Callable[[], int] | None = None
) -> None:
    """Record a target and kill it when it says that so many calls of a function are done: by default, a line each."""
    experiment = f"{target.name}-killed"
    done = done or (lambda: (folder / f"{experiment}.out").read_bytes().count(b"\n"))
    record(target, folder, experiment, lambda: done() >= least)
    run, calls, _ = runs(folder, experiment)[-1]
    told, kept = done(), calls.get(function, 0)
    words = bars.check(f"{target.name}, killed: calls of {function}", kept, told, least=True)
    print(f"  killed: {told} calls of {function} said to be done, {kept} recorded, {words}")
    if run.complete:
        bars.missed.append(f"{target.name}: the run of a killed program is said to be complete")


# ---- std::list::sort ----


def sort(bars: Bars, folder: Path, quick: bool) -> None:
    """Its cost per element and comparison grows where the list leaves the caches (Freud, Figures 1 and 2)."""
    program = folder / "sorted"
    # The list's own small functions are without hooks, so that sorting costs what it costs without.
    apart = f"{HOOKS}-exclude-file-list=/bits/stl_,/ext/,/bits/alloc,/bits/random,/bits/new"
    subprocess.run(["g++", "-O2", "-g", HOOKS, apart, str(PROGRAMS / "sorted.cc"), "-o", str(program)], check=True)
    most, calls = (60_000, 100) if quick else (600_000, 750)
    target = Target("sort", (SORT,), (program, 1, most, calls))
    print("std::list<int>::sort")
    record(target, folder, target.name)
    found = scopes(folder, target.name, SORT)
    judge(bars, "sort of the longest lists", found[-1]["law"], "this.len", 0.9, 1.6)
    if not quick:  # shorter lists do not leave the caches
        print(f"  regimes: {len(found)}, {bars.check('regimes of sort', len(found), 2, least=True)}")
    killed(bars, target, folder, SORT, calls // 3)


# ---- SQLite ----


def shell(folder: Path) -> Path:
    """SQLite's shell, with hooks."""
    program = folder / "sqlite3-hooks"
    if not program.exists():
        sqlite_shell.build(folder)
    return program


def expressions(bars: Bars, folder: Path, quick: bool) -> None:
    """Preparing grows with the text; a first step with the statement's program."""
    program = shell(folder)
    statements = folder / "statements.sql"
    draw = random.Random(1)
    sizes = [int(10 * 1000 ** draw.random()) for _ in range(150 if quick else 400)]
    lists = (",".join(str(draw.randrange(10**6)) for _ in range(size)) for size in sizes)
    statements.write_text("".join(f"SELECT {draw.randrange(100)} IN ({one});\n" for one in lists))
    functions = ("sqlite3_prepare_v2", "sqlite3_step", "sqlite3Step")
    target = Target("statements", functions, (program, ":memory:"), statements=statements)
    print("SQLite, by expression")
    record(target, folder, target.name)
    [scope] = scopes(folder, target.name, "sqlite3_prepare_v2")
    judge(bars, "prepare", scope["law"], "zSql.len", 0.9, 1.15)
    steps = scopes(folder, target.name, "sqlite3Step")
    first = [one["law"] for one in steps if one["law"]["features"] == ["p.nOp"]]
    if len(steps) != 2 or len(first) != 1 or not all("p.pc" in one["condition"] for one in steps):
        bars.missed.append("step: two scopes by p.pc are wanted, the first step and the others")
    else:
        judge(bars, "first step", first[0], "p.nOp", 0.9, 1.5)
    killed(bars, target, folder, "sqlite3_step", len(sizes) // 3)


def rows(bars: Bars, folder: Path, quick: bool) -> None:
    """A first step grows with the rows that it goes through."""
    query = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {rows}) SELECT sum(x) FROM n"
    numbers = "100,300,1000,3000,10000" + ("" if quick else ",30000,100000")
    options = ("--vary", f"rows={numbers}", "--repeat", "5")
    target = Target("rows", ("sqlite3Step",), (shell(folder), ":memory:", query), options)
    print("SQLite, by rows")
    record(target, folder, target.name)
    [first_step, *_] = [one for one in scopes(folder, target.name, "sqlite3Step") if "p.pc <=" in one["condition"]] or [
        None
    ]
    if first_step is None:
        bars.missed.append("step: a scope of first steps is wanted, by p.pc")
    else:
        judge(bars, "step", first_step["law"], "rows", 0.8, 1.2)


# ---- x264 ----


def clip(path: Path, height: int, frames: int) -> None:
    """A moving pattern with noise, 16 to 9, uncompressed."""
    width, draw = height * 16 // 9 // 2 * 2, np.random.default_rng(1)
    noise = draw.integers(0, 60, (height * 2, width * 2), dtype=np.uint8)
    y, x = np.mgrid[0:height, 0:width]
    with path.open("wb") as out:
        out.write(f"YUV4MPEG2 W{width} H{height} F25:1 Ip A1:1 C420jpeg\n".encode())
        for at in range(frames):
            shift = 3 * at % height
            luma = (x + y + 5 * at) % 180 + noise[shift : shift + height, shift : shift + width]
            out.write(b"FRAME\n" + luma.astype(np.uint8).tobytes())
            out.write(np.full((2, height // 2, width // 2), 128, np.uint8).tobytes())


def x264(bars: Bars, folder: Path, quick: bool) -> None:
    """A frame costs what its area is; with slices in several threads the encoder waits more than it works (§6.3)."""
    program = folder / "x264/source/x264"
    if not program.exists():
        source = fetch("x264", folder)
        for command in (CONFIGURE, ["make", "-j", str(os.cpu_count())]):
            subprocess.run(command, cwd=source, check=True, capture_output=True)
    for height in HEIGHTS:
        clip(folder / f"in-{height}.y4m", height, FRAMES)
    clip(folder / "in-0.y4m", HEIGHTS[-1], 10 * FRAMES)
    heights = ",".join(map(str, HEIGHTS[:5] if quick else HEIGHTS))
    words = (program, "--quiet", "--preset", "ultrafast", "--sliced-threads", "-o", "out.264", "--threads")
    print("x264")
    for threads in (1, 2):
        options = ("--vary", f"height={heights}", "--metric", "lock_wait")
        target = Target(f"frames{threads}", (ENCODE, "slice_write"), (*words, threads, "in-{height}.y4m"), options)
        record(target, folder, target.name)
        if threads == 1:
            area(bars, folder, target.name)
        costs = [costs[ENCODE] for _, _, costs in runs(folder, target.name)]
        waited, worked = (sum(one.get(name, 0) for one in costs) for name in ("lock_wait", "cpu"))
        bar = 1.0 if threads > 1 else 0.1
        verdict = bars.check(f"waiting with {threads} threads", waited / worked, bar, least=threads > 1)
        print(f"  {threads} threads: {ENCODE} waits {waited / worked:.2f} times as long as it works, {verdict}")
    output = folder / "out.264"
    output.unlink()
    target = Target("frames", (ENCODE,), (*words, 1, "in-0.y4m"))
    killed(bars, target, folder, ENCODE, FRAMES, lambda: slices(output))


def slices(output: Path) -> int:
    """Slices that an encoder has written so far; in one thread, a frame is one."""
    return len(re.findall(rb"\x00\x00\x01[\x01\x41\x61\x65]", output.read_bytes())) if output.exists() else 0


def area(bars: Bars, folder: Path, experiment: str) -> None:
    """Whether the law of an ordinary frame grows with its area: between two heights, all else being as usual there.

    The first frames differ: they make what the encoder needs, and what their features are then is no ordinary value.
    """
    law = scopes(folder, experiment, ENCODE)[-1]["law"]
    heights, usual = {}, {}
    for recording in open_experiment(experiment, folder).recordings():
        values: dict[str, list[float]] = {name: [] for name in law["features"]}
        for row in recording.tables()["features"]:
            if row[2] in values:
                values[row[2]].append(row[3])
        height = recording.run.features["height"]
        usual[height] = {
            name: float(np.median(of)) if of else recording.run.features[name] for name, of in values.items()
        }
    for height in sorted(usual)[-3::2]:
        at = ",".join(f"{name}={value:g}" for name, value in usual[height].items())
        document = json.loads(perflaw(folder, "annotate", "-e", experiment, "--metric", "cpu", "--at", at, "--json"))
        [found] = [one["scopes"] for one in document["annotations"] if one["component"] == ENCODE]
        heights[height] = found[-1]["law"]["predictions"][0]["mean"]
    (low, less), (high, more) = heights.items()
    growth = np.log(more / less) / np.log(high / low)
    steepness = [
        bars.check("a frame, steepness", growth, 1.6, least=True),
        bars.check("a frame, steepness", growth, 2.4),
    ]
    print(f"  a frame: height^{growth:.2f}, {', '.join(steepness)}")


BARS = (
    ("added time a call: injected ≤ 30 ns, hooks ≤ 25 ns, both ≤ 0.5 × uftrace", "benchmarks/inject.py"),
    (
        "cycles of enabling and disabling under load: no crash, no wrong result, stops < 20 ms",
        "benchmarks/attach_compiled.py",
    ),
    ("attach and detach, CPython 3.11 to 3.13: 100 of 100, within 1 % after, memory flat", "benchmarks/attach.py"),
    (
        "functions of Debian's sqlite3, nginx, redis-server, mariadbd: share patched, same answers",
        "benchmarks/native_servers.py",
    ),
    (
        "ground truth in C++, -O2 -g, injected: R² ≥ .98, doubled instrumentation too",
        "benchmarks/truth.py --compiled 30",
    ),
    (
        "features of structs, pointers, vectors, polymorphism, globals; hostile pointers",
        "-m pytest -q -m= tests/record/test_types.py",
    ),
    ("real servers attached: laws, killed in the middle", "benchmarks/native_servers.py --laws"),
    ("real programs: SQLite, x264, std::list::sort; killed in the middle", "benchmarks/native_programs.py"),
)
"""What is wanted, and what shows it: it exits with 0 where that is met."""


def tell_bars(word: str) -> int:
    """Run each benchmark with its own output above its verdict; 1 if a bar is missed."""
    verdicts = []
    for wanted, command in BARS:
        if word in wanted:
            print(f"\n== {wanted}: python {command}", flush=True)
            done = subprocess.run([sys.executable, *command.split()], cwd=Path(__file__).parents[1])
            verdicts.append(f"{'MISSED' if done.returncode else 'met   '} {wanted}")
    print("", *verdicts, f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", sep="\n")
    return any(one.startswith("MISSED") for one in verdicts)


PARTS = {part.__name__: part for part in (sort, expressions, rows, x264)}


def main(quick: bool, folder: Path, parts: Sequence[str]) -> None:
    bars = Bars()
    shutil.rmtree(folder / ".perflaw", ignore_errors=True)  # of an earlier run
    for part in parts:
        PARTS[part](bars, folder, quick)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    bars.leave()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--bars"]:
        sys.exit(tell_bars("".join(sys.argv[2:3])))
    in_folder(main, tuple(PARTS))
