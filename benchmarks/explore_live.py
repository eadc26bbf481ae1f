"""Studies of examples/ live, as a person runs them: ``perflaw explore`` in a copy of the example's folder."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from shared import CACHE, Bars

from perflaw.types.studies import Value

PATIENCE_S = 1800


def copied(example: Path) -> Path:
    """A copy of the example's folder under build/, with what it made the last time; without its studies' trials."""
    folder = CACHE / "examples" / example.name
    shutil.rmtree(folder / ".perflaw", ignore_errors=True)
    shutil.copytree(example, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".perflaw", "work"))
    return folder


def explored(folder: Path, study: str, *options: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The document of ``perflaw explore``; exits with what it said where it fails."""
    command = [sys.executable, "-m", "perflaw", "explore", study, "--json", *options]
    told = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **(environment or {})}
    done = subprocess.run(command, cwd=folder, env=told, capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode:
        sys.exit(f"{' '.join(command)} in {folder}: status {done.returncode}\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def live(
    example: Path, study: str, asked: argparse.Namespace, bars: Bars, regret: Callable[[Mapping[str, Value]], float]
) -> None:
    """Studies with seeds 1, 2, …: trials, time, how far the best is from the grid's best, and what the first warns of."""
    folder, environment = copied(example), {"TRIPS_ROWS": str(asked.rows)}
    print(f"\nlive: perflaw explore {study}", flush=True)
    lost, most = [], ["--trials", str(asked.trials)]
    for seed in range(1, asked.live + 1):
        start = time.monotonic()
        found = explored(folder, study, "--seed", str(seed), "-e", f"live-{seed}", *most, environment=environment)
        lost.append(regret(found["best"]["configuration"]))
        trials, took = found["trials"], time.monotonic() - start
        print(
            f"  seed {seed}: {_counts(trials)} in {took:.0f} s; {100 * lost[-1]:.1f} % from the grid's best", flush=True
        )
    if lost:
        print(
            f"  median regret {100 * np.median(lost):.1f} %",
            bars.check("live: median regret, %", 100 * np.median(lost), 5),
        )


def _counts(trials: Sequence[Mapping[str, Any]]) -> str:
    stopped, invalid = (sum(bool(one[word]) for one in trials) for word in ("stopped", "reason"))
    return f"{len(trials)} trials, {stopped} ended early, {invalid} with a remark"


def traps(folder: Path, study: str, bars: Bars, environment: Mapping[str, str]) -> None:
    """The page sizes that SQLite ignores: invalid trials, and the reasons."""
    found = explored(folder, study, "-e", "traps", environment=environment)
    print(f"\nlive: perflaw explore {study}")
    for one in found["trials"]:
        print(f"  page_size {one['configuration']['page_size']:>10}: {one['reason'] or 'a data point'}")
    caught = [one for one in found["trials"] if not one["valid"] and one["configuration"]["page_size"] > 65536]
    named = [one for one in caught if "did not take effect" in one["reason"]]
    print("  ignored and told", bars.check("page sizes that are ignored and told", len(named), 2, least=True))
