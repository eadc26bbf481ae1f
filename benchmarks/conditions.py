"""A recording where the machine lacks something or is busy: full and read-only disks, disks that tell their errors late,
no /dev/shm, little memory, clocks that are set, processes that are stopped, many recorders, readers, forks and threads at
once: conditions.py [NAME...].

After each, the program printed and returned what it does without perflaw, or it was not started, which is told with exit
status 2; a recording that was made before is as it was; the new one has every call, or a message says what is not there.
File systems are mounted in a namespace of their own and memory is bounded by a control group, which needs root.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from faults import library as fault_library
from shared import CACHE, PROGRAMS, Bars, pythons

from perflaw.errors import StoreError
from perflaw.store.checksums import verify_all
from perflaw.store.experiment import open_experiment

CALLS = 200_000
PROGRAM = f"""
import sys, time
def work(n): return n
for n in range({CALLS}):
    work(n)
    if n == 1000:
        open("begun", "w").close()
        time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0)
print("all of it")
"""
FORKS = 400
STORM = f"""
import os
def work(n): return n
def child(n):
    for k in range(20): work(k)
for n in range({FORKS}):
    if not os.fork():
        child(n)
        os._exit(0)
    if n % 40 == 39:
        for _ in range(40): os.wait()
print("all of it")
"""
THREADS = 1000
CROWD = f"""
import threading
def work(n): return n
barrier = threading.Barrier({THREADS})
def body():
    barrier.wait()
    for k in range(20): work(k)
threading.stack_size(1 << 18)
threads = [threading.Thread(target=body) for _ in range({THREADS})]
for one in threads: one.start()
for one in threads: one.join()
print("all of it")
"""
LIMIT_S = 240


class Place:
    """A folder with programs and one recording."""

    def __init__(self, python: str, folder: Path) -> None:
        self.python, self.folder, self.outcome = python, folder, ""
        for name, text in (("app.py", PROGRAM), ("storm.py", STORM), ("crowd.py", CROWD)):
            (folder / name).write_text(text)
        done = self.record()
        assert not done.returncode, done.stderr

    def command(self, *words: str, within: Sequence[str] = ()) -> list[str]:
        return [*within, sys.executable, "-m", "perflaw", "record", "--tracer", "native", "--", self.python, *words]

    def record(self, *words: str, within: Sequence[str] = (), **options: object) -> subprocess.CompletedProcess[str]:
        command = self.command(*words or ("app.py",), within=within)
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=LIMIT_S, **options)  # type: ignore[call-overload,no-any-return]

    def begin(self, *words: str) -> subprocess.Popen[str]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        (self.folder / "begun").unlink(missing_ok=True)
        begun = subprocess.Popen(self.command("app.py", *words), cwd=self.folder, text=True, **pipes)
        while not (self.folder / "begun").exists() and begun.poll() is None:
            time.sleep(0.01)
        return begun

    def calls(self) -> list[int]:
        """Calls of ``work`` in each finished recording; StoreError where one is damaged."""
        found = []
        for recording in open_experiment("default", self.folder).recordings():
            verify_all(recording.folder)
            rows = recording.tables()["components"]
            found.append(sum(row[7] for row in rows if row[1].endswith(".work")))
        return found

    def judge(self, done: subprocess.CompletedProcess[str], wanted: int = CALLS, runs: int = 0) -> list[str]:
        """What is wrong after a recording of ``wanted`` calls in ``runs`` runs (0: any number) beside the first one."""
        wrong, err, self.outcome = [], done.stderr.strip(), "nothing"
        is_told = any(
            word in err.replace("nothing lost", "") for word in ("perflaw: ", "incomplete", "stopped early", "lost")
        )
        if "Traceback" in err or "unexpected" in err:
            wrong.append("the message is no plain one")
        if "all of it\n" not in done.stdout and not (is_told and done.returncode):
            wrong.append(f"status {done.returncode}, the program's output is not there")
        try:
            first, *calls = self.calls()
        except (StoreError, ValueError) as error:
            return [*wrong, f"recordings cannot be read: {error}"]
        self.outcome = f"{sum(calls):,} of {wanted:,} calls in {len(calls)} recordings"
        if first != CALLS:
            wrong.append("the recording before is not as it was")
        if sum(calls) != wanted and not is_told:
            wrong.append(f"{sum(calls)} of {wanted} calls, which is not told")
        if runs and len(calls) != runs:
            wrong.append(f"{len(calls)} of {runs} recordings")
        for folder in sorted((self.folder / ".perflaw/default/runs").iterdir())[1:]:
            with suppress(OSError):  # read-only
                shutil.rmtree(folder)
        return [f"{line}; told: {err.splitlines()[-1][:300] if err else 'nothing'}" for line in wrong]


def mounted(script: str) -> list[str]:
    """A command within which file systems are mounted that nobody else sees."""
    return ["unshare", "-m", "sh", "-c", f'{script}; exec "$@"', "sh"]


@contextmanager
def disk(place: Place, options: str, device: str = "none") -> Iterator[None]:
    """The recordings lie on a file system of their own: in memory, or on a device."""
    recordings, before = place.folder / ".perflaw", place.folder / "before"
    recordings.rename(before)
    recordings.mkdir()
    kind = ["-t", "tmpfs"] if device == "none" else []
    subprocess.run(["mount", *kind, "-o", options, device, recordings], check=True)
    try:
        subprocess.run(["cp", "-a", f"{before}/.", recordings], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", recordings], check=True)
        recordings.rmdir()
        before.rename(recordings)


def full_disk(place: Place) -> Iterator[tuple[str, list[str]]]:
    """The disk of the recordings has room for so many KiB more."""
    used = int(subprocess.check_output(["du", "-sk", place.folder / ".perflaw"]).split()[0])
    for room in (16, 256, 1 << 10, 2 << 10, 4 << 10, 16 << 10):
        with disk(place, f"size={used + room}k"):
            yield f"{room} KiB of disk", place.judge(place.record())


def read_only(place: Place) -> Iterator[tuple[str, list[str]]]:
    with disk(place, "size=64m"):
        subprocess.run(["mount", "-o", "remount,ro", place.folder / ".perflaw"], check=True)
        yield "read-only disk", place.judge(place.record())


LATE_KIB = 64 << 10
"""Size of the disk that tells its errors late."""


@contextmanager
def thin_device(folder: Path) -> Iterator[str]:
    """A block device whose blocks have no room before they are written."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
    image = folder / "image"
    with image.open("wb") as file:
        file.truncate(LATE_KIB << 10)
    subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", "-E", "lazy_itable_init=0", image], check=True)
    device = subprocess.check_output(["losetup", "--find", "--show", image], text=True).strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
        subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()


