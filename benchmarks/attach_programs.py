"""``perflaw attach`` to programs that others wrote and ship, each started as it is and attached to under load.

    python benchmarks/attach_programs.py [--busy 2] [PROGRAM...]

Programs of Debian (memcached of nobody, lighttpd and an nginx worker of www-data, a PostgreSQL backend, the shell of
sqlite3, ffmpeg, jq) and of PyPI (a gunicorn worker with Flask, a Celery worker). Needs root, which attaches to all. Beside
each of them so many busy loops run. A round is the same requests each time. Each program answers some rounds alone, then
while it is recorded, then alone again, and is killed within a second recording. Bars: chosen functions have as many calls
as requests were made; all rounds have the same answers; after the kill, the calls of all answered requests are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mine_servers import children, started
from native_servers import NGINX, PATIENCE_S, connected, until_quiet
from redis_server import free_port
from shared import PROGRAMS, ROOT, Bars, environment

from perflaw.store.experiment import open_experiment

ROUNDS, SEVERAL = 5, 5
"""Rounds of each part; as many functions of a stripped program have to have been called once for each request."""
FLASK, CELERY = ("flask==3.1.2", "gunicorn==23.0.0"), ("celery==5.5.3", "redis==5.2.1")
FRAME_BYTES, FRAMES = 32 * 24, 50
Round = Callable[[], bytes]
"""Makes all requests of a round, and gives their answers."""
Serving = tuple[int, Round]
"""The process to attach to, and its requests."""
LIGHTTPD = """server.document-root = "{0}/www"
server.port = {1}
server.bind = "127.0.0.1"
server.username = "www-data"
server.groupname = "www-data"
"""


def ending_with(port: int, requests: Sequence[bytes], last: bytes) -> bytes:
    """Answers to requests over one connection, up to the one that ends so."""
    with connected(port) as connection:
        for request in requests:
            connection.sendall(request)
        answers = b""
        while not answers.endswith(last):
            part = connection.recv(1 << 16)
            if not part:
                sys.exit(f"the server closed the connection after {answers[-200:]!r}")
            answers += part
    return answers


def got(port: int, paths: Sequence[str]) -> bytes:
    """Answers to HTTP requests of these paths, each over a connection of its own, without their times."""
    answers = b""
    for path in paths:
        with connected(port) as connection:
            connection.sendall(f"GET {path} HTTP/1.0\r\nHost: here\r\n\r\n".encode())
            while part := connection.recv(1 << 16):
                answers += part
    return re.sub(rb"(?m)^(Date|Last-Modified|ETag): .*$", b"", answers)


def written_pages(folder: Path) -> list[str]:
    """Files of several sizes below ``www``, and the paths of a round's requests."""
    (folder / "www").mkdir()
    sizes = (10, 1000, 100_000)
    for size in sizes:
        (folder / "www" / f"file{size}.txt").write_text("x" * size)
    return [f"/file{size}.txt" for size in sizes] * 20


