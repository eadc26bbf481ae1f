"""Points of specifications: what became slower, what did not, and whether the words and exports say so."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trust_points import Answer, Point, perflaw, write_program

KINDS = """
    import random
    import sys

    draw = random.Random(int(sys.argv[1]))
    factor = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0


    def tokens(n):
        return [str(i) for i in range(n)]


    def weigh(n):
        total = 0
        for i in range(int(n)):
            total += i * i % 7
        return total


    def rank(n):
        return sorted(range(n), key=lambda i: i * 7919 % 1009)


    def answer():
        tokens(draw.randint(18, 22))
        weigh(draw.randint(90, 110) * factor)
        rank(draw.randint(180, 220))


    for number in range(3000):
        answer()
"""
"""Functions whose calls are each of one kind; ``weigh`` becomes slower by a factor."""

STORE = """
    import random
    import sys

    draw = random.Random(int(sys.argv[1]))
    mode = sys.argv[2] if len(sys.argv) > 2 else ""


    def fetch(cold):
        return sum(range(9_000 if cold else 250))


    def basket():
        return fetch(draw.random() < 0.05)


    def listing():
        return fetch(mode == "all" or draw.random() < (0.5 if mode == "half" else 0.05))


    def find():
        return fetch(draw.random() < 0.6)


    for number in range(6000):
        (basket, listing, find)[number % 3]()
"""
"""A function with quick and slow calls on three ways; one way has more slow ones, half or all of its calls."""


def recorded(folder: Path, source: str, number: int, *runs: tuple[str, int, str]) -> None:
    """Record experiments: name, runs, and the second argument of the program."""
    program = write_program(folder, source)
    for place, (name, times, argument) in enumerate(runs):
        seeds = ",".join(str(1000 * number + 100 * place + one) for one in range(1, times + 1))
        perflaw(
            folder, "record", "-e", name, "--collect", "paths", "--vary", f"s={seeds}", "--", program.name, "{s}",
            *([argument] if argument else []),
        )  # fmt: skip
    (folder / "spec.yaml").write_text(perflaw(folder, "mine", "-e", runs[0][0], "--export", "yaml"))


def verdicts(folder: Path, experiment: str) -> list[dict[str, Any]]:
    """What ``perflaw check`` says of an experiment."""
    command = [sys.executable, "-m", "perflaw", "check", "spec.yaml", "-e", experiment, "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    document = json.loads(done.stdout)
    found: list[dict[str, Any]] = document["verdicts"]
    return found


def told(found: list[dict[str, Any]]) -> str:
    """The violated and inconclusive verdicts in one line."""
    return "; ".join(
        f"{one['verdict']} {one['component']} {one['path']} {one['effect']} {one['message']}"
        for one in found
        if one["verdict"] in ("violated", "inconclusive")
    )


def violated(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The violated verdicts."""
    return [one for one in found if one["verdict"] == "violated"]


def one_kind(old: int, new: int) -> Callable[[Path, int], Answer]:
    """``weigh`` is ten times slower."""

    def ask(folder: Path, number: int) -> Answer:
        recorded(folder, KINDS, number, ("old", old, ""), ("new", new, "10"))
        found = verdicts(folder, "new")
        bad = violated(found)
        right = [one["component"] for one in bad] == ["prog.weigh"] and 5 < bad[0]["effect"] < 20
        return Answer(told(found), right)

    return ask


def unchanged(source: str) -> Callable[[Path, int], Answer]:
    """The same program is recorded again."""

    def ask(folder: Path, number: int) -> Answer:
        recorded(folder, source, number, ("old", 3, ""), ("new", 3, ""))
        found = verdicts(folder, "new")
        return Answer(told(found), not violated(found))

    return ask


def own_number(folder: Path, number: int) -> Answer:
    """Half of the calls by one way are slow: the number is that way's, not the half of it that the group shows."""
    recorded(folder, STORE, number, ("old", 3, ""), ("new", 3, "half"))
    found = verdicts(folder, "new")
    bad = violated(found)
    if [one["path"] for one in bad] != ['"prog.listing -> prog.fetch"']:
        return Answer(told(found), False)
    of_share = bad[0]["border"] is not None
    right = abs(bad[0]["effect"] - 0.45) < 0.08 if of_share else bad[0]["effect"] > 10
    return Answer(told(found), right and abs(bad[0]["calls"] - 6000) < 10)


