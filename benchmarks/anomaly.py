"""Laws as assertions, in the way of Freud's Figure 4: a database that becomes slower, seen by the functions above it.

    python benchmarks/anomaly.py [--runs 6] [--seed 1] [--plot FILE.png]      (--plot needs plotly)

Laws of programs/shop.py are learnt from one workload ("browse"); then another one ("order") is recorded with a delay of
0, 1, 2, 5 and 10 ms in front of every SQLite statement, and checked. Bars: at 0 ms at most 2 % of the assertions fail; from
2 ms on every function that reaches the database is flagged; others that are flagged are told.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from shared import PROGRAMS, Bars

DELAYS = (0, 1, 2, 5, 10)
REACH = {"Database.fetch", "Database.write", "price_of", "search", "take", "sum_up", "order", "browse"}
"""Functions that reach the database on every call, ``main`` and the module apart: they have one call a run."""
WHOLE = {"main", "<module>"}

Failed = dict[int, dict[str, float]]
"""Delay → function → cost over what its violated law says."""


def perflaw(folder: Path, *arguments: object, delay: int = 0) -> str:
    """Run perflaw in the folder; the output. A violated verdict (status 1) is an answer."""
    command = [sys.executable, "-m", "perflaw", *map(str, arguments)]
    environment = {**os.environ, "PERFLAW_DELAY_MS": str(delay)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def record(folder: Path, runs: int, seed: int) -> None:
    """What to learn from and what to check, in turns: what else the machine does then falls on all alike."""
    for number in range(runs):
        _run(folder, "default", "browse", f"learn {seed} {number}", 0)
        for delay in DELAYS:
            _run(folder, f"delay{delay}", "order", f"check {seed} {delay} {number}", delay)


def _run(folder: Path, name: str, workload: str, seed: str, delay: int) -> None:
    program = PROGRAMS / "shop.py"
    perflaw(folder, "record", "-e", name, "--select", "shop.*", "--", program, workload, seed, delay=delay)


def measure(folder: Path) -> tuple[Failed, set[str]]:
    """By delay the functions whose law is violated; and all that were checked."""
    perflaw(folder, "annotate", "-o", "shop.law")
    failed: Failed = {}
    checked: set[str] = set()
    for delay in DELAYS:
        verdicts = json.loads(perflaw(folder, "check", "shop.law", "-e", f"delay{delay}", "--json"))["verdicts"]
        names = {one["component"].removeprefix("shop."): one["verdict"] for one in verdicts}
        effects = {one["component"].removeprefix("shop."): one["effect"] for one in verdicts}
        failed[delay] = {name: effects[name] for name, verdict in names.items() if verdict == "violated"}
        checked |= names.keys()
        told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(_counts(names).items()))
        print(f"{delay:>3} ms: {told}", flush=True)
    return failed, checked


def reaches(name: str) -> bool:
    """Whether a function, or the one a comprehension stands in, reaches the database on every call."""
    return name.split(".<locals>")[0] in REACH


def _counts(names: dict[str, str]) -> dict[str, int]:
    return {verdict: list(names.values()).count(verdict) for verdict in set(names.values())}


def _colour(effect: float | None) -> int:
    """1 for a function that costs more than its law says, −1 for less, 0 where the law is not violated."""
    return 0 if effect is None else 1 if effect > 1 else -1


def plot(failed: Failed, checked: set[str], file: str) -> None:
    """Share of the assertions that pass, by delay, and which functions fail."""
    import plotly.graph_objects as go

    names = sorted(checked, key=lambda name: (not (reaches(name) or name in WHOLE), name))
    z = [[_colour(failed[delay].get(name)) for delay in DELAYS] for name in names]
    labels = [f"{name} {'●' if reaches(name) or name in WHOLE else ''}" for name in names]
    share = [f"{delay} ms<br>{100 * (1 - len(failed[delay]) / len(checked)):.0f} % pass" for delay in DELAYS]
    figure = go.Figure(
        go.Heatmap(
            z=z,
            x=share,
            y=labels,
            colorscale=[[0, "#5b8db8"], [0.5, "#dfe7ee"], [1, "#c0392b"]],
            zmin=-1,
            zmax=1,
            showscale=False,
            xgap=3,
            ygap=3,
        )
    )
    figure.update_layout(
        title="Laws violated, by the delay in front of every SQLite statement (● reaches it; blue: cheaper)",
        yaxis={"autorange": "reversed"}, width=900, height=120 + 28 * len(names), margin={"l": 170}, plot_bgcolor="white",
    )  # fmt: skip
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 920, "height": 140 + 28 * len(names)})
        page.set_content(figure.to_html(include_plotlyjs=True, config={"displayModeBar": False}))
        page.wait_for_selector(".heatmaplayer")
        page.screenshot(path=file)
        browser.close()
    print(f"wrote {file}")


def main() -> None:
    """Measure, print, hold against the bars."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", metavar="FILE.png")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        record(Path(folder), options.runs, options.seed)
        failed, checked = measure(Path(folder))
    bars = Bars()
    reach = {name for name in checked if reaches(name)}
    print(f"{len(checked)} assertions, {len(reach)} of them on functions that reach the database on every call")
    for delay in DELAYS:
        share = 100 * len(failed[delay]) / len(checked)
        words = bars.check("failed at 0 ms, %", share, 2.0) if delay == 0 else ""
        if delay >= 2:
            found = 100 * len(failed[delay].keys() & reach) / len(reach)
            words = f"of those that reach it {found:.0f} % " + bars.check(
                f"flagged at {delay} ms, %", found, 100, least=True
            )
            wrong = {name: effect for name, effect in failed[delay].items() if name not in reach | WHOLE}
            words += (
                f"; others {len(wrong)} {', '.join(f'{name} {wrong[name]:.2g}x' for name in sorted(wrong))}".rstrip()
            )
            words += "".join(f"; missed {name}" for name in sorted(reach - failed[delay].keys()))
        print(f"{delay:>3} ms: {share:5.1f} % of the assertions fail  {words}")
    if options.plot:
        plot(failed, checked, options.plot)
    bars.leave()


if __name__ == "__main__":
    main()
