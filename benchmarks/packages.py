"""Recorded programs behave as without us: test suites of real packages, plain and recorded: packages.py [NAME...] [3.11].

Compared are exit status, standard output and standard error, byte for byte but for durations; the closing line on
standard error is perflaw's own. Each suite is recorded twice, by the usual choice of functions and with all of them.
Where it differs the plain suite runs again: once where only its lines differ, and up to ``--plain`` times in all (4) while
a test differs. A test differs if its outcome is that of none of the plain runs; how many there were, and which tests have
several outcomes in them, is told. Then a program prints what it sees of its surroundings (programs/surroundings.py): of
ours there is one extension.
"""

from __future__ import annotations

import argparse
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

PYTEST = ("-m", "pytest", "-v", "-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:randomly")
TOOLS = ("pytest==8.3.3", "setuptools==75.1.0")
BACKENDS = (
    "flit_core",
    "hatchling",
    "hatch-vcs",
    "hatch-fancy-pypi-readme",
    "setuptools>=75",
    "setuptools_scm",
    "wheel",
)
"""Build backends, which ``pip download`` asks for the name of a source distribution."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of a package."""

    tests: tuple[str, ...]
    """Arguments of pytest, or of ``command``."""
    needs: tuple[str, ...] = ()
    """Packages that the tests import."""
    command: tuple[str, ...] = (*PYTEST, "--basetemp")
    """Arguments of Python; the last one is followed by a folder if it is ``--basetemp``."""
    has_sources: bool = True
    """Whether the tests are in the source distribution; if not, the installed package has them."""


SUITES = {
    "pluggy==1.5.0": Suite(("testing",)),
    "click==8.1.7": Suite(("tests",)),  # starts processes
    "janus==1.1.0": Suite(("tests",), ("pytest-asyncio==0.24.0",)),  # threads and asyncio
    "more-itertools==10.5.0": Suite(("tests",)),  # generators
    "attrs==24.2.0": Suite(("tests",), ("hypothesis==6.112.1", "cloudpickle==3.0.0")),  # makes code
    "jinja2==3.1.4": Suite(("tests",), ("trio==0.26.2",)),  # makes code
    "werkzeug==3.0.4": Suite(
        ("tests", "--ignore", "tests/test_serving.py"),
        ("pytest-timeout==2.3.1", "ephemeral-port-reserve==1.1.4", "cryptography==43.0.1", "pytest-xprocess==1.0.2"),
    ),
    "httpx==0.27.2": Suite(
        ("tests",),
        (
            "uvicorn==0.30.6",
            "trustme==1.1.0",
            "trio==0.26.2",
            "chardet==5.2.0",
            "zstandard==0.23.0",
            "cryptography==43.0.1",
        ),
    ),
    "anyio==4.6.0": Suite(
        ("-m", "not network", "tests"),
        (
            "trio==0.26.2",
            "hypothesis==6.112.1",
            "psutil==6.0.0",
            "pytest-mock==3.14.0",
            "trustme==1.1.0",
            "exceptiongroup==1.2.2",
        ),
    ),
    "trio==0.26.2": Suite(
        ("--pyargs", "trio", "-p", "trio._tests.pytest_plugin", "--skip-optional-imports"),
        ("trustme==1.1.0", "pyopenssl==24.2.1"),
        has_sources=False,
    ),
    "sqlalchemy==2.0.35": Suite(("test/base", "test/engine")),
    "pydantic==2.9.2": Suite(
        ("tests/test_main.py", "tests/test_dataclasses.py", "tests/test_generics.py", "tests/test_validators.py"),
        ("dirty-equals==0.8.0", "jsonschema==4.23.0", "pytz==2024.2", "cloudpickle==3.0.0", "pytest-mock==3.14.0"),
    ),
    "cryptography==43.0.1": Suite(
        (
            "tests/test_fernet.py",
            "tests/test_utils.py",
            "tests/test_warnings.py",
            "tests/x509/test_name.py",
            "tests/x509/test_x509_ext.py",
            "tests/x509/test_x509_crlbuilder.py",
            "tests/hazmat/primitives/test_hashes.py",
            "tests/hazmat/primitives/test_ciphers.py",
            "tests/hazmat/primitives/test_hkdf.py",
            "tests/hazmat/primitives/test_padding.py",
            "tests/hazmat/primitives/test_ec.py",
            "tests/hazmat/primitives/test_x25519.py",
        ),
        ("cryptography_vectors==43.0.1", "pretend==1.0.9", "certifi==2024.8.30", "pytest-benchmark==4.0", "py==1.11.0"),
    ),
    "numpy==2.1.1": Suite(
        ("--pyargs", "numpy._core.tests.test_multiarray", "numpy._core.tests.test_numeric"),
        ("hypothesis==6.112.1",),
        has_sources=False,
    ),
    "gevent==24.10.2": Suite(
        tuple(f"gevent.tests.test__{name}" for name in ("queue", "pool", "greenlet", "event", "local", "threadpool")),
        command=("-m", "unittest", "-v"),
        has_sources=False,
    ),
    "django==5.1.1": Suite(
        ("template_tests", "utils_tests", "signals", "dispatch", "urlpatterns", "forms_tests", "basic", "queries"),
        ("jinja2==3.1.4",),
        command=("tests/runtests.py", "--parallel", "1", "-v", "2"),
    ),
}
"""Package → its suite, or a part of it where the whole takes half an hour."""
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
        return status + [
            line for a, b in pairs for line in difflib.unified_diff(a.splitlines(), b.splitlines(), n=0, lineterm="")
        ]


