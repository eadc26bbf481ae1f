"""Traces of the real LTTng: functions of a compiled program, tracepoints in pairs, and what cannot be read."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from perflaw.errors import DataError
from perflaw.imports import lttng, tracks
from perflaw.imports.lttng import OTHER_EVENTS, pairs_of
from perflaw.imports.registry import read_trace
from perflaw.imports.runs import core_file, import_trace
from perflaw.store.experiment import open_experiment
from tests.conftest import assert_identities
from tests.imports.test_traces import moments_of, tables_of

LIBRARY = core_file(lambda text: None)
SOURCES = Path(__file__).parent / "lttng"
TRACED = {"LD_PRELOAD": "liblttng-ust-cyg-profile.so.1:liblttng-ust-dl.so.1"}
BUILD = ("-Wl,--build-id", "-I.", "shop.c", "-o", "shop", "-pthread", "-llttng-ust", "-ldl")
LATE = "int __attribute__((noinline)) later(int n) { return n + 1; }\nint late(int n) { return later(n); }\n"


class Session:
    """A daemon of LTTng of its own, in a folder. It is not root's, because of root's there is one on a machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.user = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
        if self.user:
            os.chown(folder, 65534, 65534)
        self.environment = {
            **os.environ,
            "LTTNG_HOME": str(folder),
            "HOME": str(folder),
            "LTTNG_UST_REGISTER_TIMEOUT": "5000",
        }
        self.daemon = subprocess.Popen(
            ["lttng-sessiond", "--no-kernel"], env=self.environment, stderr=subprocess.DEVNULL, **self.user
        )

    def __enter__(self) -> Session:
        until = time.monotonic() + 10
        while subprocess.run(["lttng", "list"], env=self.environment, capture_output=True, **self.user).returncode:
            assert time.monotonic() < until
            time.sleep(0.02)
        return self

    def __exit__(self, *_: object) -> None:
        self.daemon.terminate()
        self.daemon.wait(10)

    def run(self, *words: object, **variables: str) -> None:
        done = subprocess.run(
            list(map(str, words)), env={**self.environment, **variables}, cwd=self.folder, capture_output=True, text=True,
            timeout=60, **self.user,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr

    def record(self, name: str, channel: tuple[str, ...], contexts: str, *command: object) -> Path:
        """The trace of a command: a folder."""
        trace = self.folder / name
        self.run("lttng", "create", name, f"--output={trace}")
        self.run("lttng", "enable-channel", "-u", "c", *channel)
        self.run("lttng", "enable-event", "-u", "-a", "-c", "c")
        if contexts:
            self.run("lttng", "add-context", "-u", *contexts.split())
        self.run("lttng", "start")
        self.run(*command, **TRACED)
        self.run("lttng", "destroy")
        return trace


@pytest.fixture(scope="module")
def session():
    with tempfile.TemporaryDirectory() as folder, Session(Path(folder)) as one:
        for source in SOURCES.iterdir():
            shutil.copy(source, folder)
        hooks = ["-g", "-O1", "-finstrument-functions", "-Wl,--build-id"]
        one.run("gcc", *hooks, *BUILD)
        (one.folder / "late.c").write_text(LATE)
        one.run("gcc", *hooks, "-shared", "-fPIC", "late.c", "-o", "late.so")
        yield one


@pytest.fixture(scope="module")
def trace(session):
    return session.record("all", (), "-t vpid -t vtid -t procname", "./shop", 5, "./late.so")


EXPECTED = {
    ("main",): 1, ("run",): 1, ("main", "run"): 1,
    **{
        (*path, *more): times
        for path in [("run",), ("main", "run")]
        for more, times in [(("work",), 5), (("work", "shop:pay"), 5), (("work", "shop:pay", "leaf"), 10)]
    },
    ("main", "down"): 1, ("main", "down", "down"): 1, ("main", "down", "down", "down"): 1,
    ("main", "late"): 1, ("main", "late", "later"): 1,
}  # fmt: skip


def test_functions_and_pairs_of_tracepoints_are_calls(trace, monkeypatch):
    monkeypatch.setattr(tracks, "MAX_NEWEST", 7)  # so that most records lie in the temporary file
    read = read_trace(trace, LIBRARY)
    (process,) = read.processes
    assert (read.tool, read.epoch, process.name) == ("LTTng", True, "shop")
    (tables,) = tables_of(read)
    moments = moments_of(tables)
    assert {path: found[0] for path, found in moments.items()} == EXPECTED
    for path in [("run", "work"), ("main", "run", "work")]:
        least = sum(3 * 1000 * n for n in range(1, 6))  # what usleep waits at least, ns
        assert moments[path][1] >= moments[(*path, "shop:pay")][1] >= moments[(*path, "shop:pay", "leaf")][1] >= least
    assert set(process.definitions.features.values()) == {"items", "euro"}
    assert process.notes[OTHER_EVENTS] >= 1  # shop:started
    functions = {one.name: one for one in process.definitions.components.values()}
    assert Path(functions["work"].file).name == "shop.c" and functions["work"].line == 13
    assert Path(functions["later"].file).name == "late.c"


def test_a_trace_becomes_a_run_with_features(trace, tmp_path):
    experiment = open_experiment("imported", tmp_path)
    import_trace(experiment, trace, {}, lambda text: None)
    (recording,) = experiment.recordings()
    assert_identities(recording.tables())
    assert (recording.run.target, recording.run.complete) == ("shop", True)


def test_buffers_of_each_process_name_it_by_themselves(session):
    read = read_trace(session.record("pids", ("--buffers-pid",), "-t vtid", "./shop", 2), LIBRARY)
    (process,) = read.processes
    assert process.pid > 1
    (tables,) = tables_of(read)
    assert sum(found[0] for found in moments_of(tables).values()) == 1 + 2 + 2 * 2 * 4 + 3


def test_functions_of_another_build_are_told_by_their_place(session):
    trace = session.record("other", (), "-t vpid -t vtid", "./shop", 1)
    session.run("gcc", "-g", "-O0", "-finstrument-functions", *BUILD)
    (process,) = read_trace(trace, LIBRARY).processes
    names = Counter(one.name.partition("+0x")[0] for one in process.definitions.components.values())
    assert names == {"shop": 5, "shop:pay": 1}


def test_events_without_a_thread_are_refused_with_what_to_record(session):
    with pytest.raises(DataError, match="of which thread"):
        read_trace(session.record("none", (), "", "./shop", 1), LIBRARY)


def test_a_damaged_trace_is_refused_in_the_words_of_babeltrace(session, tmp_path):
    folder = tmp_path / "cut"
    folder.mkdir()
    (folder / "metadata").write_text("/* CTF 1.8 */\ntrace {")
    with pytest.raises(DataError, match="babeltrace2 cannot read the trace"):
        read_trace(folder)


def test_without_babeltrace_it_says_what_to_install(perflaw, tmp_path):
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace" / "metadata").write_bytes(b"\x57\x1d\xd1\x75" + bytes(60))
    said = perflaw("import", "trace", status=2, env={**os.environ, "PATH": str(tmp_path)}).stderr
    assert "apt-get install babeltrace2" in said


def test_pairs_are_those_of_which_both_are_declared():
    begins, ends = pairs_of(["a:x_entry", "a:x_exit", "a:y_start", "b:start", "b:stop", "q_begin", "q_end", "a:z_end"])
    assert begins == {"a:x_entry": "a:x", "b:start": "b", "q_begin": "q"}
    assert ends == {"a:x_exit": "a:x", "b:stop": "b", "q_end": "q"}


@pytest.mark.parametrize(
    "line",
    ["", "[1.5] x", "[1.000000001] f:g: ", "[1.000000001] lttng_ust_cyg_profile:func_exit: { }, { vtid = 1 }, { }"],
)
def test_strange_lines_are_passed_over(line):
    reader = lttng._Reader({}, {})
    reader.take(line)
    assert not [track for process in reader.processes.values() for track in process.tracks]
