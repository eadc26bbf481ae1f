"""What all tests share: the command line as a person runs it, and the identities that every recording must keep."""

from __future__ import annotations

import os

# Both processors have a worker of their own: threads of BLAS would only wait for each other. Read when NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.pop("COLUMNS", None)  # texts are compared at the usual width

import contextlib
import fcntl
import io
import math
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

from perflaw.api import kept
from perflaw.cli.main import main
from perflaw.store.columns import Tables
from perflaw.store.experiment import Recording, open_experiment
from perflaw.store.tables import read_tables
from tests.forked import run_forked

kept.MIN_LEARNING_S = math.inf  # each test learns its laws itself

PROGRAMS = Path(__file__).parent / "programs"
Run = Callable[..., "subprocess.CompletedProcess[str]"]
Once = Callable[[str, Callable[[Path], object]], Path]

FULL = os.environ.get("PERFLAW_TEST_EXAMPLES") == "full"
"""Whether properties are tried on all their examples (``make test-all``) or on a quarter of them (``make test``)."""


def examples(count: int) -> int:
    """Number of examples that a property is tried on: all of ``count``, or a quarter of them and at least ten."""
    return count if FULL else max(10, count // 4)


def first(count: int, values: Iterable[Any]) -> list[Any]:
    """Values of a parameter of which ``make test`` tries the first ``count``, and ``make test-all`` all.

    A tuple holds the values of several parameters; one that is the value of a single parameter comes as a ``pytest.param``.
    """
    listed = list(values)
    return listed[:count] + [_slow(value) for value in listed[count:]]


def _slow(value: Any) -> Any:
    """A value of a parameter, or several with marks of their own, for ``make test-all`` alone."""
    if isinstance(value, ParameterSet):
        return pytest.param(*value.values, marks=[*value.marks, pytest.mark.slow], id=value.id)
    if isinstance(value, tuple) and len(value) < 2:
        raise ValueError(f"{value}: a tuple that is the value of one parameter; try: pytest.param({value})")
    return pytest.param(*(value if isinstance(value, tuple) else [value]), marks=pytest.mark.slow)


settings.register_profile("full", max_examples=100, deadline=None)
settings.register_profile("default", max_examples=25, deadline=None, derandomize=True)
settings.load_profile("full" if FULL else "default")  # no deadlines: the machine may be busy


SLOWEST = (
    "tests/test_docs.py",
    "tests/cli/test_explore.py",
    "tests/cli/test_record.py",
    "tests/record/test_hooks.py",
    "tests/record/test_lifecycle_children.py",
    "tests/record/test_gcov.py",
)
"""Files that take longest. They start first, so that no worker is left with a long one at the end."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Give each worker whole files, as ``--dist loadfile`` does; but the pages of the documentation one by one."""
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid if "test_docs.py::test_commands" in nodeid else super()._split_scope(nodeid)

    config.option.loadscopereorder = False  # keeps the order below
    return ByFile(config, log)


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slowest files first, and share parameters between the Pythons that report events alike."""
    places = {name: place for place, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: places.get(item.nodeid.split("::")[0], len(places)))
    if not FULL and sys.version_info >= (3, 12):
        seen: Counter[str] = Counter()
        for item in items:
            test, _, parameters = item.nodeid.partition("[")
            seen[test] += 1
            if parameters and (seen[test] + sys.version_info[1]) % 2:
                item.add_marker(pytest.mark.slow)


OWN_PROCESS = {"record", "attach", "explore", "agent", "collector", "probes", "laws"}
"""Verbs that run in a process of their own: they start or import programs, or serve others and wait for signals."""


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # shells start what is in the background deaf to it
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which children would be, too


@contextmanager
def started_perflaw(folder: Path, *arguments: object, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A ``perflaw`` that is running, in a session of its own; a test that fails leaves nothing of it over."""
    command = [sys.executable, "-m", "perflaw", *map(str, arguments)]
    pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, cwd=folder, text=True, start_new_session=True, **pipes, **options) as process:
        try:
            yield process
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def cpu_s(pid: int) -> float:
    """CPU time that a process has had."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def attached_perflaw(folder: Path, pid: int, *options: object, s: float = 0.3) -> Iterator[subprocess.Popen[str]]:
    """A ``perflaw attach`` whose recording has begun, and meanwhile the process has had the CPU for ``s`` seconds.

    On a busy machine no time by the clock is long enough for a program to do something.
    """
    spools = ".perflaw/*/runs/*/spool/**/definitions"
    before, deadline = set(folder.glob(spools)), time.monotonic() + 180  # of recorders that were killed
    with started_perflaw(folder, "attach", pid, "--seconds", "100", *options) as recorder:
        of_other_user = (
            f"perflaw-{recorder.pid}-*/{pid}-*/definitions"  # where the spool of another user's process lies
        )

        def begins() -> bool:
            try:
                files = {*folder.glob(spools), *Path("/tmp").glob(of_other_user)} - before
                return any("'start'" in file.read_text() for file in files)
            except FileNotFoundError:  # a folder of another recorder went while it was read
                return False

        while not begins():
            assert recorder.poll() is None, recorder.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.02)
        begun = cpu_s(pid)
        while cpu_s(pid) < begun + s:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield recorder


def attach_for_a_while(folder: Path, pid: int, *options: object, s: float = 0.3) -> str:
    """Attach until the process has had the CPU for ``s`` seconds; what ``perflaw attach`` says."""
    with attached_perflaw(folder, pid, *options, s=s) as recorder:
        recorder.send_signal(signal.SIGINT)
        said = recorder.communicate(timeout=60)[1]
    assert recorder.returncode == 0, said
    return said


def run_perflaw(
    folder: Path | str, *arguments: object, status: int = 0, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run ``perflaw`` in a folder; fails the test on another exit status than expected.

    Verbs that only read and write files run in this process, which saves starting Python and importing everything
    again. Verbs of ``OWN_PROCESS`` run in a process of their own, a fork of one that has imported perflaw. So do calls
    with options of :func:`subprocess.run`, but these start it anew.
    """
    words = [str(argument) for argument in arguments]
    own_process = OWN_PROCESS & set(words)
    if own_process and not options.keys() - {"timeout"}:
        done = run_forked(Path(folder), words, **{"timeout": 280, **options})
    elif own_process or options.keys() - {"input"}:
        command = [sys.executable, "-m", "perflaw", *words]
        options = {"cwd": folder, "timeout": 280, **options}
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        done = subprocess.run(command, capture_output=True, text=True, **options)
    else:
        done = _run_here(Path(folder), words, options.get("input", ""))
    assert done.returncode == status, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    if words[0] != "record":  # a recorded program may show tracebacks of its own
        assert "Traceback" not in done.stderr, done.stderr
    return done


