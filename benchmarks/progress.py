"""Whether long work says truly how long it will still take: python benchmarks/progress.py [VERB...].

pycparser is recorded at five sizes (once, below build/), with call paths. Then each verb runs on a terminal,
with nothing kept of what earlier verbs learnt. For every line of progress in the second half of its step, the time left
that it tells is compared with the time until the step was over. "off" is the share of these lines that are wrong by more
than a factor of two, and by more than a second. "silent" is the longest time without a new line of progress or output.

Bars: 20 % of the lines of a verb off, 3 s of silence; the line is gone at the end; nothing of it on a pipe or with
--quiet. Status 1 where one is missed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from shared import CACHE, PROGRAMS, Bars, environment

PACKAGES = ("pycparser==3.12",)
SIZES = "n=5,15,40,80,160"
OFF, SILENT_S, FACTOR, SLACK_S = 0.2, 3.0, 2.0, 1.0
UNITS = {"d": 86400, "h": 3600, "min": 60, "s": 1}
LINE = re.compile(r"\r\x1b\[K([^\r\n\x1b]*)")
LEFT = re.compile(r"about (.+?) left")
PERFLAW = [sys.executable, "-m", "perflaw"]
EVENTS = 1_500_000
"""Spans of the trace that is imported."""
STUDY = """
target: {run: "python target.py {args}", result: {json: stdout}}
knobs: {x: {type: int, range: [1, 50], default: 1, apply: {arg: "--x={}"}}}
metrics: {cost: {path: cost, goal: min}}
policy: random
trials: 16
"""
TARGET = """
import json, sys, time
x = int(sys.argv[1].split("=")[1])
time.sleep(0.3)
print(json.dumps({"cost": (x - 20) ** 2 + 5}))
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a terminal showed of a command."""

    seconds: float
    """How long the command took."""
    shown: tuple[tuple[float, str], ...]
    """Seconds after the start, and the text that came then."""
    status: int
    """Exit status."""

    def lines(self) -> list[tuple[float, str]]:
        """The lines of progress with their times; an empty one where a line was taken away."""
        return [(at, line) for at, text in self.shown for line in LINE.findall(text)]

    def judged(self) -> tuple[int, int]:
        """Lines in the second half of their step that tell a time left, and how many of them are off."""
        steps: list[list[tuple[float, str]]] = []
        label, over = "", []
        for at, line in self.lines():
            here = re.split(r" \[| · ", line)[0]
            if steps and over and over[-1] is None and here != label:
                over[-1] = at
            if line and (not steps or over[-1] is not None):
                steps.append([])
                over.append(None)
            if line:
                steps[-1].append((at, line))
            label = here
        told = off = 0
        for step, end in zip(steps, over, strict=True):
            ended = self.seconds if end is None else end
            began = step[0][0] - 1.0  # lines are shown from the second second on
            for at, line in step:
                left = LEFT.search(line)
                if left is None or at < (began + ended) / 2:
                    continue
                told += 1
                true, said = ended - at, seconds(left[1])
                off += abs(said - true) > SLACK_S and not 1 / FACTOR <= said / max(true, 1e-3) <= FACTOR
        return told, off

    def silence(self) -> float:
        """The longest time in which the terminal showed nothing new."""
        times = [0.0, *[at for at, _ in self.shown], self.seconds]
        return max(b - a for a, b in itertools.pairwise(times))

    def is_left_behind(self) -> bool:
        """Whether a line of progress stands on the terminal at the end."""
        last = "".join(text for _, text in self.shown).rpartition("\r\x1b[K")[2]
        return bool(re.search(r"\[[#-]{20}\]|about .+ left", last.partition("\n")[0]))


def seconds(words: str) -> float:
    """The time that words tell."""
    if words == "a second":
        return 1.0
    return float(sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+) (d|h|min|s)\b", words)))


def on_a_terminal(command: list[str], folder: Path, environ: dict[str, str]) -> Seen:
    """Run a command on a terminal of 100 columns."""
    began, shown = time.monotonic(), []
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(folder)
        os.execvpe(command[0], command, {**environ, "TERM": "xterm", "COLUMNS": "100"})
    while True:
        try:
            text = os.read(terminal, 1 << 16)
        except OSError:  # the program has ended
            break
        if not text:
            break
        shown.append((time.monotonic() - began, text.decode(errors="replace")))
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return Seen(time.monotonic() - began, tuple(shown), os.waitstatus_to_exitcode(status))


def prepare(folder: Path) -> None:
    """Record the program, and make a trace and a study, once."""
    if (folder / "prepared").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    python = environment("3.11", PACKAGES, "progress")
    record = [*PERFLAW, "record", "--quiet", "--select", "*", "--collect", "paths", "--vary", SIZES]
    program = [python, str(PROGRAMS / "ahead_more.py"), "pycparser", "{n}"]
    subprocess.run([*record, "-e", "parser", "--", *program], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    with (folder / "trace.json").open("w") as file:
        file.write('{"traceEvents":[\n')
        for i in range(EVENTS):
            span = {"name": f"f{i % 97}", "ph": "X", "ts": 10 * i, "dur": 5 + i % 3, "pid": 1, "tid": 1}
            file.write(json.dumps(span) + ("" if i == EVENTS - 1 else ",\n"))
        file.write("]}")
    (folder / "prepared").write_text("")


def commands(scratch: Path) -> dict[str, list[str]]:
    """Verb → arguments of a command that takes more than two seconds."""
    parser, page = ["-e", "parser"], str(scratch / "page.html")
    store = (scratch / "store").as_uri()
    return {
        "annotate": ["annotate", *parser, "--calls"],
        "predict": ["predict", "parser", "n=1200"],
        "check": ["check", "parser", "5", *parser],
        "variance": ["variance", *parser],
        "variance -o": ["variance", *parser, "-o", page],
        "trend": ["trend", *parser],
        "mine": ["mine", *parser],
        "report": ["report", *parser, "-o", page],
        "show": ["show", *parser],
        "import": ["import", str(CACHE / "progress" / "trace.json"), "-e", "imported"],
        "push": ["push", "parser", store],
        "pull": ["pull", store, "parser"],
        "record": ["record", "-e", "naps", "--vary", "n=100,200,400,800,1600", "--", "naps.py", "{n}"],
        "explore": ["explore", "study.yaml"],
    }


def main() -> None:
    """Run the verbs and print what their progress was worth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verbs", nargs="*", metavar="VERB", help="only these, as the table names them")
    parser.add_argument("--lines", action="store_true", help="print every line of progress with its time")
    options = parser.parse_args()
    folder, bars = CACHE / "progress", Bars()
    prepare(folder)
    cache = (
        os.environ.get("PERFLAW_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "perflaw"
    )
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch) / "work"
        (work / ".perflaw").mkdir(parents=True)
        (work / "study.yaml").write_text(STUDY)
        (work / "target.py").write_text(TARGET)
        (work / "naps.py").write_text("import sys, time\ntime.sleep(0.002 * int(sys.argv[1]))\n")
        print(f"{'verb':12} {'took':>7} {'lines':>6} {'off':>5} {'silent':>7}")
        for verb, arguments in commands(Path(scratch)).items():
            if options.verbs and verb not in options.verbs:
                continue
            experiment = work / ".perflaw" / "parser"
            shutil.rmtree(experiment, ignore_errors=True)
            if verb != "pull":
                shutil.copytree(folder / ".perflaw" / "parser", experiment)
            elif "push" not in options.verbs:
                subprocess.run([*PERFLAW, "push", "--quiet", "parser", arguments[1]], cwd=folder, check=True)
            # Tracers that were built stay; laws that were learnt are not found.
            kept = Path(scratch) / "cache" / verb
            shutil.copytree(cache, kept, ignore=shutil.ignore_patterns("laws-*", "dwarf-*", "patches-*", "stores"))
            environ = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
            environ["PERFLAW_CACHE"] = str(kept)
            seen = on_a_terminal([*PERFLAW, *arguments], work, environ)
            if options.lines:
                print("\n".join(f"    {at:6.1f} {line}" for at, line in seen.lines()))
            if seen.status not in (0, 1):
                print("".join(text for _, text in seen.shown)[-2000:])
                bars.missed.append(f"{verb}: exit status {seen.status}")
            told, off = seen.judged()
            # A program that is recorded may write to the terminal: the line is drawn anew after each run alone.
            silent = "" if verb == "record" else bars.check(f"{verb}: silent", seen.silence(), SILENT_S)
            if told:
                bars.check(f"{verb}: lines off", off / told, OFF)
            if seen.is_left_behind():
                bars.missed.append(f"{verb}: a line of progress stays")
            print(f"{verb:12} {seen.seconds:6.1f}s {told:6} {off:5} {seen.silence():6.1f}s {silent}", flush=True)
        quiet = on_a_terminal([*PERFLAW, "show", "-e", "parser", "--quiet"], folder, dict(os.environ))
        piped = subprocess.run([*PERFLAW, "show", "-e", "parser"], cwd=folder, capture_output=True, text=True)
        if quiet.lines() or "\r" in piped.stderr:
            bars.missed.append("progress with --quiet or on a pipe")
    bars.leave()


if __name__ == "__main__":
    main()
