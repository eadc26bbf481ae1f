"""Whole real programs at sizes that were not run: programs_ahead.py [--more | --others] [PROGRAM...].

Ten programs on packages of PyPI (programs/ahead.py), with --more eighteen others (programs/ahead_more.py), with --others
twenty further ones (programs/ahead_others.py), are recorded small, at five sizes over a range of 5 to 60, twice each, while
two other processes are busy. ``annotate --metric cpu --at`` predicts their cost at 5 to 10 times the largest of these
sizes, which plain runs of that size then have. In the same hour Extra-P (PyPI) is fitted to the whole-process CPU time of
plain runs at the small sizes, as many as were recorded and beside the same busy processes.

Growth is the cost at the large size over that at the largest small one, so it does not depend on how fast the machine
was while it recorded. A function that costs more than the program is counted; there must be none.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path

from neighbour import neighbours
from shared import PROGRAMS, Bars, environment, recorded

PACKAGES = (
    "docutils==0.23", "html5lib==1.1", "lark==1.3.1", "mistune==3.4.0", "networkx==3.6.1", "pygments==2.21.0",
    "pyparsing==3.3.3", "simpy==4.1.2", "sqlparse==0.6.1", "tinydb==4.9.0",
)  # fmt: skip
PEER = ("extrap==4.2.5",)
SIZES = {
    "docutils": ((10, 25, 60, 120, 250), 2000),
    "html5lib": ((20, 60, 150, 300, 600), 5000),
    "lark": ((5, 12, 30, 60, 120), 900),
    "mistune": ((60, 200, 600, 1000, 2000), 16000),
    "networkx": ((20, 40, 100, 200, 400), 2500),
    "pygments": ((20, 60, 150, 300, 600), 5000),
    "pyparsing": ((20, 60, 150, 300, 600), 5000),
    "simpy": ((200, 600, 1500, 3000, 6000), 50000),
    "sqlparse": ((2, 5, 10, 20, 36), 200),
    "tinydb": ((30, 80, 200, 400, 800), 4800),
}
"""Program → sizes that are recorded, and the size that is predicted."""
MORE_PACKAGES = (
    "anytree==2.13.0", "chess==1.11.2", "dulwich==1.2.21", "esprima==4.0.1",
    "jinja2==3.1.6", "pycparser==3.12", "pyflakes==4.1.0", "pygtrie==2.5.0",
    "python-constraint==1.4.0", "reportlab==5.1.0", "rich==15.0.0", "ruamel.yaml==0.19.1", "sympy==1.14.0",
    "textdistance==4.6.3", "tinycss2==1.5.1", "tomlkit==0.15.2", "unidiff==1.0.1", "whoosh==2.7.4",
)  # fmt: skip
MORE_SIZES = {
    "anytree": ((50, 150, 400, 900, 1800), 12000),
    "constraint": ((10, 25, 60, 120, 250), 1500),
    "chess": ((50, 150, 400, 800, 1500), 15000),
    "dulwich": ((20, 60, 150, 300, 500), 5000),
    "esprima": ((5, 15, 40, 80, 160), 1200),
    "jinja2": ((10, 30, 80, 160, 320), 2500),
    "pycparser": ((5, 15, 40, 80, 160), 1200),
    "pyflakes": ((10, 30, 80, 160, 320), 2500),
    "pygtrie": ((50, 150, 400, 900, 1800), 12000),
    "reportlab": ((10, 30, 80, 160, 320), 2500),
    "rich": ((10, 30, 80, 160, 320), 2500),
    "ruamel": ((3, 10, 25, 50, 100), 700),
    "sympy": ((5, 15, 40, 80, 160), 1000),
    "textdistance": ((10, 25, 60, 120, 250), 1500),
    "tinycss2": ((20, 60, 150, 300, 600), 5000),
    "tomlkit": ((5, 15, 40, 80, 160), 1200),
    "unidiff": ((20, 60, 150, 300, 600), 4000),
    "whoosh": ((20, 60, 150, 300, 600), 6000),
}
OTHER_PACKAGES = (
    "astroid==4.3.4", "babel==2.19.0", "beautifulsoup4==4.15.0", "black==26.10.1", "cssutils==2.15.0", "icalendar==7.3.2",
    "intervaltree==3.2.1", "jsonschema==4.26.0", "Markdown==3.11.3", "markdown-it-py==4.3.0", "mpmath==1.4.1",
    "networkx==3.6.1", "nltk==3.10.4", "openpyxl==3.1.5", "python-dateutil==4.0.0", "python-louvain==0.16",
    "PyYAML==6.0.4", "rdflib==7.6.0", "sortedcontainers==2.4.0", "sqlglot==30.30.0", "textX==4.4.0",
)  # fmt: skip
OTHER_SIZES = {
    "astroid": ((10, 25, 60, 150, 300), 3000),
    "babel": ((20, 60, 150, 300, 600), 5000),
    "black": ((5, 12, 25, 50, 100), 1000),
    "bs4": ((20, 60, 150, 300, 600), 5000),
    "cssutils": ((10, 30, 80, 200, 400), 4000),
    "dateutil": ((500, 1500, 4000, 10000, 20000), 200000),
    "icalendar": ((50, 120, 300, 700, 1500), 15000),
    "intervaltree": ((30, 100, 300, 600, 1000), 9000),
    "jsonschema": ((100, 250, 600, 1200, 2500), 25000),
    "louvain": ((100, 250, 600, 1200, 2500), 25000),
    "markdown": ((100, 250, 600, 1500, 3000), 30000),
    "markdown_it": ((20, 60, 150, 300, 600), 5000),
    "mpmath": ((4, 6, 9, 13, 18), 90),
    "nltk": ((300, 800, 2000, 5000, 10000), 100000),
    "openpyxl": ((10, 30, 80, 160, 320), 3000),
    "rdflib": ((10, 30, 80, 160, 320), 3000),
    "sortedcontainers": ((30, 100, 300, 600, 1000), 9000),
    "sqlglot": ((10, 30, 80, 160, 320), 2500),
    "textx": ((10, 25, 60, 120, 250), 2500),
    "yaml": ((10, 30, 80, 160, 320), 3000),
}
REPEAT = 2
GROWTH, GROWTH_MEDIAN, ABSOLUTE, NINE_OF_TEN, COVERED = 0.25, 0.08, 0.35, 0.9, 0.85


@dataclass(frozen=True, slots=True)
class Group:
    """Programs of one file."""

    packages: tuple[str, ...]
    """What they need of PyPI."""
    name: str
    """Of their environment, and of the file."""
    sizes: Mapping[str, tuple[Sequence[int], int]]
    """Program → sizes that are recorded, and the size that is predicted."""

    def script(self) -> str:
        return str(PROGRAMS / f"{self.name.replace('-', '_')}.py")


GROUPS = {
    "": Group(PACKAGES, "ahead", SIZES),
    "--more": Group(MORE_PACKAGES, "ahead-more", MORE_SIZES),
    "--others": Group(OTHER_PACKAGES, "ahead-others", OTHER_SIZES),
}
"""Option → the programs that it chooses."""


def group_of(program: str) -> Group:
    return next(group for group in GROUPS.values() if program in group.sizes)


@dataclass(frozen=True, slots=True)
class Answer:
    """What is predicted for a program, and what is so."""

    program: str
    growth: float
    """Predicted growth over the true one."""
    absolute: float
    """Predicted cost over the true one."""
    held: bool
    """Whether the interval of one new run holds the true cost."""
    peer: float
    """Extra-P's predicted growth over the true one."""
    recorded: float
    """Recorded cost over that of a plain run, at the largest recorded size."""
    above: int
    """Functions that are predicted to cost more than the whole program."""


