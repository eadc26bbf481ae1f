"""Calls of the system fail in the recorder, one after the other, and it is killed there: faults.py [KIND...] [--points 40].

A recording is made with a library preloaded (programs/faults.c) that makes the n-th write, rename, fsync, mmap, fork,
large allocation, opening for writing, mkdir or close of the recorder fail, for n = 1, 2, …; and again with a SIGKILL
there. Calls of the process that writes the tables count as well. After each: the program printed and returned what it does
without perflaw, or it was not started and that was told; a recording made before is as it was; the new recording has every
call, or a message says what is not there; and ``perflaw runs --verify`` finds no damage that was not told. Where a kind has
more calls than ``--points``, as many are chosen evenly.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from shared import CACHE, PROGRAMS, Bars

KINDS = ("write", "rename", "fsync", "mmap", "fork", "malloc", "open", "mkdir", "close")
CALLS = 1000
PROGRAM = f"""
def work(n): return n
for n in range({CALLS}): work(n)
print("all of it")
open("ended", "w").close()
"""
LIMIT_S = 45


@dataclass(slots=True)
class Trial:
    """What a recording with one fault came to."""

    status: int
    """Exit status of the recorder; negative: the signal that killed it."""
    out: str
    err: str
    happened: bool
    """Whether the fault did."""
    started: bool
    """Whether the program ran to its end."""
    faults: list[str] = field(default_factory=list)
    """What is wrong afterwards; empty if nothing is."""


def library() -> Path:
    """The compiled shim."""
    CACHE.mkdir(parents=True, exist_ok=True)
    built = CACHE / "faults.so"
    source = PROGRAMS / "faults.c"
    flags = ["-O1", "-shared", "-fPIC", "-D_GNU_SOURCE", str(source), "-o", str(built), "-ldl"]
    subprocess.run(["cc", *flags], check=True)
    return built


def plan(kind: str, nth: int, kill: bool, done: Path) -> ctypes.CDLL:
    shim = ctypes.CDLL(None)
    shim.fault_plan(kind.encode(), ctypes.c_long(nth), int(kill), str(done).encode())
    shim.fault_calls.restype = ctypes.c_long
    return shim


def in_child(folder: Path, arguments: list[str], kind: str = "", nth: int = 0, kill: bool = False) -> Trial:
    """Run perflaw in a forked process in ``folder``; all is imported already, so a trial takes a third of a second."""
    done, told = folder / "fault", {name: folder / f"{name}.txt" for name in ("out", "err", "counts")}
    child = os.fork()
    if not child:
        os.chdir(folder)
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(told[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        os._exit(_perflaw(arguments, kind, nth, kill, done, told["counts"]))
    status = _wait(child)
    deadline = time.monotonic() + LIMIT_S
    while kill and _children_of(folder) and time.monotonic() < deadline:
        time.sleep(0.01)  # a killed recorder's program goes on to its end
    texts = {name: path.read_text(errors="replace") if path.exists() else "" for name, path in told.items()}
    return Trial(status, texts["out"], texts["err"], done.exists(), (folder / "ended").exists())


def _perflaw(arguments: list[str], kind: str, nth: int, kill: bool, done: Path, counts: Path) -> int:
    from perflaw.cli.main import main

    sys.argv = ["perflaw", *arguments]
    shim = plan(kind, nth, kill, done) if kind else None
    status: object = 0
    try:
        with redirect_stdout(open(1, "w", closefd=False)), redirect_stderr(open(2, "w", closefd=False)):
            try:
                main()
            except SystemExit as end:
                status = end.code
            finally:
                if shim and not nth:
                    counts.write_text("".join(f"{name} {shim.fault_calls(name.encode())}\n" for name in KINDS))
                sys.stdout.flush()
                sys.stderr.flush()
        atexit._run_exitfuncs()
    except BaseException as error:
        os.write(2, f"Traceback: {error!r}\n".encode())
        return 70
    return status if isinstance(status, int) else 0 if status is None else 1


def _wait(child: int) -> int:
    """Exit status, or minus the signal; a process that takes too long is killed and has the status -100."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -100


