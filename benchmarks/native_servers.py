"""nginx, redis-server, sqlite3 and mariadbd as Debian ships them (scripts/servers.sh installs them), attached under load.

    python benchmarks/native_servers.py [--laws] [SERVER...]

Each server answers the same requests round after round: plainly, while all of its functions are recorded that can be patched,
after the detach, after a recorder was killed, and until it is killed itself within a recording. The digest of every round's
answers has to be that of the first. Costs are CPU time of the server for a round, before and after the detach in turns with a
second server that is left alone. Of sqlite3 the functions of its library are recorded, of the others those of the program.

With --laws, redis-server and mariadbd get requests of drawn sizes instead, and some functions are recorded: what is said of
them is printed beside the bar. MariaDB's optimizer takes quadratic time for an AND of ``<>`` on a column that two indexes begin
with, and linear time for the IN list of the same values (the shape of MySQL's bug 94296). Then the servers are recorded again
and killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from redis_server import free_port
from shared import Bars, change_beside, cpu_ns_of

from perflaw.record.attach.directory import left_behind
from perflaw.record.attach.process import mapped_files
from perflaw.record.compiled.inject.tables import counted_reasons, module_patches
from perflaw.store.experiment import open_experiment

ROUNDS, SECONDS, SLOWER, PATIENCE_S, PAIRS_S = 15, 8, 0.01, 300, 60
Requests = Callable[[], bytes]
"""Makes all requests of a round, and gives their answers."""
NGINX = """daemon off; master_process off; pid {0}/nginx.pid; error_log {0}/error.log;
events {{}} http {{ access_log off; client_body_temp_path {0}; proxy_temp_path {0}; fastcgi_temp_path {0};
uwsgi_temp_path {0}; scgi_temp_path {0}; gzip on; gzip_types *;
server {{ listen 127.0.0.1:{1}; root {0}/www; autoindex on; location /old {{ rewrite ^/old(.*)$ $1; }} }} }}"""


def connected(port: int) -> socket.socket:
    """A connection to a server of this machine, once it listens."""
    end = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def until_quiet(process: subprocess.Popen[bytes], lines: str) -> bytes:
    """What a shell answers to these lines; its last answer is ``round done``."""
    assert process.stdin
    assert process.stdout
    process.stdin.write(lines.encode())
    process.stdin.flush()
    answers = b""
    while not answers.endswith(b"round done\n"):
        line = process.stdout.readline()
        if not line:
            sys.exit("the shell ended")
        answers += line
    return answers


@contextmanager
def nginx(folder: Path) -> Iterator[tuple[int, Requests]]:
    port = free_port()
    (folder / "www").mkdir()
    for size in (0, 10, 1000, 100_000):
        (folder / "www" / f"file{size}.txt").write_text(f"{size} " * size)
    (folder / "nginx.conf").write_text(NGINX.format(folder, port))
    paths = [f"/{place}file{size}.txt" for place in ("", "old/", "no/") for size in (0, 10, 1000, 100_000)] + ["/"]
    kinds = ("", "Accept-Encoding: gzip\r\n", "Range: bytes=5-300\r\n")
    asked = [f"GET {path} HTTP/1.0\r\nHost: here\r\n{kind}\r\n".encode() for path in paths for kind in kinds]

    def requests() -> bytes:
        answers = b""
        for request in asked:
            with connected(port) as connection:
                connection.sendall(request)
                while part := connection.recv(1 << 16):
                    answers += part
        return re.sub(rb"(?m)^Date: .*$", b"", answers)

    with subprocess.Popen(["/usr/sbin/nginx", "-c", folder / "nginx.conf"], stderr=subprocess.DEVNULL) as server:
        try:
            yield server.pid, requests
        finally:
            server.kill()


@contextmanager
def redis(folder: Path) -> Iterator[tuple[int, Requests]]:
    port = free_port()
    (folder / "port").write_text(str(port))
    words = ["FLUSHALL"]
    for number in range(400):
        key, value = f"{number % 37}", "v" * (number * 31 % 900)
        words += [
            f"SET s{key} x{value}",
            f"GET s{key}",
            f"INCR n{key}",
            f"LPUSH l{key} a{number} b c",
            f"LRANGE l{key} 0 30",
        ]
        words += [
            f"SADD set{key} {number}",
            f"HSET h{key} f{number} {number}",
            f"HGETALL h{key}",
            f"ZADD z{key} {number} m{number}",
        ]
        words += [f"ZRANGE z{key} 0 -1 WITHSCORES", f"RPOP l{key}", f"EVAL 'return {number}*2' 0", f"SORT l{key} ALPHA"]
    command = ["/usr/bin/redis-server", "--port", str(port), "--save", "", "--dir", str(folder)]

    def requests() -> bytes:
        with connected(port) as connection:
            connection.sendall("".join(f"{word}\r\n" for word in [*words, "ECHO round-done", "QUIT"]).encode())
            answers = b""
            while part := connection.recv(1 << 16):
                answers += part
        return answers

    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            yield server.pid, requests
        finally:
            server.kill()


def statements(numbers: str) -> str:
    """SQL of a round; ``numbers`` is a table of the numbers up to 2,000."""
    lines = ["drop table if exists t;", "create table t(a integer primary key, b varchar(99), c integer);"]
    lines += [f"insert into t select n, 'text' , n * 7919 % 1009 from {numbers};", "create index tc on t(c);"]
    for number in range(60):
        inside = ",".join(str(value) for value in range(number, 40 * number + 1, 7)) or "1"
        lines += [f"select count(*), sum(c), min(b) from t where a in ({inside});"]
        lines += [f"select c % {number + 2}, count(*) from t group by 1 order by 2, 1 limit 20;"]
        lines += [f"select x.a from t x join t y on x.c = y.c where x.a < {number * 3} and y.a > x.a order by 1;"]
        lines += [f"update t set b = 'changed' where c = {number * 5};", f"delete from t where a = {number * 11};"]
    return "\n".join([*lines, "select 'round done';\n"])


@contextmanager
def sqlite3(folder: Path) -> Iterator[tuple[int, Requests]]:
    text = statements(
        "(with recursive s(n) as (select 1 union all select n + 1 from s where n < 2000) select n from s)"
    )
    command = ["stdbuf", "-oL", "/usr/bin/sqlite3", str(folder / "database")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        try:
            yield shell.pid, lambda: until_quiet(shell, text)
        finally:
            shell.kill()


@contextmanager
def mariadbd(folder: Path) -> Iterator[tuple[int, Requests]]:
    data, place = folder / "data", folder / "socket"
    install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root"]
    install += ["--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(install, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    command = ["/usr/sbin/mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", f"--socket={place}"]
    command += ["--skip-networking", f"--pid-file={folder}/pid"]
    client = ["mariadb", "--no-defaults", "-S", str(place), "-u", "root", "-N", "-B", "--unbuffered"]
    text = statements("(select seq as n from seq_1_to_2000) s")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        while subprocess.run([*client, "-e", "create database if not exists d"], stderr=subprocess.DEVNULL).returncode:
            time.sleep(0.3)
        with subprocess.Popen([*client, "d"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
            try:
                yield server.pid, lambda: until_quiet(shell, text)
            finally:
                shell.kill()
                server.kill()


SERVERS = {"nginx": nginx, "redis": redis, "sqlite3": sqlite3, "mariadbd": mariadbd}
CHOICE = {"sqlite3": ["--select", "sqlite3*", "--select", "libsqlite3*"]}


class Load:
    """The rounds of a server's requests."""

    def __init__(self, pid: int, requests: Requests) -> None:
        self.pid, self.requests = pid, requests
        self.digests: Counter[str] = Counter()

    def cost(self) -> float:
        """CPU time of the server for one round, ms."""
        before = cpu_ns_of(self.pid)
        self.digests[hashlib.sha256(self.requests()).hexdigest()] += 1
        return (cpu_ns_of(self.pid) - before) / 1e6

    def costs(self) -> float:
        return min(self.cost() for _ in range(ROUNDS))