def child_of(pid: int, word: str = "") -> int:
    """The first process that this one has started and that has the word in its title, once there is one."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        for child in children(pid):
            if word in Path(f"/proc/{child}/cmdline").read_text():
                return child
        time.sleep(0.05)
    sys.exit(f"process {pid} has started no {word or 'process'}")


@contextmanager
def memcached(folder: Path) -> Iterator[Serving]:
    port, values = free_port(), [b"v" * (number * 31 % 900) for number in range(30)]
    pairs = [
        (b"set k%d 0 0 %d\r\n%b\r\n" % (at, len(value), value), b"get k%d\r\n" % at) for at, value in enumerate(values)
    ]

    def ask() -> bytes:
        with connected(port) as connection:  # one after the other, as clients that wait for each answer
            answers = b""
            for request, last in [
                each for pair in pairs for each in zip(pair, (b"STORED\r\n", b"END\r\n"), strict=True)
            ]:
                connection.sendall(request)
                answer = b""
                while not answer.endswith(last):
                    answer += connection.recv(1 << 16)
                answers += answer
        return answers

    with ExitStack() as stack:
        server = started(stack, "memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", str(port), "-t", "2")
        yield server.pid, ask


@contextmanager
def lighttpd(folder: Path) -> Iterator[Serving]:
    port, paths = free_port(), written_pages(folder)
    (folder / "lighttpd.conf").write_text(LIGHTTPD.format(folder, port))
    with ExitStack() as stack:
        server = started(stack, "lighttpd", "-D", "-f", str(folder / "lighttpd.conf"), stderr=subprocess.DEVNULL)
        yield server.pid, lambda: got(port, paths)


@contextmanager
def nginx(folder: Path) -> Iterator[Serving]:
    port, paths = free_port(), written_pages(folder)
    several = NGINX.replace("master_process off", "worker_processes 1; user www-data")
    (folder / "nginx.conf").write_text(several.format(folder, port))
    with ExitStack() as stack:
        server = started(stack, "/usr/sbin/nginx", "-c", str(folder / "nginx.conf"), stderr=subprocess.DEVNULL)
        yield child_of(server.pid, "worker"), lambda: got(port, paths)


@contextmanager
def gunicorn(folder: Path, version: str) -> Iterator[Serving]:
    python, port = environment(version, FLASK, "attach_flask"), free_port()
    words = [python, "-m", "gunicorn", "--workers", "1", "--bind", f"127.0.0.1:{port}", "--log-level", "critical"]
    paths = [f"/total/{round(10**3 * 10 ** (2 * number / 59))}" for number in range(60)]
    with ExitStack() as stack:
        server = started(stack, *words, "flask_service:application", cwd=PROGRAMS)
        worker = child_of(server.pid)
        got(port, paths[:1])  # it serves from now on
        yield worker, lambda: got(port, paths)


@contextmanager
def celery(folder: Path, version: str) -> Iterator[Serving]:
    python, port = environment(version, CELERY, "attach_celery"), str(free_port())
    given = {**os.environ, "REDIS_PORT": port}
    with ExitStack() as stack:
        store = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        started(stack, *store, stdout=subprocess.DEVNULL)
        connected(int(port)).close()
        words = [python, "-m", "celery", "-A", "celery_tasks", "worker", "--pool", "solo", "--loglevel", "ERROR"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        worker = started(stack, *words, cwd=PROGRAMS, env=given, **quiet)
        asking = stack.enter_context(piped([python, "celery_tasks.py"], cwd=PROGRAMS, env=given))
        yield worker.pid, lambda: until_quiet(asking, "60\n")


@contextmanager
def piped(command: Sequence[str], **options: object) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is asked by its standard input and answers by its standard output."""
    settings = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, **options}
    with subprocess.Popen(command, **settings) as process:  # type: ignore[call-overload] # settings of several types
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def sqlite3(folder: Path) -> Iterator[Serving]:
    lines = [f"insert into t values ({number}, 'text {number}');" for number in range(57)]
    text = "\n".join(["delete from t;", *lines, "select sum(a), max(b) from t;", "select 'round done';\n"])
    with piped(["stdbuf", "-oL", "sqlite3", str(folder / "database")]) as shell:
        until_quiet(shell, "create table t(a integer, b text); select 'round done';\n")
        yield shell.pid, lambda: until_quiet(shell, text)


@contextmanager
def jq(folder: Path) -> Iterator[Serving]:
    values = [[number * 7919 % (size + 3) for number in range(size)] for size in range(0, 118, 2)]
    text = "".join(f"{json.dumps(value)}\n" for value in [*values, "round done"])
    program = 'if type == "array" then (sort | map(. + 1)) else . end'
    with piped(["jq", "--unbuffered", "-c", "-r", program]) as filtering:
        yield filtering.pid, lambda: until_quiet(filtering, text)


