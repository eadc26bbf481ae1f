"""``perflaw record -- php script.php``: switches Xdebug's function trace on for one run, and reads it afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

import numpy as np

from perflaw.errors import TargetError
from perflaw.record.build import BuildError, build, core
from perflaw.record.compiled.selection import Globs
from perflaw.record.launch import Launch
from perflaw.record.php.trace import CUT, TICK_NS, FunctionsOf, PhpFunction, TracingCosts, XdebugTrace
from perflaw.record.reader import Reader, RecordedProcess, empty_tree
from perflaw.record.tree.records import Definitions, ProcessIdentity

PACKAGES: Final = "sudo apt install php-cli php-xdebug"
SETTINGS: Final = {
    "xdebug.mode": "trace",
    "xdebug.start_with_request": "yes",
    "xdebug.trace_format": "1",
    "xdebug.trace_options": "0",
    "xdebug.trace_output_name": "trace.%p",
    "xdebug.use_compression": "0",
    "xdebug.collect_return": "0",
    "xdebug.collect_assignments": "0",
    "xdebug.var_display_max_data": "16384",
    "xdebug.var_display_max_children": "1024",
    "xdebug.var_display_max_depth": "1",
}
"""Settings of Xdebug for a run. Longer strings and arrays are cut: each is written at every call that it is given to."""
_VALUE_OPTIONS: Final = ("c", "d", "f", "r", "z", "B", "R", "F", "E", "S", "t")
_PROGRAM_OPTIONS: Final = ("f", "r")
_TIMES: Final = (
    "Xdebug slows all code several times, not only calls: compare times with each other and over sizes,"
    " not with a plain run"
)
_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class PhpTracer:
    """Xdebug writes the calls of a run to a file; the recorder makes a call tree of it when the run has ended."""

    php: str
    """The interpreter."""
    library: Path | None
    """The recorder's library."""
    costs: TracingCosts
    """What Xdebug adds to the times."""
    chosen: Globs
    """The functions to record."""
    reason: str
    name: str = "xdebug"

    def environment(self, launch: Launch, settings: dict[str, str]) -> dict[str, str]:
        """The person's environment with one more folder of settings; PHP programs that the program starts have it too."""
        folder = Path(settings["SPOOL"]) / "php"
        folder.mkdir(parents=True)
        return _with_settings(folder)

    def reader(self, spool: Path, seed: int) -> Reader:
        """A reader of the traces, which are whole when the program has ended."""
        return _TracesReader(self, spool / "php", seed)

    def tick_ns(self) -> float:
        """The step of Xdebug's time stamps."""
        return float(TICK_NS)


@dataclass(slots=True)
class _TracesReader:
    """Reads nothing while the program runs, and the traces of its processes afterwards."""

    tracer: PhpTracer
    folder: Path
    seed: int
    idle_s: float = 0.05
    paths: bool = False

    def step(self) -> int:
        """Nothing arrives while the program runs."""
        return 0

    def finish(self, pid: int) -> Iterator[RecordedProcess]:
        """The program, then the PHP programs that it started."""
        # The spool goes when the program's own run is saved, and the others are read after that.
        paths = {int(path.stem.rpartition(".")[2]): path for path in self.folder.glob("trace.*.xt")}
        traces = {number: XdebugTrace(path, file=path.open("rb")) for number, path in paths.items()}
        own = traces.pop(pid, None)
        if own is None:
            failed = "Xdebug wrote no trace: PHP did not start, was called with -n, or its settings were replaced"
            yield RecordedProcess(Definitions(failed=failed), empty_tree())
            return
        for number, trace in [(pid, own), *sorted(traces.items())]:
            process = ProcessIdentity(number, 0 if number == pid else pid, (self.tracer.php,))
            recorded, cut = trace.recorded(
                self.tracer.library,
                self.seed + number,
                process,
                functions_of(self.tracer.php),
                self.tracer.costs,
                self.tracer.chosen,
            )
            recorded.definitions.words["times"] = _TIMES
            if cut:
                recorded.definitions.words["features"] = f"{cut:,} {CUT}"
            yield recorded if number == pid else RecordedProcess(recorded.definitions, recorded.tree, 0)


def php_launch(command: tuple[str, ...]) -> Launch:
    """The launch of PHP's interpreter: what follows the script, or the code of ``-r``, are the program's own arguments.

    >>> launch = php_launch(("php", "-d", "precision=5", "app.php", "10"))
    >>> launch.name, launch.arguments
    ('app.php', ('10',))
    """
    name, place = Path(command[0]).name, 1
    while place < len(command):
        word = command[place]
        if word == "--":
            return Launch(command, command[place + 1 :], name)
        if not word.startswith("-"):
            break
        attached = bool(word[2:])
        place += 1 if attached or word[1:2] not in _VALUE_OPTIONS else 2
        if word[1:2] in _PROGRAM_OPTIONS:
            name = Path(word[2:] or "".join(command[place - 1 : place])).name if word[1] == "f" else f"{name} -r"
            return Launch(command, command[place:], name)
    script = "".join(command[place : place + 1])
    return Launch(command, command[place + 1 :], Path(script).name or name)