def attach(name: str, pid: int, folder: Path, experiment: str, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "perflaw", "attach", str(pid), "-e", experiment, "--seconds", str(seconds)]
    return subprocess.Popen([*command, *CHOICE.get(name, [])], cwd=folder, stderr=subprocess.PIPE, text=True)


def await_jumps(folder: Path, experiment: str, load: Load) -> None:
    """Keep the server busy until its jumps are written and record, and a little longer."""
    end = time.monotonic() + PATIENCE_S
    while not is_recorded(folder, experiment):
        if time.monotonic() > end:
            sys.exit("nothing is recorded")
        load.cost()
    for _ in range(3):
        load.cost()


def is_recorded(folder: Path, experiment: str) -> bool:
    """Whether the jumps of a recording are written and record."""
    return any(folder.glob(f".perflaw/{experiment}/runs/*/spool/recorded"))


def coverage(name: str, pid: int) -> None:
    word = "libsqlite3" if name == "sqlite3" else name.removesuffix("d")
    [file] = [path for path in mapped_files(pid) if word in Path(path).name and not path.endswith(".frm")][:1]
    patches = module_patches(Path(file).resolve())
    found = len(patches.patchable) + len(patches.refusals)
    share = len(patches.patchable) / found
    print(f"{name}: {Path(file).name}, {found} functions, {len(patches.patchable)} patched ({share:.1%})")
    print(f"  refused: {counted_reasons(Counter(patches.refusals.values()))}")