def _children_of(folder: Path) -> list[str]:
    """Processes whose working folder it is."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").readlink() == folder:
                found.append(entry.name)
        except OSError:  # it has ended, or is another user's
            continue
    return found


def record(*, python: str = sys.executable) -> list[str]:
    return ["record", "--tracer", "native", "--", python, "app.py"]


def judge(trial: Trial, folder: Path) -> list[str]:
    """What is wrong after a trial."""
    wrong = []
    if trial.status == -100:
        wrong.append("the recorder hangs")
    if "Traceback" in trial.err or "unexpected" in trial.err:
        wrong.append("the message is no plain one")
    told = "perflaw: " in trial.err or "incomplete" in trial.err or trial.status == -signal.SIGKILL
    if trial.started and "all of it\n" not in trial.out:
        wrong.append("the program's output is not there")
    if not trial.started and not (told and trial.status):
        wrong.append("the program did not run, which is not told")
    runs = verified(folder)
    if runs is None:
        wrong.append("perflaw runs --verify finds damage")
    elif "0001" not in runs or not runs["0001"]:
        wrong.append("the recording before is not as it was")
    elif "0002" in runs and not runs["0002"] and not told:
        wrong.append("the recording lacks calls, which is not told")
    elif "0002" not in runs and not told:
        wrong.append("there is no recording, which is not told")
    elif "0002" not in runs and trial.status == 0:
        wrong.append("there is no recording, and the exit status is 0")
    return wrong


def verified(folder: Path) -> dict[str, bool] | None:
    """As :func:`_verified`, in a process of its own: a connection of DuckDB here would be in all further trials."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, json.dumps(_verified(folder)).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as answer:  # noqa: PTH123 (a descriptor)
        found: dict[str, bool] | None = json.loads(answer.read())
    os.waitpid(child, 0)
    return found


def _verified(folder: Path) -> dict[str, bool] | None:
    """Finished runs, with whether each is complete and has every call; None where one is damaged."""
    from perflaw.errors import StoreError
    from perflaw.store.checksums import verify_all
    from perflaw.store.experiment import open_experiment

    experiment, runs = open_experiment("default", folder), {}
    try:
        for number in experiment.ids():
            recording = experiment.recording(number)
            verify_all(recording.folder)
            calls = {row[1]: row[7] for row in recording.tables()["components"]}
            runs[number] = recording.run.complete and calls.get("app.work") == CALLS
            if recording.run.complete and not runs[number]:
                return None
    except StoreError:
        return None
    return runs


def prepared(template: Path | None) -> Path:
    """A folder with the program, and one recording of it."""
    folder = Path(tempfile.mkdtemp(prefix="perflaw-faults-"))
    if template:
        shutil.copytree(template / ".perflaw", folder / ".perflaw")
    (folder / "app.py").write_text(PROGRAM)
    return folder


def points(count: int, most: int) -> list[int]:
    """Numbers of calls, from 1 to ``count``: all, or ``most`` of them evenly."""
    if count <= most:
        return list(range(1, count + 1))
    return sorted({1 + round(at * (count - 1) / (most - 1)) for at in range(most)})


def trials(template: Path, kinds: list[str], most: int, bars: Bars) -> None:
    folder = prepared(template)
    counting = in_child(folder, record(), "write", 0)
    assert counting.status == 0, counting.err
    counts = dict(line.split() for line in (folder / "counts.txt").read_text().splitlines())
    shutil.rmtree(folder)
    total = lost = 0
    for kind in kinds:
        chosen = points(int(counts[kind]), most)
        for kill in (False, True):
            wrong, happened = [], 0
            for nth in chosen:
                folder = prepared(template)
                trial = in_child(folder, record(), kind, nth, kill)
                happened += trial.happened
                if faults := judge(trial, folder):
                    last = (trial.err.strip().splitlines() or ["nothing"])[-1]
                    wrong.append(f"{kind} {nth}, status {trial.status}: {', '.join(faults)}; told: {last[:300]}")
                shutil.rmtree(folder, ignore_errors=True)
            total, lost = total + happened, lost + len(wrong)
            what = "killed there" if kill else "fails"
            print(
                f"{kind:7} {what:12} {int(counts[kind]):5} calls, {happened:4} faults, wrong {len(wrong)}", flush=True
            )
            print(*[f"    {line}" for line in wrong], sep="\n", end="\n" * bool(wrong), flush=True)
    beside = bars.check("faults after which something is wrong", lost, 0)
    print(f"{total} faults; after {lost} something is wrong  {beside}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=[], help="of " + ", ".join(KINDS))
    parser.add_argument("--points", type=int, default=40, help="most faults of each kind and way")
    options = parser.parse_args()
    if "faults.so" not in os.environ.get("LD_PRELOAD", ""):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "LD_PRELOAD": str(library())})
    import duckdb  # noqa: F401 (imported before the trials fork)

    import perflaw.cli.record
    import perflaw.record.saving  # noqa: F401

    bars = Bars()
    template = prepared(None)
    first = in_child(template, record())
    assert first.status == 0, first.err
    trials(template, options.kinds or list(KINDS), options.points, bars)
    shutil.rmtree(template)
    bars.leave()


if __name__ == "__main__":
    main()