def late_disk(place: Place) -> Iterator[tuple[str, list[str]]]:
    """Writing succeeds, and the error comes with fsync, with close, or not at all."""
    thin = place.folder / "thin"
    for room in (16, 40, 64, 128, 1 << 10):
        with thin_device(thin) as device, disk(place, "noatime", device):
            subprocess.run(["sync", "-f", place.folder / ".perflaw"], check=True)
            used = (thin / "image").stat().st_blocks // 2
            subprocess.run(["mount", "-o", f"remount,size={used + room}k", thin], check=True)
            done = place.record()
            subprocess.run(["sync", "-f", place.folder / ".perflaw"], stderr=subprocess.DEVNULL)
            Path("/proc/sys/vm/drop_caches").write_text("1")  # what was not kept is not read from memory
            yield f"disk that promises more than its {room} KiB", place.judge(done)
    shim = str(fault_library())
    folder = str(place.folder / ".perflaw")
    for what, names in (("fsync", {}), ("close", {"FAULT_LATE_CLOSE": "1"})):
        env = {**os.environ, "LD_PRELOAD": shim, "FAULT_LATE": folder, **names}
        yield f"errors of the disk at {what}", place.judge(place.record(env=env))


def shared_memory(place: Place) -> Iterator[tuple[str, list[str]]]:
    for what, script in (
        ("tiny /dev/shm", "mount -t tmpfs -o size=64k none /dev/shm"),
        ("read-only /dev/shm", "mount -t tmpfs -o ro none /dev/shm"),
        (
            "no /dev/shm",
            "umount -l /dev/shm || true; mount -t tmpfs none /dev; "
            "mknod -m 666 /dev/null c 1 3; mknod -m 666 /dev/urandom c 1 9",
        ),
    ):
        yield what, place.judge(place.record(within=mounted(script)))


def memory(place: Place) -> Iterator[tuple[str, list[str]]]:
    """Address space is bounded, of the recorder and the program alike."""
    for mib in (120, 200, 300, 400, 600, 1000, 2500):

        def bound(most: int = mib << 20) -> None:
            resource.setrlimit(resource.RLIMIT_AS, (most, most))

        env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        yield f"{mib} MiB of addresses", place.judge(place.record(preexec_fn=bound, env=env))


CGROUPS = (
    ("/sys/fs/cgroup", ("memory.max", "memory.swap.max"), "cgroup.controllers"),
    ("/sys/fs/cgroup/memory", ("memory.limit_in_bytes",), "memory.limit_in_bytes"),
)
"""Where control groups of the second and the first version are, the files of the limit, and how they are known."""


@contextmanager
def cgroup(most: int) -> Iterator[Path]:
    """A control group with this many bytes of memory."""
    found = [(Path(root), limits) for root, limits, known in CGROUPS if Path(root, known).exists()]
    if not found:
        sys.exit("conditions.py: cgroups: no control groups of memory are mounted below /sys/fs/cgroup")
    root, limits = found[0]
    folder = root / f"perflaw-conditions-{os.getpid()}"
    folder.mkdir()
    try:
        for name in limits:
            if (folder / name).exists():
                (folder / name).write_text(str(most if "swap" not in name else 0))
        yield folder
    finally:
        while (folder / "cgroup.procs").read_text().strip():
            time.sleep(0.05)
        folder.rmdir()