def measure(name: str, bars: Bars) -> None:
    with (
        tempfile.TemporaryDirectory() as place,
        tempfile.TemporaryDirectory() as other,
        SERVERS[name](Path(place)) as (pid, requests),
        SERVERS[name](Path(other)) as left_alone,
    ):
        folder, load, control = Path(place), Load(pid, requests), Load(*left_alone)
        coverage(name, pid)
        during, said = list[float](), list[str]()

        def record() -> None:
            with attach(name, pid, folder, "whole", SECONDS) as recorder:
                await_jumps(folder, "whole", load)
                while recorder.poll() is None:
                    during.append(load.cost())
                said.append(recorder.stderr.read() if recorder.stderr else "")
            if recorder.returncode:
                sys.exit(said[0])

        begun = time.monotonic()
        usual = statistics.median(load.cost() + control.cost() for _ in range(5)) / 2
        rounds = int(
            np.clip(PAIRS_S / 2 / ((time.monotonic() - begun) / 5), 40, 600)
        )  # requests may take more than answers
        slower = change_beside(load.cost, control.cost, rounds, record)
        [recording] = open_experiment("whole", folder).recordings()
        stopped = re.findall(r"stopped for ([\d.]+) ms", said[0])[0]
        print(
            f"  recorded {recording.run.calls:,} calls; stopped for {stopped} ms; CPU time of a round {usual:.1f} ms,"
            f" meanwhile {statistics.median(during):.1f}; slower after the detach by {slower} in {rounds} pairs"
            f" {slower.verdict(bars, f'{name}: slower afterwards', SLOWER)}; load {os.getloadavg()[0]:.0f}"
        )
        killed(name, folder, load, bars)
        wrong = sum(load.digests.values()) - load.digests.most_common(1)[0][1]
        print(
            f"  {sum(load.digests.values())} rounds, {wrong} with other answers {bars.check(f'{name}: answers', wrong, 0)}",
            flush=True,
        )


def killed(name: str, folder: Path, load: Load, bars: Bars) -> None:
    """First the recorder, then the server."""
    with attach(name, load.pid, folder, "killed", 1000) as recorder:
        await_jumps(folder, "killed", load)
        recorder.kill()
    cost = load.costs()
    while not (left := len(left_behind(load.pid))):
        load.cost()
    with attach(name, load.pid, folder, "last", 1000) as recorder:
        await_jumps(folder, "last", load)
        os.kill(load.pid, signal.SIGKILL)
        recorder.communicate(timeout=PATIENCE_S)
    [kept] = open_experiment("last", folder).recordings()
    print(
        f"  recorder killed: a round takes {cost:.1f} ms, {left} jumps left for the next;"
        f" server killed: {kept.run.calls:,} calls kept"
    )
    bars.check(f"{name}: recorder's status", recorder.returncode, 0)


# ---- laws ----


@dataclass(frozen=True, slots=True)
class Law:
    """What a server is asked, and the law that is wanted of one of its functions."""

    server: str
    """Its name in SERVERS."""
    name: str
    """Experiment of its recording."""
    request: Callable[[int], str]
    """A request of this size: SQL, or a command."""
    select: tuple[str, ...]
    """Functions that are recorded; the law is that of the first."""
    feature: str
    """What the law is over."""
    low: float
    high: float
    """How steep it is: the power of the feature, at the upper end of the data."""
    sizes: tuple[int, int] = (40, 800)
    """From and to, drawn evenly by their logarithm."""