def php_tracer(path: Path, chosen: Globs) -> PhpTracer:
    """The tracer of an interpreter of PHP; TargetError where Xdebug is missing or too old."""
    php = str(path)
    version = xdebug_version(php)
    if not version:
        raise TargetError(f"{path}: PHP without Xdebug", "Xdebug writes the calls that perflaw reads", PACKAGES)
    if int(version.partition(".")[0]) < 3:
        raise TargetError(f"{path}: Xdebug {version} is too old", "perflaw sets Xdebug 3 up", PACKAGES)
    try:
        library = build(core())
    except BuildError:
        library = None
    return PhpTracer(php, library, tracing_costs(php), chosen, f"function traces of Xdebug {version}")


def functions_of(php: str) -> FunctionsOf:
    """Finds functions by the interpreter itself: its tokenizer reads source files, which does not execute them."""

    def read(paths: Sequence[str], names: Sequence[str]) -> Mapping[str, PhpFunction]:
        given = json.dumps({"files": paths, "names": names})
        found = json.loads(_run(php, "definitions.php", {**os.environ, "XDEBUG_MODE": "off"}, given) or "[]")
        return {one["name"]: PhpFunction(one["file"], one["line"], tuple(one["parameters"])) for one in found}

    return read


@cache
def tracing_costs(php: str) -> TracingCosts:
    """What Xdebug adds to the times in a trace, measured with calls that cost nothing themselves."""
    with tempfile.TemporaryDirectory(prefix="perflaw-") as text:
        folder = Path(text)
        plain_ns = float(_run(php, "calibration.php", {**os.environ, "XDEBUG_MODE": "off"}) or 0)
        _run(php, "calibration.php", _with_settings(folder))
        spans: dict[bytes, list[tuple[float, float, int]]] = {}
        begun = ended = 0.0
        entry: list[bytes] = []
        for path in folder.glob("trace.*.xt"):
            for line in XdebugTrace(path).lines():
                fields = line.rstrip(b"\n").split(b"\t")
                if len(fields) < 5:
                    continue
                if fields[2] == b"0":
                    entry, begun = fields, float(fields[3]) * 1e9
                elif fields[2] == b"1" and entry and fields[1] == entry[1]:
                    now = float(fields[3]) * 1e9
                    row = (now - begun, begun - ended, sum(map(len, entry[11:])))
                    spans.setdefault(entry[5], []).append(row)
                    ended = now
    if not {b"nothing", b"takes_string", b"takes_array"} <= spans.keys():
        return TracingCosts()
    inside, outside, _ = _usual(spans[b"nothing"])
    text_ns, _, text_bytes = _usual(spans[b"takes_string"])
    array_ns, _, array_bytes = _usual(spans[b"takes_array"])
    return TracingCosts(
        inside,
        max(outside - plain_ns, 0.0),
        max(text_ns - inside, 0.0) / text_bytes,
        max(array_ns - inside, 0.0) / array_bytes,
    )


def _usual(rows: list[tuple[float, float, int]]) -> tuple[float, float, float]:
    """The means of the columns without their largest tenth, which the machine's other work disturbed."""
    columns = np.sort(np.array(rows, dtype=np.float64), axis=0)
    inside, outside, size = columns[: max(1, len(rows) * 9 // 10)].mean(axis=0).tolist()
    return inside, outside, size


def xdebug_version(php: str) -> str:
    """Version of an interpreter's Xdebug; empty where it has none. TargetError where it does not start."""
    try:
        done = subprocess.run(
            [php, "-r", "echo phpversion('xdebug');"],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            env={**os.environ, "XDEBUG_MODE": "off"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TargetError(f"{php}: cannot be started", str(error), f"{php} --version") from error
    return done.stdout.strip()


def _run(php: str, script: str, env: Mapping[str, str], given: str = "") -> str:
    """What a script of this package prints; empty where it fails."""
    with as_file(files(__package__) / script) as path:
        done = subprocess.run(
            [php, str(path)], input=given, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, env=env
        )
    return "" if done.returncode else done.stdout


def _with_settings(folder: Path) -> dict[str, str]:
    """The environment in which PHP writes its traces to a folder."""
    settings = {**SETTINGS, "xdebug.output_dir": str(folder)}
    (folder / "perflaw.ini").write_text("".join(f'{name}="{value}"\n' for name, value in settings.items()))
    scanned = os.environ.get("PHP_INI_SCAN_DIR", "")  # empty: the folder that PHP was built with
    env = {name: value for name, value in os.environ.items() if name not in ("XDEBUG_MODE", "XDEBUG_CONFIG")}
    return {**env, "PHP_INI_SCAN_DIR": f"{scanned}:{folder}"}
