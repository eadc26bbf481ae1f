"""Memory that recording adds, at the target and at the recorder: memory.py [CALLS].

Ten million calls over 1,000 functions and depth 50 (programs/web.py), in 1,000 calling contexts and in as many as there
may be. Added: peak of the recorded target less the plain one's, and peak of the recorder less what it takes to record a
program of a hundred calls. Saving, which comes when the target has ended, is told apart from recording.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from shared import PROGRAMS, Bars, pythons, recorded, told

BAR_MB = 100
PROGRAM = str(PROGRAMS / "web.py")


def run(command: list[str], folder: Path) -> tuple[int, str]:
    """Peak kB of the target, as it told it, and the recorder's closing line."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return int(done.stdout.split()[0]), done.stderr.strip()


def show(version: str, shape: str, python: str, calls: str, bars: Bars) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, report = Path(name), Path(name) / "report"
        plain, _ = run([python, PROGRAM, shape, calls], folder)
        target, words = run(recorded("--tracer", "native", "--", python, PROGRAM, shape, calls, report=report), folder)
        after = told(report)
        run(recorded("--tracer", "native", "--", python, PROGRAM, shape, "100", report=report), folder)
        before = told(report)
    at_target = (target - plain) / 1024
    recording = (after["recording_kb"] - before["recording_kb"]) / 1024
    saving = (after["peak_kb"] - before["peak_kb"]) / 1024
    beside = bars.check(f"{version} {shape}, MB", at_target + recording, BAR_MB)
    print(f"Python {version}, {shape}: target {plain / 1024:.0f} MB plain, recorder {before['peak_kb'] / 1024:.0f} MB")
    print(f"  added at the target                   {at_target:7.1f} MB")
    print(f"  added at the recorder while it runs   {recording:7.1f} MB   both {at_target + recording:.1f}  {beside}")
    print(f"  added at the recorder with its save   {saving:7.1f} MB   both {at_target + saving:.1f}")
    print(f"  {words}")


def main(calls: int = 10_000_000) -> None:
    bars = Bars()
    for version, python in pythons(("3.11", "3.13")).items():
        for shape in ("chains", "web"):
            show(version, shape, python, str(calls), bars)
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