def all_calls(folder: Path, number: int) -> Answer:
    """All calls by one way are slow, one run against one."""
    recorded(folder, STORE, number, ("old", 1, ""), ("new", 1, "all"))
    found = verdicts(folder, "new")
    return Answer(told(found), {one["component"] for one in violated(found)} == {"prog.fetch"})


def documented(folder: Path, number: int) -> Answer:
    """The shape of the documented example: one border, two groups, the words of the condition."""
    recorded(folder, STORE, number, ("old", 3, ""))
    text = perflaw(folder, "mine", "-e", "old", "fetch")
    lines = [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]
    groups = [line for line in lines if re.match(r"[12] ", line)]
    right = len(groups) == 2 and "all other callers: prog." in text and "e1 prog.find -> prog.fetch" in lines
    return Answer(" | ".join(lines[3:8]), right and "95 % 5 %" in groups[0])


def settled(folder: Path, number: int) -> Answer:
    """A verdict that is inconclusive says how many more runs settle it; twice as many do."""
    recorded(folder, KINDS, number, ("old", 3, ""), ("new", 1, "2.2"))
    first = verdicts(folder, "new")
    mine = next(one for one in first if one["component"] == "prog.weigh")
    if mine["verdict"] == "violated":
        return Answer(told(first), True)
    if mine["verdict"] != "inconclusive" or mine["more_runs"] is None:
        return Answer(told(first), False)
    seeds = ",".join(str(1000 * number + 500 + one) for one in range(2 * mine["more_runs"]))
    perflaw(folder, "record", "-e", "new", "--collect", "paths", "--vary", f"s={seeds}", "--", "prog.py", "{s}", "2.2")
    second = verdicts(folder, "new")
    return Answer(
        f"{told(first)} THEN {told(second)}", [one["component"] for one in violated(second)] == ["prog.weigh"]
    )


def why_missing(folder: Path, number: int) -> Answer:
    """A function that ``--select`` left out is not told to be gone."""
    recorded(folder, KINDS, number, ("old", 1, ""))
    perflaw(
        folder, "record", "-e", "new", "--collect", "paths", "--select", "prog.rank", "--", "prog.py", str(number)
    )  # fmt: skip
    found = verdicts(folder, "new")
    reasons = {one["message"] for one in found if one["component"] in ("prog.weigh", "prog.answer")}
    return Answer(str(reasons), reasons == {"not recorded: left out by --select or --exclude, or not called"})


def missing_otherwise(folder: Path, number: int) -> Answer:
    """A function that is gone may also not be called; one that was moved is found."""
    recorded(folder, KINDS, number, ("old", 3, ""))
    program = folder / "prog.py"
    moved = program.read_text().replace("def weigh(n):", "class Scales:\n  @staticmethod\n  def weigh(n):")
    program.write_text(
        moved.replace("    weigh(draw", "    Scales.weigh(draw").replace("    tokens(draw", "    range(draw")
    )
    perflaw(folder, "record", "-e", "new", "--collect", "paths", "--", program.name, str(number))
    reasons = {one["component"]: one["message"] for one in verdicts(folder, "new")}
    said = [reasons.get(f"prog.{name}", "") for name in ("tokens", "weigh")]
    absent = "not in the new recordings: not called, or no longer there"
    return Answer(" | ".join(said), said == [absent, f"{absent}; prog.Scales.weigh is: was it moved?"])


def renamed_or_not_called(folder: Path, number: int) -> Answer:
    """Of a function with another name, and of one that is there and not called, neither is said to be so."""
    recorded(folder, KINDS, number, ("old", 3, ""))
    program = folder / "prog.py"
    text = (
        program.read_text()
        .replace("weigh(", "burden(")
        .replace("    tokens(draw", "    draw.random() < 2 or tokens(draw")
    )
    program.write_text(text)
    runs = f"s={number},{number + 1}"
    perflaw(folder, "record", "-e", "new", "--collect", "paths", "--vary", runs, "--", program.name, "{s}")
    reasons = {one["component"]: one["message"] for one in verdicts(folder, "new")}
    said = [reasons.get(f"prog.{name}", "") for name in ("weigh", "tokens")]
    absent = "not in the new recordings: not called, or no longer there"
    return Answer(str(said), said == [absent, absent])


