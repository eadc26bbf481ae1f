"""What ``pytest --perflaw`` costs on suites of real packages: pytest_suite.py [PACKAGE...] [--rounds N].

The suite of a package, from its source distribution, runs plainly and with --perflaw in turn, in one environment. What
counts is CPU time of all processes, the recorder's included: other programs on the machine change it little. Wall time
stands beside it. The ratio is the median over the pairs.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from packages import SUITES, TOOLS, source
from shared import Bars, environment

USUAL = ("attrs==24.2.0", "jinja2==3.1.4", "httpx==0.27.2")
BAR = 1.3
"""Times that a suite may take with --perflaw."""


def timed(command: list[str], folder: Path, env: dict[str, str]) -> tuple[float, float, str]:
    """CPU and wall seconds of a command with all its processes, and its last line of output."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    last = [line for line in done.stdout.splitlines() if " in " in line and ("passed" in line or "failed" in line)]
    return cpu, time.monotonic() - began, last[-1].strip("= ") if last else done.stderr[-400:]


def compare(package: str, rounds: int, bars: Bars) -> None:
    """Run the suite both ways in turn, and print the ratios."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    suite = SUITES[package]
    python = environment(version, (*TOOLS, package, *suite.needs), f"suite-{package.partition('==')[0]}")
    folder = source(package, version)
    with tempfile.TemporaryDirectory() as name:
        # perflaw and what it needs come behind what the suite's environment has.
        site = Path(name) / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text(f"import site\nsite.addsitedir({sysconfig.get_path('purelib')!r})\n")
        env = os.environ | {"PYTHONPATH": str(site), "PYTHONHASHSEED": "0"}
        words = [python, "-m", "pytest", "-q", "-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:randomly"]
        words += ["-p", "no:xdist", "-p", "no:benchmark"]
        link = folder / ".perflaw"
        link.unlink(missing_ok=True)
        (Path(name) / "store").mkdir()
        link.symlink_to(Path(name) / "store", target_is_directory=True)
        pairs = []
        try:
            timed([*words, *suite.tests], folder, env)  # bytecode is written once
            for number in range(rounds):
                order = ["", "--perflaw"] if number % 2 == 0 else ["--perflaw", ""]
                pair = {way: timed([*words, *([way] if way else []), *suite.tests], folder, env) for way in order}
                pairs.append((pair[""], pair["--perflaw"]))
        finally:
            link.unlink()
    cpu, wall = (statistics.median(with_us[i] / plain[i] for plain, with_us in pairs) for i in (0, 1))
    plain, with_us = pairs[0]
    print(f"Python {version}, {package}: {plain[2]}; with --perflaw: {with_us[2]}")
    print(f"  plain {plain[0]:.2f} s of CPU; --perflaw {cpu:.2f}x the CPU time, {wall:.2f}x the wall time")
    bars.check(f"{package}: CPU time with --perflaw", cpu, BAR)


if __name__ == "__main__":
    words = sys.argv[1:]
    count = 3
    if "--rounds" in words:
        place = words.index("--rounds")
        count, words = int(words[place + 1]), words[:place] + words[place + 2 :]
    checked = Bars()
    print(f"load {os.getloadavg()[0]:.1f}")
    for one in words or USUAL:
        compare(one, count, checked)
    checked.leave()
