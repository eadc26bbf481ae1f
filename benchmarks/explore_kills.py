"""Studies under fire: kill -9 of explorer, agent, collector and target at random points.

Every study must end as if nothing had been. Prints a line a study and exits with 1 where one ended with other trials than
planned, with a configuration, a number or a run lost, doubled or out of order, with a process left over, or with the
target's files not as they were.

    python benchmarks/explore_kills.py --kills 50 --seed 1
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

TRIALS = 8
VICTIMS = ("explorer", "agent", "target", "explorer and agent", "collector")
"""The last one runs for studies of probes alone."""
ORIGINAL = "as it was\n" * 100
PROGRAM = """
import json, os, subprocess, sys, time
size = int(sys.argv[1].split("=")[1])
with open("db", "a") as file:
    file.write("changed")
open("db-wal", "w").write("half a transaction")
away = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"], start_new_session=True,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
for step in range(6):
    time.sleep(0.01)
    print(json.dumps({"rate": size + step / 100}), flush=True)
"""
SERVER = """
import os, signal, socket, sys
with open("db", "a") as file:
    file.write("changed by the server")
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.pause()
    os._exit(0)
open("ready", "w")
signal.pause()
"""
ONE_SHOT = """
target: {run: "PYTHON -S prog.py {args}", result: {lines: stdout}, timeout_s: 20}
knobs:
  size: {type: int, range: [1, 1000], apply: {arg: "--size={}"}}
  depth: {type: ordinal, values: [1, 2, 4], apply: {env: DEPTH}}
metrics: {rate: {path: rate, goal: max}}
restore: {snapshot: [db]}
policy: random
repetitions: 2
early_stop: false
trials: TRIALS
"""
SERVED = """
target: {start: "PYTHON -S server.py {args}", ready: {file: ready}, workload: "PYTHON -S prog.py --size={size}",
         result: {lines: stdout}}
knobs:
  size: {type: int, range: [1, 1000], apply: {arg: "--size={}"}}
metrics: {rate: {path: rate, goal: max}}
restore: {snapshot: [db], on: [trial, exit, crash]}
policy: random
early_stop: false
trials: TRIALS
"""
PROBED = """
target: {run: "./probed {args}", timeout_s: 20}
knobs:
  size: {type: int, range: [1, 1000], apply: {arg: "{}"}}
metrics: {rate: {probe: query, rate: count, goal: max}}
restore: {snapshot: [db]}
policy: random
early_stop: false
trials: TRIALS
"""
PROBED_PROGRAM = """
#include <perflaw.h>
#include <stdio.h>
#include <unistd.h>
PERFLAW_PROBE(1, "query", "");
int main(void) {
    FILE *file = fopen("db", "a");
    fputs("changed", file);
    fclose(file);
    for (int i = 0; i < 100; i++) {
        CNT_PROBE_BEGIN(1, 1);
        usleep(1000);
        CNT_PROBE_END(1);
    }
}
"""
KINDS = {"one-shot": ONE_SHOT, "served": SERVED, "probed": PROBED}
COMMAND = (sys.executable, "-m", "perflaw", "explore", "study.yaml", "--seed", "SEED", "-e", "kills", "--json")


def compiled(folder: Path) -> Path:
    """The program with a probe."""
    (folder / "probed.c").write_text(PROBED_PROGRAM)
    include = Path(__file__).resolve().parents[1] / "native" / "include"
    command = ["cc", "-O1", "-I", str(include), "probed.c", "-o", "probed", "-pthread"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "probed"


class Study:
    """A study in a folder of its own, explored by a command: perflaw's own, unless a test has a quicker one."""

    def __init__(self, folder: Path, text: str, seed: int, command: Sequence[str] = COMMAND) -> None:
        self.folder, self.command = folder, [word.replace("SEED", str(seed)) for word in command]
        folder.mkdir(parents=True)
        (folder / "db").write_text(ORIGINAL)
        (folder / "prog.py").write_text(PROGRAM)
        (folder / "server.py").write_text(SERVER)
        (folder / "study.yaml").write_text(text.replace("PYTHON", sys.executable).replace("TRIALS", str(TRIALS)))

    def start(self) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(self.command, cwd=self.folder, stdout=pipe, stderr=pipe, text=True)

    def rows(self) -> list[dict]:
        """Trials as the journal has them."""
        database = sqlite3.connect(f"file:{self.folder}/.perflaw/kills/study.db?mode=ro", uri=True)
        found = database.execute("SELECT number, state, trial FROM trials ORDER BY number").fetchall()
        database.close()
        return [{**json.loads(text), "state": state} for _, state, text in found]

    def configurations(self) -> list[dict]:
        return [row["configuration"] for row in self.rows()]