def source(package: str, version: str) -> Path:
    """The unpacked sdist of a package, which has its tests."""
    folder = CACHE / "sources" / package
    if not folder.exists():
        python = environment(version, BACKENDS, "backends")
        with tempfile.TemporaryDirectory() as name:
            options = [
                "-qq",
                "--disable-pip-version-check",
                "--no-deps",
                "--no-build-isolation",
                "--no-binary",
                ":all:",
            ]
            env = {**os.environ, "PYTHONPATH": str(PROGRAMS / "backends")}
            command = [python, "-m", "pip", "download", *options, "--dest", name, package]
            subprocess.run(command, check=True, env=env)
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
    text = re.sub(r"process \[\d+\]", "process [N]", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "T", text)
    text = re.sub(r"\b0x[0-9a-f]{6,16}\b", "0xN", text)
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


def outcomes(seen: Seen) -> dict[str, str]:
    """Test → what came of it, of pytest's and unittest's lines, in which a test's own output may stand between."""
    found = dict(re.findall(r"^(\S+::.*?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b", seen.out, re.MULTILINE))
    return {
        **found,
        **dict(re.findall(r"^(test\w* \(.*?\)).*?\.\.\. (ok|FAIL|ERROR|skipped)\b", seen.err, re.M | re.DOTALL)),
    }


def differing(plain: list[Seen], ours: Seen) -> list[str]:
    """Tests whose outcome, or absence, is that of none of the plain runs."""
    known, found = [outcomes(seen) for seen in plain], outcomes(ours)
    return [test for test in {**known[0], **found} if found.get(test) not in {seen.get(test) for seen in known}]


def unsteady(plain: list[Seen]) -> list[str]:
    """Tests that have several outcomes in plain runs."""
    known = [outcomes(seen) for seen in plain]
    return [test for test in known[0] if len({seen.get(test) for seen in known}) > 1]


def suite(version: str, package: str, plain_runs: int, bars: Bars) -> None:
    tested = SUITES[package]
    python = environment(version, (*TOOLS, package, *tested.needs), f"suite-{package.partition('==')[0]}")
    with tempfile.TemporaryDirectory() as name:
        folder = source(package, version) if tested.has_sources else Path(name)
        base = (f"{name}/base",) if tested.command[-1] == "--basetemp" else ()
        arguments = [*tested.command, *base, *tested.tests]
        plain = [run([python, *arguments], folder)]
        last = (plain[0].out or plain[0].err).strip().splitlines()[-1].strip("= ")
        count = len(outcomes(plain[0]))
        told = bars.check(f"{version} {package} outcomes", count, 1, least=True)
        print(f"Python {version}, {package}: {last}, {count:,} outcomes {told}, status {plain[0].status}", flush=True)
        for what, selection in SELECTIONS.items():
            ours = record(python, arguments, folder, selection)
            if len(plain) == 1 and plain[0].differences(ours):
                plain.append(run([python, *arguments], folder))
            while (tests := differing(plain, ours)) and len(plain) < plain_runs:
                plain.append(run([python, *arguments], folder))
            differences = min((seen.differences(ours) for seen in plain), key=len)
            beside = bars.check(f"{version} {package} {what}, tests that differ", len(tests), 0)
            closing = ours.closing or "NOT RECORDED"
            print(f"  {what}: tests that differ from {len(plain)} plain runs {len(tests)}  {beside}; ", end="")
            print(f"lines {len(differences)}   {closing}")
            for test in tests[:20]:
                print(f"    {test}: {outcomes(plain[0]).get(test)}, then {outcomes(ours).get(test)}")
            if tested.command == Suite(()).command and count < 2000:
                bars.check(f"{version} {package} {what}, lines that differ", len(differences), 0)
            print(*[f"    {line[:200]}" for line in differences[:12]], sep="\n", end="\n" * bool(differences))
        if several := unsteady(plain):
            print(f"  without perflaw, {len(several)} tests have several outcomes: {', '.join(several[:20])}")
        lines = max(len(plain[0].differences(seen)) for seen in plain)
        print(f"  {len(plain)} plain runs differ in up to {lines} lines", flush=True)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="packages and versions of Python; all where none is named")
    parser.add_argument("--plain", type=int, default=4, help="plain runs at most, while a test differs")
    options = parser.parse_args()
    bars, both, words = Bars(), ("3.11", "3.13"), options.words
    packages = [word for word in words if word not in both] or [package.partition("==")[0] for package in SUITES]
    for version in pythons([version for version in both if version in words] or both):
        surroundings(version, environment(version, TOOLS, "packages"), bars)
        for name in packages:
            (package,) = [package for package in SUITES if package.partition("==")[0] == name]
            suite(version, package, options.plain, bars)
    bars.leave()


if __name__ == "__main__":
    main()