def _values(size: int, separator: str) -> str:
    return separator.join(str(10**6 + 3 * number) for number in range(size))


SELECT = "explain select 1 from r where"
PARSE = ("mysql_parse", "SQL_SELECT::test_quick_select")
LAWS = (
    Law("redis", "range", lambda size: f"LRANGE numbers 0 {size}", ("addListRangeReply",), "arg4", 0.8, 1.2, (100, 20_000)),
    Law("mariadbd", "in-list", lambda size: f"{SELECT} b in ({_values(size, ',')});", PARSE, "arg3", 0.1, 1.2),
    Law("mariadbd", "and-of-unequal", lambda size: f"{SELECT} b <> {_values(size, ' and b <> ')};", PARSE, "arg3", 1.7, 2.3),
)  # fmt: skip
TABLE = """create table r(a int primary key, b int, c int, key(b), key bc(b, c));
insert into r select seq, seq * 7, seq * 3 from seq_1_to_50000;"""


def asked(law: Law, folder: Path) -> Callable[[str], object]:
    """Something that makes a request, of a server that has what is asked for."""
    if law.server == "redis":
        port = int((folder / "port").read_text())

        def command(text: str) -> object:
            with connected(port) as connection:
                connection.sendall(f"{text}\r\nQUIT\r\n".encode())
                return list(iter(lambda: connection.recv(1 << 20), b""))

        for first in range(0, 20_000, 1000):
            command("RPUSH numbers " + " ".join(str(number) for number in range(first, first + 1000)))
        return command
    client = ["mariadb", "--no-defaults", "-S", str(folder / "socket"), "-u", "root", "-N", "-B", "d"]

    def statement(text: str) -> object:
        return subprocess.run(client, input=text, text=True, check=True, stdout=subprocess.DEVNULL)

    statement(TABLE)
    return statement


def show_law(law: Law, bars: Bars) -> None:
    """Record a server under its requests, print what is said of the function, and record it again until it is killed."""
    with tempfile.TemporaryDirectory() as place, SERVERS[law.server](Path(place)) as (pid, _):
        folder, draw = Path(place), random.Random(1)
        ask = asked(law, folder)
        low, high = law.sizes
        chosen = [word for name in law.select for word in ("--select", name)]
        command = [sys.executable, "-m", "perflaw", "attach", str(pid), *chosen]
        with subprocess.Popen([*command, "-e", law.name, "--seconds", "12"], cwd=folder) as recorder:
            while recorder.poll() is None:
                ask(law.request(int(low * (high / low) ** draw.random())))
        annotate = [sys.executable, "-m", "perflaw", "annotate", "-e", law.name, "--metric", "cpu", "--json"]
        document = json.loads(subprocess.run(annotate, cwd=folder, capture_output=True, text=True, check=True).stdout)
        [found] = [one["scopes"] for one in document["annotations"] if one["component"] == law.select[0]]
        for scope in found:
            told = scope["law"]
            condition = f"[{scope['condition']}] " if scope["condition"] else ""
            print(f"  {law.name}: {law.select[0]}: {condition}{told['expression']} ({told['verdict']}, n {told['n']})")
        slope = found[-1]["law"]["slope"].get(law.feature, 0.0)
        words = bars.check(law.name, slope, law.low, least=True), bars.check(law.name, slope, law.high)
        print(f"  {law.name}: {law.feature}^{slope:.2f}, {', '.join(words)}", flush=True)
        with subprocess.Popen([*command, "-e", "killed", "--seconds", "100"], cwd=folder) as recorder:
            while not is_recorded(folder, "killed"):
                time.sleep(0.01)
            for _ in range(20):
                ask(law.request(low))
            os.kill(pid, signal.SIGKILL)
            recorder.communicate(timeout=PATIENCE_S)
        [kept] = open_experiment("killed", folder).recordings()
        calls = {row[1]: row[7] for row in kept.tables()["components"]}.get(law.select[0], 0)
        print(
            f"  killed: 20 requests answered, {calls} calls kept {bars.check(f'{law.name}, killed', calls, 19, least=True)}"
        )


def main(*names: str) -> None:
    bars = Bars()
    if "--laws" in names:
        for law in LAWS:
            if law.server in names or len(names) == 1:
                show_law(law, bars)
    else:
        for name in names or SERVERS:
            measure(name, bars)
    bars.leave()


if __name__ == "__main__":
    main(*sys.argv[1:])
