"""Regressions planted in a real package, found by ``perflaw check``: power, and false alarms: regressions.py [NULLS].

markdown-it-py is copied beside a script that renders a text of n sections, recorded, and patched: an own cost of +10 %
(ten runs), +30 % and +100 % (five runs each), one more call, and one more power of n (one run). Unchanged programs are
recorded again as often as said (20). Found means that the verdict on the patched function is "violated" and names what
changed. CPU time. The first line tells how far the machine was from quiet: the scatter of the runs' speeds.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from shared import Bars

from perflaw.check.program_summary import summarize
from perflaw.store.experiment import open_experiment
from perflaw.store.program import read_program
from perflaw.types import CPU

SIZES = "n=100,200,300,450,600"
APP = '''import sys

from markdown_it import MarkdownIt

SECTION = """# Section {0}

Some *emphasis*, **strong** text, a [link](http://example.com/{0}) and `code {0}`; plain words follow without end.

- first item of {0}
- second item with ![image](a.png "title")

> a quote of {0}

"""
MarkdownIt().render("".join(SECTION.format(i) for i in range(int(sys.argv[1]))))
'''
TARGETS = 3
"""Functions that dearer calls are planted in."""
MIN_SHARE, MIN_UNIT_NS = 0.005, 600.0
"""Their least share of the cost, and least own cost of a call."""


def perflaw(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run perflaw in a folder."""
    return subprocess.run([sys.executable, "-m", "perflaw", *arguments], cwd=folder, capture_output=True, text=True)


def record(folder: Path, name: str, repeat: int, sizes: str = SIZES) -> None:
    """Record the program with the sizes; fails if that fails."""
    done = perflaw(
        folder, "record", "-e", name, "--metric", "cpu", "--vary", sizes, "--repeat", str(repeat), "--", "app.py", "{n}"
    )
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)


def check(folder: Path, name: str) -> list[dict[str, object]]:
    """Violated verdicts of the runs of an experiment by the laws of the base."""
    done = perflaw(folder, "check", "base.law", "-e", name, "--json")
    if done.returncode > 1:
        raise SystemExit(done.stdout + done.stderr)
    return [one for one in json.loads(done.stdout)["verdicts"] if one["verdict"] == "violated"]


def targets(folder: Path) -> list[tuple[str, Path, int, float]]:
    """Name, file, first line and own cost of a call of functions that matter, the costliest first."""
    with contextlib.chdir(folder):
        costs = read_program(open_experiment("base").recordings(), CPU)
    own, calls = costs.own.sum(axis=0), costs.calls.sum(axis=0)
    order = np.argsort(-own)
    # That of the fastest run: statements are measured on an idle machine as well.
    unit = (costs.own / np.maximum(costs.calls, 1)).min(axis=0)
    return [
        (one.name, folder / one.file, one.line, float(unit[f]))
        for f, one in ((f, costs.components[f]) for f in order.tolist())
        if one.name.startswith("markdown_it.")
        and "<" not in one.name
        and calls[f] >= 200
        and unit[f] >= MIN_UNIT_NS
        and own[f] >= MIN_SHARE * own.sum()
    ][:TARGETS]


def planted(source: str, line: int, statement: str) -> str:
    """The source with a statement before the first one of the function that begins at a line."""
    functions = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.FunctionDef)]
    [function] = [one for one in functions if line in (one.lineno, *(d.lineno for d in one.decorator_list))]
    first = function.body[1] if ast.get_docstring(function) and len(function.body) > 1 else function.body[0]
    lines = source.splitlines(keepends=True)
    lines.insert(first.lineno - 1, " " * first.col_offset + statement + "\n")
    return "".join(lines)


def statement_of(duration_ns: float) -> str:
    """A statement that takes so much CPU time on a quiet machine: assignments, or a loop from a microsecond on."""

    def cost(statement: str) -> float:
        """CPU time of a statement inside a function, ns."""
        timer = timeit.Timer("f()", f"def f():\n    {statement}\ndef g(): pass", timer=time.process_time)
        empty = timeit.Timer("g()", "def g(): pass", timer=time.process_time)
        return (min(timer.repeat(15, 2000)) - min(empty.repeat(15, 2000))) / 2000 * 1e9

    if duration_ns < 1000:
        return "; ".join(["_ = ()"] * max(round(duration_ns / cost("; ".join(["_ = ()"] * 100)) * 100), 1))
    loop = "for _ in range({}): pass"
    short, long = cost(loop.format(100)), cost(loop.format(1100))
    return loop.format(max(round(100 + (duration_ns - short) / (long - short) * 1000), 1))