def plain_cpu(python: str, program: str, size: int) -> float:
    """CPU time of a plain run, s, user and system."""
    process = subprocess.Popen([python, group_of(program).script(), program, str(size)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{program} {size} failed with status {status}")
    return usage.ru_utime + usage.ru_stime


def peer_growth(python: str, sizes: Sequence[int], times: Sequence[Sequence[float]], far: int) -> float:
    """Growth from the last size to ``far`` as Extra-P models it."""
    lines = ["PARAMETER n", "POINTS " + " ".join(map(str, sizes)), "METRIC time", "REGION all"]
    lines += ["DATA " + " ".join(f"{one:.6f}" for one in of_size) for of_size in times]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "times.txt"
        file.write_text("\n".join(lines) + "\n")
        command = [
            str(Path(python).parent / "extrap"),
            "--text",
            str(file),
            "--print",
            "functions",
            "--disable-progress",
        ]
        model = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip().splitlines()[-1]
    expression = re.sub(r"log2\(n\)\^\(([^)]*)\)", r"log2(n)**(\1)", model).replace("^", "**")

    def value(n: float) -> float:
        return float(eval(expression, {"n": n, "log2": log2}))

    return value(far) / max(value(sizes[-1]), 1e-9)


def ask(python: str, peer: str, program: str, folder: Path) -> Answer:
    group = group_of(program)
    sizes, far = group.sizes[program]
    vary = "n=" + ",".join(map(str, sizes))
    options = ["-e", program, "--select", "*", "--metric", "cpu", "--vary", vary, "--repeat", str(REPEAT)]
    with neighbours(2):
        subprocess.run(
            recorded(*options, "--", python, group.script(), program, "{n}"),
            cwd=folder,
            check=True,
            capture_output=True,
        )
        times = [[plain_cpu(python, program, size) for _ in range(REPEAT)] for size in sizes]
    near = statistics.median(plain_cpu(python, program, sizes[-1]) for _ in range(3))
    true = statistics.median(plain_cpu(python, program, far) for _ in range(1 if near * far / sizes[-1] > 10 else 3))
    command = [
        sys.executable,
        "-m",
        "perflaw",
        "annotate",
        "-e",
        program,
        "--metric",
        "cpu",
        "--at",
        f"n={far}",
        "--json",
    ]
    document = json.loads(subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout)
    whole = document["program"]
    predicted = whole["predicted"]
    costs = [one["predicted"]["mean"] for one in document["annotations"] if one["predicted"]]
    return Answer(
        program,
        predicted["mean"] / whole["composed"] / (true / near),
        predicted["mean"] / 1e9 / true,
        predicted["new_low"] <= true * 1e9 <= predicted["new_high"],
        peer_growth(peer, sizes, times, far) / (true / near),
        whole["measured"] / 1e9 / near,
        sum(cost > 1.001 * predicted["mean"] for cost in costs),
    )


def main(*arguments: str) -> None:
    bars, chosen = Bars(), [one for one in arguments if one not in GROUPS]
    peer = environment("3.11", PEER, "extrap")
    answers = []
    for program in chosen or GROUPS[next((one for one in arguments if one in GROUPS), "")].sizes:
        group = group_of(program)
        python = environment("3.11", group.packages, group.name)
        with tempfile.TemporaryDirectory() as folder:
            one = ask(python, peer, program, Path(folder))
        answers.append(one)
        print(
            f"{program:10} growth {one.growth - 1:+5.0%} (Extra-P {one.peer - 1:+5.0%})  absolute {one.absolute - 1:+5.0%}"
            f"{'' if one.held else '  outside of the interval'}  recorded {one.recorded:.2f}x of plain"
            f"{f'  {one.above} functions above the program' if one.above else ''}",
            flush=True,
        )
    errors = [abs(one.growth - 1) for one in answers]
    peers = [abs(one.peer - 1) for one in answers]

    def part(fine: Sequence[bool]) -> float:
        return sum(fine) / len(answers)

    within = part([error <= GROWTH for error in errors])
    print(
        f"growth within {GROWTH:.0%}: {within:.0%}  {bars.check('growth within 25 %', within, NINE_OF_TEN, least=True)}"
    )
    median, of_peer = statistics.median(errors), statistics.median(peers)
    print(f"growth off at the median: {median:.0%}  {bars.check('growth at the median', median, GROWTH_MEDIAN)}")
    print(f"Extra-P off at the median: {of_peer:.0%}  {bars.check('growth against Extra-P', median, of_peer)}")
    close = part([abs(one.absolute - 1) <= ABSOLUTE for one in answers])
    print(f"absolute within {ABSOLUTE:.0%}: {close:.0%}  {bars.check('absolute', close, NINE_OF_TEN, least=True)}")
    held = part([one.held for one in answers])
    print(f"intervals that hold the truth: {held:.0%}  {bars.check('coverage', held, COVERED, least=True)}")
    above = sum(one.above for one in answers)
    print(f"functions above the program: {above}  {bars.check('functions above the program', above, 0)}")
    bars.leave()


if __name__ == "__main__":
    main(*sys.argv[1:])