def processes(study: Study) -> list[tuple[int, str, bytes]]:
    """Pid, command line and environment of everything that works in the study's folder."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                if (path / "cwd").readlink() == study.folder:
                    line = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found.append((int(path.name), line, (path / "environ").read_bytes()))
            except OSError:
                continue
    return found


def victims(study: Study, explorer: int, kind: str) -> list[int]:
    here = [one for one in processes(study) if one[0] != explorer]
    agents = [pid for pid, line, _ in here if "perflaw.explore.agent.agent" in line]
    if kind == "explorer":
        return [explorer]
    if kind == "agent":
        return agents
    if kind == "explorer and agent":
        return [explorer, *agents]
    if kind == "collector":
        return [pid for pid, line, _ in here if "perflaw.record.probes.service" in line]
    return [pid for pid, _, environment in here if b"PERFLAW_TRIAL=" in environment]


def run_out(study: Study, kills: list[tuple[float, str]]) -> tuple[str, int]:
    """Run a study to its end, killing as planned (seconds after the last start, kind); what went wrong, and kills made."""
    made, status = 0, None
    waiting = list(kills)
    for _ in range(len(kills) + 2):
        process = study.start()
        began = time.monotonic()
        while process.poll() is None and time.monotonic() - began < 60:
            if waiting and time.monotonic() - began >= waiting[0][0]:
                after, kind = waiting.pop(0)
                chosen = victims(study, process.pid, kind)
                if not chosen:  # it does not run just now: look again, at some point or other
                    waiting.insert(0, (time.monotonic() - began + after % 0.037, kind))
                for pid in chosen:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        continue
                if chosen:
                    made += 1
                    began = time.monotonic()
            time.sleep(0.002)
        if process.poll() is None:
            process.kill()
            return "it hangs", made
        errors = process.communicate()[1]
        status = process.returncode
        if status == 0:
            break
        if status != -signal.SIGKILL:
            return f"status {status}: {errors.strip()}", made
    return "" if status == 0 else "never came to its end", made


def faults(study: Study, wanted: list[dict]) -> list[str]:
    """What is not as it would be had nothing been killed."""
    rows, found = study.rows(), []
    if [row["number"] for row in rows] != list(range(1, TRIALS + 1)):
        found.append(f"{len(rows)} trials")
    if any(row["state"] != "done" for row in rows):
        found.append("trials that are not over")
    if [row["configuration"] for row in rows] != wanted:
        found.append("other configurations than without kills")
    runs = sorted(path.parent.name for path in study.folder.glob(".perflaw/kills/runs/*/run.json"))
    if runs != sorted(row["run"] for row in rows if row["valid"]) or len(set(runs)) != len(runs):
        found.append(f"runs {runs}")
    if list(study.folder.glob(".perflaw/kills/runs/*/unfinished")):
        found.append("unfinished runs")
    if (study.folder / "db").read_text() != ORIGINAL or (study.folder / "db-wal").exists():
        found.append("files not restored")
    deadline = time.monotonic() + 10
    while (left := processes(study)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found + ([f"left over: {[line for _, line, _ in left]}"] if left else [])


def undisturbed(root: Path, kind: str, seed: int, command: Sequence[str]) -> tuple[list[dict], float, list[str]]:
    """Configurations of a study that nobody disturbs, how long it takes, and its faults."""
    study = new_study(root, f"undisturbed-{kind}", kind, seed, command)
    began = time.monotonic()
    why, _ = run_out(study, [])
    if why:
        return [], 0.0, [f"undisturbed {kind}: {why}"]
    length, wanted = time.monotonic() - began, study.configurations()
    return wanted, length, [f"undisturbed {kind}: {fault}" for fault in faults(study, wanted)]


def new_study(root: Path, name: str, kind: str, seed: int, command: Sequence[str]) -> Study:
    study = Study(root / name, KINDS[kind], seed, command)
    if kind == "probed":
        if not (root / "probed").exists():
            compiled(root)
        shutil.copy(root / "probed", study.folder / "probed")
    return study


def campaign(
    root: Path,
    kills: int,
    seed: int,
    each: int = 4,
    tell: Callable[[str], object] = print,
    kinds: Sequence[str] = tuple(KINDS),
    command: Sequence[str] = COMMAND,
) -> list[str]:
    """Kill so many times, ``each`` a study at most; all faults."""
    numbers, found, made, number = random.Random(seed), [], 0, 0
    usual = {kind: undisturbed(root, kind, seed, command) for kind in kinds}
    found = [fault for _, _, wrong in usual.values() for fault in wrong]
    while made < kills and number < 3 * kills and not found:
        kind = kinds[number % len(kinds)]
        wanted, length, _ = usual[kind]
        number, planned = number + 1, min(each, kills - made)
        chosen = VICTIMS if kind == "probed" else VICTIMS[:-1]
        plan = [(numbers.uniform(0.01, 0.7 * length / planned), numbers.choice(chosen)) for _ in range(planned)]
        study = new_study(root, f"study-{number}", kind, seed, command)
        why, count = run_out(study, plan)
        made += count
        wrong = [why] if why else faults(study, wanted)
        tell(f"{kind:8}  {count} kills: {', '.join(what for _, what in plan)}  {'; '.join(wrong) or 'as planned'}")
        found += [f"{kind} {number}: {fault}" for fault in wrong]
        if not wrong:
            shutil.rmtree(study.folder)
    tell(f"{made} kills in {number} studies, {len(found)} faults")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="perflaw-kills-") as folder:
        found = campaign(Path(folder), options.kills, options.seed)
    for fault in found:
        print(fault)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