def _run_here(folder: Path, words: list[str], text: str) -> subprocess.CompletedProcess[str]:
    """Run ``perflaw`` in this process: streams and exit status are those of a process without a terminal."""
    with ExitStack() as stack:
        stack.enter_context(contextlib.chdir(folder))
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        streams = {"stdin": io.TextIOWrapper(io.BytesIO(text.encode())), "stdout": out, "stderr": err}
        for name, stream in streams.items():
            stack.enter_context(mock.patch.object(sys, name, stream))
        with pytest.raises(SystemExit) as end:
            main(words)
    assert isinstance(end.value.code, int)
    said = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return subprocess.CompletedProcess(["perflaw", *words], end.value.code, *said)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Folders that are dear to make and only read: made by the first test of the run that asks, in whichever process."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def made(name: str, make: Callable[[Path], object]) -> Path:
        folder, done = shared / f"once-{name}", shared / f"once-{name}.done"
        with (shared / f"once-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)  # of a worker that failed
                folder.mkdir()
                make(folder)
                done.touch()
        return folder

    return made


@pytest.fixture
def perflaw(tmp_path: Path) -> Run:
    """Run ``perflaw`` in the test's folder, see :func:`run_perflaw`.

    Every recording that comes of it is checked for the identities of its moments.
    """
    checked: set[Path] = set()

    def run(*arguments: object, cwd: Path | str = tmp_path, **options: Any) -> subprocess.CompletedProcess[str]:
        done = run_perflaw(Path(cwd), *arguments, **options)
        if arguments[0] == "record":
            for folder in sorted(Path(cwd).glob(".perflaw/*/runs/*/run.json")):
                if folder not in checked:
                    assert_identities(read_tables(folder.parent))
                    checked.add(folder)
        return done

    return run


@pytest.fixture
def recorded(perflaw: Run, tmp_path: Path) -> Callable[..., list[Recording]]:
    """Record a program and give all recordings of the experiment."""

    def record(*arguments: object, experiment: str = "default", status: int = 0) -> list[Recording]:
        perflaw("record", "-e", experiment, *arguments, status=status)
        return open_experiment(experiment, tmp_path).recordings()

    return record


def costs_of(recording: Recording, metric: str = "time") -> dict[str, tuple[int, int, int, int]]:
    """Component → calls, open, total and self; without collections of garbage, which come when they come."""
    tables = recording.tables()
    costs = {row[0]: row[2:] for row in tables["component_costs"] if row[1] == metric}
    functions = [row for row in tables["components"] if row[1] != "(garbage collection)"]
    return {row[1]: (*row[7:9], *costs[row[0]]) for row in functions if row[0] in costs}


def assert_identities(tables: Tables) -> None:
    """ΣΣP == ΣX² on every node and metric, weights add up to calls, parents stand before children."""
    squares: dict[tuple[int, str], int] = {}
    for node, metric, i, j, total in tables["pairs"]:
        squares[node, metric] = squares.get((node, metric), 0) + (total if i == j else 2 * total)
    waiting = {row[0] for row in tables["components"] if row[1] in ("(waiting)", "(garbage collection)")}
    for node, metric, n, sum_x, sum_xx, low, high, _ in tables["moments"]:
        if n:
            assert squares[node, metric] == sum_xx
            assert n * sum_xx - sum_x**2 >= 0
            assert n * low <= sum_x <= n * high
    assert_links(tables)
    assert_costs(tables, waiting)
    assert all(row[1] < row[0] for row in tables["calltree"])
    weights: dict[int, float] = {}
    for row in tables["invocations"]:
        weights[row[2]] = weights.get(row[2], 0.0) + row[-1]
    calls = {row[0]: row[7] for row in tables["components"] if row[0] not in waiting}
    component_of = {row[0]: row[2] for row in tables["calltree"]}
    for node, count in tables["counted"]:  # they have no sample
        calls[component_of[node]] -= count
    for number, count in calls.items():
        assert weights.get(number, 0.0) == pytest.approx(count)


def assert_links(tables: Tables) -> None:
    """What a link says of calls is the same in every metric of the same runs; sums of products obey Cauchy and Schwarz."""
    counts: dict[tuple[int, int, int], tuple[int, ...]] = {}
    squares = {(row[0], row[1]): (row[2], row[4]) for row in tables["moments"]}
    for above, below, metric, n, n_once, sum_k, sum_kk, sum_ky, _, sum_yy, sum_yx in tables["links"]:
        calls, sum_xx = squares[above, metric]
        assert counts.setdefault((above, below, calls), (n, n_once, sum_k, sum_kk)) == (n, n_once, sum_k, sum_kk)
        assert n_once <= n <= calls
        assert sum_ky**2 <= sum_kk * sum_yy
        assert sum_yx**2 <= sum_yy * sum_xx


def assert_costs(tables: Tables, waiting: set[int]) -> None:
    """Every function has its costs in every metric; apart from its callees an invocation has one event: itself."""
    metrics = {row[1] for row in tables["moments"]}
    numbers = {row[0] for row in tables["components"]} - waiting
    timed = {row[0] for row in tables["components"] if row[4] == "probe"}  # probes know time and nothing else
    assert {row[:2] for row in tables["component_costs"] if row[0] not in waiting} >= {
        (number, metric)
        for number in numbers
        for metric in (metrics & {"time", "events"} if number in timed else metrics)
    }
    calls = {row[0]: row[7] for row in tables["components"]}
    selves = {row[0]: row[3] for row in tables["component_costs"] if row[1] == "events"}
    if not any(row[8] for row in tables["components"]):  # what has not ended counted its calls and has no self
        assert all(selves[number] == calls[number] for number in numbers)