def exported(folder: Path, number: int) -> Answer:
    """The exported tests fail where a check does, and nowhere else; the YAML is short."""
    recorded(folder, STORE, number, ("old", 3, ""), ("new", 3, "half"))
    (folder / "test_performance.py").write_text(perflaw(folder, "mine", "-e", "old", "--export", "pytest"))
    found = verdicts(folder, "new")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "test_performance.py"],
        cwd=folder, env={**os.environ, "PERFLAW_EXPERIMENT": "new"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    numbers = {word: int(count) for count, word in re.findall(r"(\d+) (failed|passed|skipped)", done.stdout)}
    counts = {
        "failed": len(violated(found)),
        "passed": sum(one["verdict"] == "holds" for one in found),
        "skipped": sum(one["verdict"] in ("inconclusive", "out of scope") for one in found),
    }
    sizes = [len(one.encode()) for one in (folder / "spec.yaml").read_text().split("- function:")[1:]]
    right = numbers == {word: count for word, count in counts.items() if count} and max(sizes) <= 2000
    return Answer(f"{numbers}, check {counts}, {max(sizes)} bytes", right)


GRINDER = """
    #include <stdlib.h>

    volatile unsigned sum;

    __attribute__((noinline)) void step(unsigned i) { sum += i * i; }

    __attribute__((noinline)) void grind(unsigned n)
    {
        for (unsigned i = 0; i < n; i++)
            step(i);
    }

    __attribute__((noinline)) void polish(unsigned n)
    {
        for (unsigned i = 0; i < n; i++)
            sum ^= i;
    }

    int main(int count, char **words)
    {
        for (long at = atol(words[count - 1]); at; at--) {
            grind(STEPS);
            polish(30000);
        }
        return 0;
    }
"""
"""A long function whose time is that of a leaf far below 1 us, beside a long leaf."""


def recorded_alone(folder: Path, number: int) -> Answer:
    """Long functions come before a leaf, which is not specified; the printed command records what tracing distorts."""
    write_program(folder, GRINDER.replace("STEPS", str(3000 + 300 * (number % 8))), "app.c")
    subprocess.run(["gcc", "-O1", "-g", "-finstrument-functions", "-o", "app", "app.c"], cwd=folder, check=True)
    perflaw(folder, "record", "--collect", "paths", "--repeat", "2", "--", "./app", "1200")
    specs = json.loads(perflaw(folder, "mine", "--json"))["specs"]
    order = [one["component"] for one in specs]
    leaf = next(one for one in specs if one["component"] == "step")
    exported = perflaw(folder, "mine", "--export", "yaml")
    commands = [line for line in perflaw(folder, "mine").splitlines() if line.startswith("perflaw record")]
    right = order.index("polish") < order.index("step") and not leaf["groups"] and "'step'" not in exported
    if not right or len(commands) != 1:
        return Answer(f"{order}, {len(leaf['groups'])} groups of step, {commands}", False)
    perflaw(folder, *shlex.split(commands[0])[1:])
    # The truth: a build without hooks, of which nothing but the long function is recorded.
    subprocess.run(["gcc", "-O1", "-g", "-o", "plain", "app.c"], cwd=folder, check=True)
    perflaw(folder, "record", "-e", "plain", "--collect", "paths", "--select", "grind", "--", "./plain", "1200")
    medians, notes = [], []
    for experiment in ("default-alone", "plain"):
        specs = json.loads(perflaw(folder, "mine", "--json", "-e", experiment))["specs"]
        grind = next(one for one in specs if one["component"] == "grind")
        medians.append(grind["groups"][0]["durations"][2] if grind["groups"] else math.nan)
        notes += grind["notes"]
    ratio = medians[0] / medians[1]
    quiet = not any(note.startswith("perturbed") for note in notes)
    return Answer(
        f"{order}, grind alone {medians[0]:.0f} ns, plain {medians[1]:.0f} ns, {notes}", quiet and 0.6 < ratio < 1.7
    )


POINTS: tuple[Point, ...] = (
    Point(14, "one kind, ten times slower, 3 runs against 3", one_kind(3, 3)),
    Point(14, "nothing, functions of one kind", unchanged(KINDS)),
    Point(14, "nothing, quick and slow calls", unchanged(STORE)),
    Point(15, "one way of two in a group: its own number", own_number),
    Point(16, "slow in all calls by one way, one run against one", all_calls),
    Point(16, "2.2 times slower, one run: more runs as told", settled),
    Point(16, "the documented example", documented),
    Point(17, "left out by --select", why_missing),
    Point(17, "removed, or moved", missing_otherwise),
    Point(17, "renamed, or there and not called", renamed_or_not_called),
    Point(18, "exported tests agree with check", exported),
    Point(19, "in C long functions go first, and what tracing distorts is recorded alone", recorded_alone),
    Point(20, "words of conditions", documented),
)