def cgroups(place: Place) -> Iterator[tuple[str, list[str]]]:
    """The memory of recorder and program together is bounded; who goes over it is killed."""
    for mib in (24, 40, 60, 80, 120, 200):
        with cgroup(mib << 20) as group:
            done = place.record(within=["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"])
            if done.returncode in (137, -signal.SIGKILL):  # the shell that runs us tells of a recorder that was killed
                done.stderr += "\nperflaw: killed"
            yield f"{mib} MiB of a control group", place.judge(done)


def clocks(place: Place) -> Iterator[tuple[str, list[str]]]:
    CACHE.mkdir(parents=True, exist_ok=True)
    shim = CACHE / "clock_jumps.so"
    source = PROGRAMS / "clock_jumps.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-D_GNU_SOURCE", source, "-o", shim, "-ldl"], check=True)
    done = place.record("app.py", "0.3", env={**os.environ, "LD_PRELOAD": str(shim)})
    wrong = place.judge(done)
    walls = [one.run.wall_ns / 1e9 for one in open_experiment("default", place.folder).recordings()]
    if not all(0 < wall < LIMIT_S for wall in walls):
        wrong.append(f"the program took {walls[-1]:.3g} s")
    yield "clock that is set", wrong


def suspends(place: Place) -> Iterator[tuple[str, list[str]]]:
    for what, stops_program, seconds in (("recorder", False, 3.0), ("recorder", False, 13.0), ("program", True, 3.0)):
        begun = place.begin("0.2")
        (program,) = Path(f"/proc/{begun.pid}/task/{begun.pid}/children").read_text().split()[:1]
        stopped = int(program) if stops_program else begun.pid
        os.kill(stopped, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(stopped, signal.SIGCONT)
        out, err = begun.communicate(timeout=LIMIT_S)
        yield (
            f"{what} stopped for {seconds:g} s",
            place.judge(subprocess.CompletedProcess([], begun.returncode, out, err)),
        )


def recorders(place: Place) -> Iterator[tuple[str, list[str]]]:
    """Several at once, in one experiment, and readers beside them."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    several = [subprocess.Popen(place.command("app.py"), cwd=place.folder, text=True, **pipes) for _ in range(4)]
    wrong, reads = [], 0
    while any(one.poll() is None for one in several):
        for words in (["runs"], ["runs", "--verify"], ["show", "1"]):
            command = [sys.executable, "-m", "perflaw", *words]
            done = subprocess.run(command, cwd=place.folder, capture_output=True, text=True)
            reads += 1
            if done.returncode or "Traceback" in done.stderr:
                wrong.append(f"perflaw {' '.join(words)}: status {done.returncode}, {done.stderr[-300:]}")
    said = [one.communicate() for one in several]
    out, err = ("".join(texts) for texts in zip(*said, strict=True))
    wrong += place.judge(subprocess.CompletedProcess([], 0, out, err), CALLS * len(several), len(several))
    yield f"{len(several)} recorders at once, {reads} readings beside them", wrong


def forks(place: Place) -> Iterator[tuple[str, list[str]]]:
    yield f"{FORKS} forks", place.judge(place.record("storm.py"), FORKS * 20)


def threads(place: Place) -> Iterator[tuple[str, list[str]]]:
    yield f"{THREADS} threads", place.judge(place.record("crowd.py"), THREADS * 20)


CONDITIONS: dict[str, Callable[[Place], Iterator[tuple[str, list[str]]]]] = {
    one.__name__: one
    for one in (
        full_disk,
        read_only,
        late_disk,
        shared_memory,
        memory,
        cgroups,
        clocks,
        suspends,
        recorders,
        forks,
        threads,
    )
}


@contextmanager
def prepared(python: str) -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="perflaw-conditions-") as name:
        yield Place(python, Path(name))


def main(*names: str) -> None:
    bars, count = Bars(), 0
    for version, python in pythons(("3.11", "3.13")).items():
        for name in names or CONDITIONS:
            with prepared(python) as place:
                for what, wrong in CONDITIONS[name](place):
                    count += 1
                    beside = bars.check(f"{version} {what}, wrong", len(wrong), 0)
                    print(f"Python {version}, {what}: {place.outcome}; wrong {len(wrong)}  {beside}", flush=True)
                    print(*[f"    {line}" for line in wrong], sep="\n", end="\n" * bool(wrong), flush=True)
    print(f"{count} conditions; missed {len(bars.missed)}")
    bars.leave()


if __name__ == "__main__":
    main(*sys.argv[1:])