def tried(folder: Path, file: Path, text: str, name: str, repeat: int, sizes: str = SIZES) -> list[dict[str, object]]:
    """Violated verdicts of the program with another text of a file."""
    before = file.read_text()
    file.write_text(text)
    try:
        subprocess.run([sys.executable, "app.py", "5"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        record(folder, name, repeat, sizes)
    finally:
        file.write_text(before)
    return check(folder, name)


def found(violated: Sequence[dict[str, object]], function: str, changed: str) -> bool:
    """Whether a verdict is on the function and says what changed."""
    return any(one["component"] == function and one["changed"] == changed for one in violated)


def plant_all(folder: Path, bars: Bars) -> None:
    """Plant every regression and print whether it is found."""
    dearer = [(0.1, 2), (0.3, 1), (1.0, 1)]
    chosen = targets(folder)
    for part, repeat in dearer:
        number = 0
        for place, (name, file, line, unit) in enumerate(chosen):
            text = planted(file.read_text(), line, statement_of(part * unit))
            violated = tried(folder, file, text, f"slow{part:.0%}{place}".replace("%", ""), repeat)
            number += found(violated, name, "unit cost")
            for one in violated:
                print(f"    {one['component']}: {one['effect']:.2f}x {one['cause'] or one['message']}", flush=True)
        print(f"own cost {part:+.0%}, {5 * repeat} runs: found {number} of {len(chosen)}", flush=True)
        bars.check(f"own cost {part:+.0%}: found", number / max(len(chosen), 1), 0.66, least=True)
    paragraph = folder / "markdown_it" / "rules_block" / "paragraph.py"
    source = paragraph.read_text()
    line = next(one.lineno for one in ast.parse(source).body if isinstance(one, ast.FunctionDef))
    for label, statement in (
        ("one more call", "state.isEmpty(startLine); state.isEmpty(startLine)"),
        ("one more power of n", "any(state.isEmpty(one) for one in range(startLine))"),
    ):
        text = planted(source, line, statement)
        violated = tried(folder, paragraph, text, label.replace(" ", ""), 1, "n=300")
        here = "markdown_it.rules_block.state_block.StateBlock.isEmpty"
        is_found = found(violated, here, "calls")
        for one in violated:
            print(f"    {one['component']}: {one['effect']:.2f}x {one['cause'] or one['message']}", flush=True)
        print(f"{label}, one run: {'found' if is_found else 'missed'}", flush=True)
        bars.check(f"{label}: found", float(is_found), 1.0, least=True)


def main(nulls: int = 20) -> None:
    """Record, plant, and record unchanged programs again."""
    bars = Bars()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for package in ("markdown_it", "mdurl"):
            spec = importlib.util.find_spec(package)
            assert spec is not None and spec.origin is not None
            shutil.copytree(Path(spec.origin).parent, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "app.py").write_text(APP)
        subprocess.run([sys.executable, "app.py", "5"], cwd=folder, check=True)
        record(folder, "base", 4)
        learnt = perflaw(folder, "annotate", "-e", "base", "--metric", "cpu", "-o", "base.law")
        if learnt.returncode:
            raise SystemExit(learnt.stdout + learnt.stderr)
        with contextlib.chdir(folder):
            speeds = summarize(read_program(open_experiment("base").recordings(), CPU)).speed.values()
        print(f"speeds of the {len(speeds)} runs of the base differ by {np.std(list(speeds)):.0%}", flush=True)
        plant_all(folder, bars)
        alarms = 0
        for number in range(nulls):
            record(folder, f"null{number}", 1)
            violated = check(folder, f"null{number}")
            alarms += bool(violated)
            for one in violated:
                print(f"    {one['component']}: {one['effect']:.2f}x {one['cause'] or one['message']}", flush=True)
        print(f"unchanged: {alarms} of {nulls} recordings with a violated law")
        bars.check("recordings of the unchanged program with a violated law", float(alarms), 0.0)
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