@contextmanager
def ffmpeg(folder: Path) -> Iterator[Serving]:
    frames = b"".join(bytes((place * number) & 255 for place in range(FRAME_BYTES)) for number in range(FRAMES))
    shape = ["-f", "rawvideo", "-pix_fmt", "gray", "-s", "32x24", "-r", "25"]
    command = [
        "ffmpeg",
        "-loglevel",
        "error",
        *shape,
        "-i",
        "pipe:0",
        "-vf",
        "negate",
        "-f",
        "rawvideo",
        "-flush_packets",
        "1",
    ]
    with piped([*command, "pipe:1"], bufsize=0) as converting:
        assert converting.stdin
        assert converting.stdout
        source, sink = converting.stdin, converting.stdout.fileno()

        def read(count: int, patience_s: float) -> bytes:
            answers = b""
            while len(answers) < count and select.select([sink], [], [], patience_s)[0]:
                answers += os.read(sink, count - len(answers))
            return answers

        def ask() -> bytes:
            source.write(frames)
            return read(len(frames), PATIENCE_S)

        for _ in range(2):  # what it keeps for later is the same from the second time on
            source.write(frames)
            read(len(frames), 2)
        yield converting.pid, ask


@contextmanager
def postgresql(folder: Path) -> Iterator[Serving]:
    script, port = str(ROOT / "examples" / "postgresql" / "server.sh"), str(free_port())
    given = {**os.environ, "PERFLAW_POSTGRESQL": str(folder / "database"), "PERFLAW_POSTGRESQL_PORT": port}
    subprocess.run(["sh", script, "init"], env=given, check=True)
    tools = next(Path("/usr/lib/postgresql").glob("*/bin"))
    lines = [
        f"select sum(abalance), count(*) from pgbench_accounts where aid < {100 * number};" for number in range(59)
    ]
    text = "\n".join([*lines, "select 'round done';\n"])
    with ExitStack() as stack:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        server = started(stack, "sh", script, "start", env=given, **quiet)
        connected(int(port)).close()
        ready = [tools / "pg_isready", "-q", "-h", "127.0.0.1", "-p", port]
        while subprocess.run(ready).returncode:
            time.sleep(0.1)
        client = [str(tools / "psql"), "-q", "-A", "-t", "-h", "127.0.0.1", "-p", port, "-U", "perflaw", "trips"]
        shell = stack.enter_context(piped(client))
        until_quiet(shell, "select 'round done';\n")
        yield child_of(server.pid, "127.0.0.1"), lambda: until_quiet(shell, text)


@dataclass(frozen=True, slots=True)
class Program:
    """A program, and what of it has to be called once for each request."""

    start: Callable[[Path], object]
    """Starts it: a context manager of :data:`Serving`."""
    options: tuple[str, ...] = ()
    """Of ``perflaw attach``."""
    counted: tuple[str, ...] = ()
    """Functions that are called once for each request; of a stripped program it is not known which they are."""
    per_round: int = 60
    """Requests of a round."""
    is_python: bool = False
    """Whether it is a program in Python."""


PROGRAMS_HERE = {
    "memcached": Program(memcached),
    "lighttpd": Program(lighttpd, counted=("connection_accepted", "http_response_send_file")),
    "nginx": Program(nginx, counted=("ngx_http_process_request", "ngx_http_free_request")),
    "postgresql": Program(postgresql, ("--select", "pg_*", "--select", "Portal*"), ("pg_parse_query", "PortalRun")),
    "sqlite3": Program(sqlite3, ("--select", "sqlite3_*"), ("sqlite3_prepare_v2",)),
    "jq": Program(jq, ("--select", "jq_*", "--select", "jv_*"), ("jq_start",)),
    "ffmpeg": Program(ffmpeg, ("--select", "av*_frame*"), ("av_interleaved_write_frame",), FRAMES),
    "gunicorn": Program(
        partial(gunicorn, version="3.11"), ("--per", "total"), ("flask_service.total",), is_python=True
    ),
    "gunicorn-3.13": Program(
        partial(gunicorn, version="3.13"), ("--per", "total"), ("flask_service.total",), is_python=True
    ),
    "celery": Program(partial(celery, version="3.11"), ("--per", "total"), ("celery_tasks.total",), is_python=True),
    "celery-3.13": Program(
        partial(celery, version="3.13"), ("--per", "total"), ("celery_tasks.total",), is_python=True
    ),
}


