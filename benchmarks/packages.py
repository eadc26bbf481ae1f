"""Recorded programs behave as they do without us: the test suites of real packages, plain and recorded: packages.py [NAME...].

Compared are exit status, standard output and standard error, byte for byte but for durations; the closing line on
standard error is perflaw's own. Each suite is recorded twice, by the usual choice of functions and with all of them.
Where it differs the plain suite runs once more: what differs between two plain runs is told, and no fault of ours.
Then a program prints what it sees of its surroundings (programs/surroundings.py): of ours there is one extension.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from shared import CACHE, PROGRAMS, Bars, environment, pythons, recorded

SUITES = {
    "pluggy==1.5.0": "testing",
    "click==8.1.7": "tests",  # starts processes
    "janus==1.1.0": "tests",  # threads and asyncio
    "more-itertools==10.5.0": "tests",  # generators
}
TOOLS = ("pytest==8.3.3", "pytest-asyncio==0.24.0", "setuptools==75.1.0")
OPTIONS = ("-m", "pytest", "-v", "-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:randomly", "--basetemp")
OURS = "_perflaw_native"
SELECTIONS: dict[str, tuple[str, ...]] = {"usual functions": (), "all functions": ("--select", "*")}


@dataclass(frozen=True, slots=True)
class Seen:
    """What a run shows."""

    status: int
    out: str
    err: str
    closing: str = ""
    """perflaw's own line."""

    def differences(self, other: Seen) -> list[str]:
        """Lines, empty where nothing differs."""
        status = [f"exit status {self.status}, then {other.status}"] if self.status != other.status else []
        pairs = ((self.out, other.out), (self.err, other.err))
        return status + [line for a, b in pairs for line in difflib.unified_diff(a.splitlines(), b.splitlines(), n=0)]


def source(package: str, python: str) -> Path:
    """The unpacked sdist of a package, which has its tests."""
    folder = CACHE / "sources" / package
    if not folder.exists():
        with tempfile.TemporaryDirectory() as name:
            options = ["-qq", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:", "--dest", name]
            subprocess.run([python, "-m", "pip", "download", *options, package], check=True)
            (archive,) = Path(name).iterdir()
            with tarfile.open(archive) as opened:
                opened.extractall(name, filter="data")
            (unpacked,) = [path for path in Path(name).iterdir() if path.is_dir()]
            shutil.move(unpacked, folder)
    return folder


def run(command: list[str], folder: Path) -> Seen:
    names = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "100"}
    env = {**os.environ, **names}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    closing = [line for line in done.stderr.splitlines() if line.startswith("recorded ")]
    return Seen(done.returncode, _normal(done.stdout), _normal(done.stderr), " ".join(closing))


def _normal(text: str) -> str:
    text = re.sub(r"\b\d+\.\d+s( \([\d:]+\))?", "N s", text)
    text = re.sub(r"started \d+\)", "started N)", text)  # where a thread's stack is, another place each time
    text = re.sub(r"=+( .* in N s )=+", r"=\1=", text)  # as wide as the line is with the duration
    return "".join(line for line in text.splitlines(True) if not line.startswith(("recorded ", "perflaw: ")))


def record(python: str, arguments: list[str], folder: Path, selection: tuple[str, ...] = ()) -> Seen:
    """What a recorded command shows; the recording goes elsewhere than where the program runs."""
    link = folder / ".perflaw"
    link.unlink(missing_ok=True)  # of a run that was killed
    with tempfile.TemporaryDirectory() as elsewhere:
        link.symlink_to(elsewhere, target_is_directory=True)
        try:
            return run(recorded("--tracer", "native", *selection, "--", python, *arguments), folder)
        finally:
            link.unlink()


def suite(version: str, python: str, package: str, bars: Bars) -> None:
    folder = source(package, python)
    with tempfile.TemporaryDirectory() as name:
        arguments = [*OPTIONS, f"{name}/base", SUITES[package]]
        plain = run([python, *arguments], folder)
        last = (plain.out or plain.err).strip().splitlines()[-1]
        print(f"Python {version}, {package}: {last.strip('= ')}, status {plain.status}")
        for what, selection in SELECTIONS.items():
            ours = record(python, arguments, folder, selection)
            again = run([python, *arguments], folder) if plain.differences(ours) else plain
            differences = [] if not again.differences(ours) else plain.differences(ours)
            beside = bars.check(f"{version} {package} {what}, lines that differ", len(differences), 0)
            print(f"  {what}: differ {len(differences)}  {beside}   {ours.closing or 'NOT RECORDED'}")
            print(*[f"    {line}" for line in differences[:40]], sep="\n", end="\n" * bool(differences))
            if plain.differences(again):
                print(f"    two plain runs differ in {len(plain.differences(again))} lines as well")


def surroundings(version: str, python: str, bars: Bars) -> None:
    """Modules of the standard library that the extension needs are there earlier; they are told, and no fault."""
    with tempfile.TemporaryDirectory() as name:
        program = [str(PROGRAMS / "surroundings.py")]
        plain, ours = run([python, *program], Path(name)), record(python, program, Path(name))
    lines = ours.out.replace("'.perflaw'", "").splitlines(True)  # the folder that this script made
    cleaned = Seen(ours.status, "".join(lines), ours.err)
    changed = [line for line in plain.differences(cleaned) if line[:3] not in ("---", "+++") and line[:2] != "@@"]
    early = [line[1:] for line in changed if line[0] == "+" and line[1:] in sys.stdlib_module_names]
    other = [line for line in changed if line[1:] not in (*early, OURS)]
    beside = bars.check(f"{version} surroundings, lines that differ", len(other) + (f"+{OURS}" not in changed), 0)
    more = ", ".join(early) or "none"
    print(f"Python {version}, surroundings: {OURS}, of the standard library {more}; differ {len(other)}  {beside}")
    print(*[f"    {line[:300]}" for line in other], sep="\n", end="\n" * bool(other))


def main(*packages: str) -> None:
    bars = Bars()
    for version in pythons(("3.11", "3.13")):
        python = environment(version, (*TOOLS, *SUITES), "packages")
        surroundings(version, python, bars)
        for package in packages or SUITES:
            suite(version, python, package, bars)
    bars.leave()


if __name__ == "__main__":
    main(*sys.argv[1:])