@contextmanager
def attached(pid: int, folder: Path, experiment: str, program: Program) -> Iterator[subprocess.Popen[str]]:
    """A recorder that records; what it says is read at its end."""
    command = [
        sys.executable,
        "-m",
        "perflaw",
        "attach",
        str(pid),
        "-e",
        experiment,
        "--seconds",
        "1000",
        *program.options,
    ]
    has_begun = python_has_begun if program.is_python else compiled_has_begun
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as recorder:
        try:
            spools = (folder, f".perflaw/{experiment}/runs/*/spool/"), (Path("/tmp"), f"perflaw-{recorder.pid}-*/")
            end = time.monotonic() + PATIENCE_S
            while not any(has_begun(place, pattern) for place, pattern in spools):
                if recorder.poll() is not None:
                    sys.exit(f"nothing is recorded: {recorder.communicate()[1]}")
                if time.monotonic() > end:
                    sys.exit("nothing is recorded")
                time.sleep(0.02)
            yield recorder
        finally:
            recorder.kill()


def compiled_has_begun(place: Path, spool: str) -> bool:
    """Whether all jumps of a recording are there."""
    return any(place.glob(f"{spool}recorded"))


def python_has_begun(place: Path, spool: str) -> bool:
    """Whether an interpreter has the tracer."""
    return any("'start'" in file.read_text() for file in place.glob(f"{spool}*/definitions"))


def calls(folder: Path, experiment: str) -> dict[str, int]:
    """How often each component was called in the latest recording."""
    recording = open_experiment(experiment, folder).recordings()[-1]
    return {row[1]: row[7] for row in recording.tables()["components"]}


def measure(name: str, program: Program, bars: Bars) -> None:
    """Attach to a program twice, and print what was found beside the bars."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        with program.start(folder) as (pid, ask):  # type: ignore[attr-defined] # a context manager
            ask()
            answers = [ask() for _ in range(ROUNDS)]
            with attached(pid, folder, "whole", program) as recorder:
                answers += [ask() for _ in range(ROUNDS)]
                recorder.send_signal(signal.SIGINT)
                said = recorder.communicate(timeout=PATIENCE_S)[1]
                if recorder.returncode:
                    sys.exit(f"status {recorder.returncode}: {said}")
            answers += [ask() for _ in range(ROUNDS)]
            whole = calls(folder, "whole")
            with attached(pid, folder, "killed", program) as second:
                answers += [ask()]
                os.kill(pid, signal.SIGKILL)
                second.communicate(timeout=PATIENCE_S)
            kept = calls(folder, "killed")
    made, wrong = ROUNDS * program.per_round, sum(each != answers[0] for each in answers)
    counted = program.counted or tuple(one for one, count in whole.items() if count == made)[:SEVERAL]
    shown = ", ".join(f"{one} {whole.get(one, 0)}" for one in counted)
    few = SEVERAL if not program.counted else len(counted)
    exact = sum(whole.get(one, 0) == made for one in counted)
    least = min((kept.get(one, 0) for one in counted), default=0)
    stopped = float(re.findall(r"stopped for ([\d.]+) ms", said)[0])
    print(f"{name}: {len(whole)} functions, {sum(whole.values()):,} calls, stopped for {stopped} ms")
    print(f"  {made} requests: {shown or 'no function'}  {bars.check(f'{name}: exact counts', exact, few, least=True)}")
    print(f"  {len(answers)} rounds, {wrong} with other answers  {bars.check(f'{name}: answers', wrong, 0)}")
    words = bars.check(f"{name}: kept", least, program.per_round - 1, least=True)
    print(f"  killed after {program.per_round} requests: {least} kept  {words}", end="; ")
    print(f"status {second.returncode} {bars.check(f'{name}: status', second.returncode, 0)}")
    print(f"  {time.monotonic() - begun:.0f} s, load {os.getloadavg()[0]:.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS_HERE), choices=[*PROGRAMS_HERE, []])
    parser.add_argument("--busy", type=int, default=2, help="busy loops that run beside")
    asked, bars = parser.parse_args(), Bars()
    with ExitStack() as stack:
        for _ in range(asked.busy):
            stack.enter_context(piped([sys.executable, "-c", "while True: pass"]))
        for name in asked.programs or PROGRAMS_HERE:
            measure(name, PROGRAMS_HERE[name], bars)
    bars.leave()


if __name__ == "__main__":
    main()
