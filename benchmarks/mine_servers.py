"""Mining in running servers that others wrote: mine_servers.py [--seconds 60] [--runs 5] [--half 2] [--budget 10%] [SYSTEM...]

Systems: ``apache`` (Debian's, prefork), ``postgresql`` (Debian's), ``starlette`` (uvicorn with two workers, Python 3.11, which
shows the tracer every call), ``starlette-3.13`` (which shows it the chosen ones), ``django`` and ``httpbin`` (gunicorn with two
workers, Python 3.11), ``django-3.13``, ``httpbin-3.13``, ``datasette`` (one process with threads), ``lighttpd`` and
``memcached`` (Debian's, stripped). Each serves a load from other processes, is never started again, and its workers are mined
in turns by ``perflaw mine --attach``: some runs as it is, then some at half of a processor. The specifications of all are
merged one after the other. Bars: at most 8 conditions each, at the median 90 % of the calls in consistent call paths, no
worker ends. Needs root, because these servers run as users of their own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pwd
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from mine_web import PACKAGES, free_port
from mined import show
from quota import quota
from shared import CACHE, PROGRAMS, ROOT, Bars, environment

from perflaw.mine.journal import FILE, read_journal
from perflaw.store.experiment import open_experiment

DJANGO = ("django==5.2.8", "gunicorn==23.0.0")
HTTPBIN = ("httpbin==0.10.2", "gunicorn==23.0.0")
DATASETTE = ("datasette==0.65.1", "setuptools==80.9.0")
HALF = 0.5
MODULES = ("mpm_prefork", "authz_core", "dir", "autoindex", "mime", "filter", "deflate", "include", "alias", "setenvif")
CONFIGURATION = """
ServerName localhost
Listen 127.0.0.1:{port}
ServerRoot {folder}
PidFile {folder}/pid
ErrorLog {folder}/error.log
DocumentRoot {folder}/www
User www-data
Group www-data
StartServers 2
MinSpareServers 2
MaxSpareServers 2
ServerLimit 2
MaxRequestWorkers 2
TypesConfig /dev/null
AddType text/html .html .shtml
<Directory {folder}/www>
Options +Indexes +Includes
IndexOptions FancyIndexing
AddOutputFilter INCLUDES .shtml
AddOutputFilterByType DEFLATE text/html
Require all granted
</Directory>
"""
TABLES = """
ALTER TABLE pgbench_history ADD FOREIGN KEY (aid) REFERENCES pgbench_accounts;
ALTER TABLE pgbench_history ADD FOREIGN KEY (bid) REFERENCES pgbench_branches;
CREATE FUNCTION spend(account int, amount int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  UPDATE pgbench_accounts SET abalance = abalance - amount WHERE aid = account;
  RETURN (SELECT sum(abalance) FROM pgbench_accounts WHERE aid BETWEEN account AND account + 30);
END $$;
"""
"""What every second database has: references between tables, and a function that runs statements of its own."""
STATEMENTS = """
\\set aid random(1, 490000)
\\set kind random(1, 4)
\\if :kind = 1
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
\\elif :kind = 2
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :aid, 1, now());
\\elif :kind = 3
SELECT spend(:aid, 1);
\\else
SELECT sum(abalance), max(filler) FROM pgbench_accounts WHERE aid BETWEEN :aid AND :aid + 300;
\\endif
"""
LIGHTTPD = """
server.modules = ("mod_dirlisting", "mod_ssi", "mod_status")
server.bind = "127.0.0.1"
server.port = {port}
server.document-root = "{folder}/www"
server.errorlog = "{folder}/error.log"
server.max-worker = 2
index-file.names = ("index.html")
dir-listing.activate = "enable"
ssi.extension = (".shtml")
mimetype.assign = (".html" => "text/html", ".shtml" => "text/html", "" => "text/plain")
status.status-url = "/status"
"""
BUSY = """
import threading, sys
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
while not over.is_set():
    sum(range(10_000))
"""
"""A process that computes until its standard input ends."""
Workers = Callable[[], list[int]]


def started(stack: ExitStack, *command: str, **options: object) -> subprocess.Popen[str]:
    """A process that ends with the stack. It has a session of its own, because Apache ends all that are in its group."""
    settings = {"stdin": subprocess.PIPE, "text": True, "start_new_session": True, **options}
    process = subprocess.Popen(command, **settings)  # type: ignore[call-overload]

    def end() -> None:
        process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2)
        process.terminate()
        process.wait(60)

    stack.callback(end)
    return process


def children(pid: int) -> list[int]:
    """Processes that a process has started."""
    return sorted(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def asking(stack: ExitStack, port: int, *paths: str) -> None:
    """Four clients, so that no worker waits for long."""
    for seed in range(4):
        started(stack, sys.executable, str(PROGRAMS / "pages_rate.py"), str(port), str(seed), *paths)


def debian(package: str, program: str) -> Path:
    """A program of this machine or, without installing it, for that may start a service, of Debian's package."""
    if found := shutil.which(Path(program).name):
        return Path(found)
    folder = CACHE / package
    if not (folder / program).exists():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o777)  # apt downloads as a user of its own
        subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=True)
        subprocess.run(["dpkg", "-x", next(folder.glob("*.deb")), folder], check=True)
    return folder / program


def write_pages(pages: Path) -> tuple[str, ...]:
    """Pages of several kinds, and what to ask for."""
    (pages / "list").mkdir(parents=True)
    for number in range(60):
        (pages / "list" / f"file{number}.txt").write_text("text " * number)
    (pages / "page.html").write_text("<html>" + "<p>A paragraph of a page.</p>" * 200)
    (pages / "large.txt").write_text("a line of a large file\n" * 10_000)
    include = '<!--#include virtual="/page.html" --><!--#echo var="DATE_LOCAL" -->'
    (pages / "parts.shtml").write_text(f"<html>{include * 3}</html>")
    return "/page.html", "/large.txt", "/list/", "/parts.shtml", "/none{n}.html"


@contextmanager
def apache(folder: Path) -> Iterator[tuple[str, Workers]]:
    port, paths = free_port(), write_pages(folder / "www")
    loads = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n" for name in MODULES)
    (folder / "apache.conf").write_text(loads + CONFIGURATION.format(port=port, folder=folder))
    with ExitStack() as stack:
        server = started(stack, "/usr/sbin/apache2", "-D", "FOREGROUND", "-f", str(folder / "apache.conf"))
        while len(children(server.pid)) < 2:
            time.sleep(0.1)
        asking(stack, port, *paths)
        yield "www-data", lambda: children(server.pid)


@contextmanager
def postgresql(folder: Path) -> Iterator[tuple[str, Workers]]:
    script, port = str(ROOT / "examples" / "postgresql" / "server.sh"), str(free_port())
    given = {**os.environ, "PERFLAW_POSTGRESQL": str(folder / "database"), "PERFLAW_POSTGRESQL_PORT": port}
    subprocess.run(["sh", script, "init"], env=given, check=True)
    (folder / "mix.sql").write_text(STATEMENTS)
    bench = str(next(Path("/usr/lib/postgresql").glob("*/bin/pgbench")))
    with ExitStack() as stack:
        server = started(stack, "sh", script, "start", env=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ready = [bench.replace("pgbench", "pg_isready"), "-q", "-h", "127.0.0.1", "-p", port]
        while subprocess.run(ready).returncode:
            time.sleep(0.1)
        psql = [bench.replace("pgbench", "psql"), "-q", "-h", "127.0.0.1", "-p", port, "-U", "perflaw", "-c", TABLES]
        subprocess.run([*psql, "trips"], check=True)
        client = {**given, "PGOPTIONS": "-c synchronous_commit=off"}  # else it waits for the disk, and not for itself
        load = [bench, "-h", "127.0.0.1", "-p", port, "-U", "perflaw", "-n", "-c", "2", "-T", "100000"]
        started(stack, *load, "-f", str(folder / "mix.sql"), "trips", env=client, stdout=subprocess.DEVNULL)

        def backends() -> list[int]:
            return [one for one in children(server.pid) if "127.0.0.1" in Path(f"/proc/{one}/cmdline").read_text()]

        while len(backends()) < 2:
            time.sleep(0.1)
        yield "postgres", backends


@contextmanager
def starlette(folder: Path, version: str = "3.11") -> Iterator[tuple[str, Workers]]:
    python, port = environment(version, PACKAGES, "mine_web"), free_port()
    words = [python, "-m", "uvicorn", "service:application", "--workers", "2", "--port", str(port)]
    with ExitStack() as stack:
        server = started(stack, *words, "--log-level", "warning", cwd=PROGRAMS)

        def workers() -> list[int]:
            return [one for one in children(server.pid) if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]

        while len(workers()) < 2:
            time.sleep(0.1)
        time.sleep(5)  # until they serve
        asking(stack, port, "/item?n={n}", "/search?n={n}", "/basket?n={n}")
        yield "root", workers


@contextmanager
def django(folder: Path, version: str = "3.11") -> Iterator[tuple[str, Workers]]:
    python, port = environment(version, DJANGO, "mine_django"), free_port()
    words = [python, "-m", "gunicorn", "--preload", "--workers", "2", "--bind", f"127.0.0.1:{port}"]
    given = {**os.environ, "SHOP_DATABASE": str(folder / "shop.db")}
    with ExitStack() as stack:
        server = started(stack, *words, "django_service:application", cwd=PROGRAMS, env=given)
        while len(children(server.pid)) < 2:
            time.sleep(0.1)
        time.sleep(5)  # until they serve
        asking(stack, port, "/item?n={n}", "/search?n={n}", "/basket?n={n}", "/history?n={n}")
        yield "root", lambda: children(server.pid)


@contextmanager
def lighttpd(folder: Path) -> Iterator[tuple[str, Workers]]:
    program, port, paths = debian("lighttpd", "usr/sbin/lighttpd"), free_port(), write_pages(folder / "www")
    modules = program.parents[1] / "lib" / "lighttpd"
    (folder / "lighttpd.conf").write_text(LIGHTTPD.format(port=port, folder=folder))
    with ExitStack() as stack:
        server = started(stack, str(program), "-D", "-m", str(modules), "-f", str(folder / "lighttpd.conf"))
        while len(children(server.pid)) < 2:
            time.sleep(0.1)
        asking(stack, port, *paths, "/status")
        yield "root", lambda: children(server.pid)


@contextmanager
def memcached(folder: Path) -> Iterator[tuple[str, Workers]]:
    program, port = debian("memcached", "usr/bin/memcached"), free_port()
    with ExitStack() as stack:
        server = started(stack, str(program), "-u", "root", "-l", "127.0.0.1", "-p", str(port), "-t", "2", "-m", "64")
        for seed in range(4):
            started(stack, sys.executable, str(PROGRAMS / "cache_rate.py"), str(port), str(seed))
        yield "root", lambda: [server.pid]


@contextmanager
def httpbin(folder: Path, version: str = "3.11") -> Iterator[tuple[str, Workers]]:
    python, port = environment(version, HTTPBIN, "mine_httpbin"), free_port()
    words = [python, "-m", "gunicorn", "--preload", "--workers", "2", "--bind", f"127.0.0.1:{port}", "httpbin:app"]
    with ExitStack() as stack:
        server = started(stack, *words)
        while len(children(server.pid)) < 2:
            time.sleep(0.1)
        time.sleep(5)  # until they serve
        asking(stack, port, "/json", "/get?n={n}", "/bytes/{n}", "/html", "/gzip", "/base64/cGVyZmxhdw==")
        yield "root", lambda: children(server.pid)


@contextmanager
def datasette(folder: Path, version: str = "3.11") -> Iterator[tuple[str, Workers]]:
    python, port, file = environment(version, DATASETTE, "mine_datasette"), free_port(), folder / "shop.db"
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE shops (id INTEGER PRIMARY KEY, town TEXT)")
        database.execute("CREATE TABLE sales (id INTEGER PRIMARY KEY, shop INTEGER REFERENCES shops(id), price REAL)")
        database.executemany("INSERT INTO shops VALUES (?, ?)", [(n, f"town {n % 7}") for n in range(100)])
        database.executemany("INSERT INTO sales VALUES (?, ?, ?)", [(n, n * n % 100, n % 50) for n in range(10_000)])
    with ExitStack() as stack:
        server = started(stack, python, "-m", "datasette", "serve", str(file), "--port", str(port), cwd=folder)
        time.sleep(8)  # until it serves
        asking(
            stack,
            port,
            "/shop/sales/{n}.json",
            "/shop/sales.json?shop=3",
            "/shop/shops",
            "/shop.json",
            "/shop/sales?_size=5",
        )
        yield "root", lambda: [server.pid]


SYSTEMS = {
    "apache": apache,
    "postgresql": postgresql,
    "starlette": starlette,
    "starlette-3.13": partial(starlette, version="3.13"),
    "django": django,
    "django-3.13": partial(django, version="3.13"),
    "httpbin": httpbin,
    "httpbin-3.13": partial(httpbin, version="3.13"),
    "datasette": datasette,
    "lighttpd": lighttpd,
    "memcached": memcached,
}


def perflaw(folder: Path, user: str, *words: str) -> str:
    """perflaw as the server's user, who may use this Python wherever it is."""
    may = "+dac_override,+dac_read_search,+sys_ptrace"
    become = [
        "setpriv",
        f"--reuid={user}",
        f"--regid={user}",
        "--clear-groups",
        f"--inh-caps={may}",
        f"--ambient-caps={may}",
    ]
    command = [*(become if user != "root" else []), sys.executable, "-m", "perflaw", *words]
    given = {**os.environ, "PERFLAW_CACHE": str(folder / "cache")}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=given)
    if done.returncode:
        sys.exit(f"perflaw {' '.join(words)}: {done.stderr[-3000:]}")
    print(f"    {done.stderr.strip().splitlines()[-1]}" if done.stderr.strip() else "", file=sys.stderr)
    return done.stdout


def recordings(folder: Path) -> list[str]:
    """The recordings of the latest loop. It began with what those before it had learnt, but its data are its own."""
    experiment = open_experiment("default", folder)
    entries = read_journal(experiment.folder)
    begun = max(place for place, one in enumerate(entries) if one["event"] == "begin")
    made = [one["run"] for one in entries[begun:] if one["event"] == "measurement" and one["run"]]
    return [run for run in made if (experiment.runs_folder / run).exists()]


def mined(name: str, asked: argparse.Namespace, bars: Bars) -> None:
    """Mine one system again and again, and merge what was found."""
    with tempfile.TemporaryDirectory() as made:
        folder, places = Path(made), Path(made) / "mined"
        folder.chmod(0o755)
        places.mkdir()
        with SYSTEMS[name](folder) as (user, workers):
            account = pwd.getpwnam(user)
            os.chown(places, account.pw_uid, account.pw_gid)
            served, files = workers(), []
            for run in range(asked.runs + asked.half):
                pid = served[run % len(served)]
                with quota(pid, HALF) if run >= asked.runs else contextlib.nullcontext():
                    words = ("--attach", str(pid), "--seconds", str(asked.seconds), "--budget", asked.budget)
                    perflaw(places, user, "mine", *words)
                files.append(f"run{run}.yaml")
                own = recordings(places)
                (places / files[-1]).write_text(perflaw(places, user, "mine", "--export", "evidence", *own))
                if asked.keep:
                    asked.keep.mkdir(parents=True, exist_ok=True)
                    shutil.copy(places / files[-1], asked.keep / f"{name}-{files[-1]}")
                    shutil.copy(open_experiment("default", places).folder / FILE, asked.keep / f"{name}-{FILE}")
            restarted = len(set(served) - set(workers()))
        told = json.loads(perflaw(places, user, "mine", "--merge", "--json", *files))
        print(f"== {name}: {len(files)} runs of {asked.seconds:g} s, {asked.half} of them at half of a processor")
        for spec in told["specs"][:12]:
            print(f"  {spec['component']}: {spec['calls']} calls, {len(spec['borders'])} borders,", end=" ")
            print(f"{len(spec['groups'])} groups, {len(spec['edges'])} edges")
        bars.check(f"{name}: consistent, and few edges", float(show(told)), 1, least=True)
        bars.check(f"{name}: workers that ended", restarted, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="*", default=list(SYSTEMS), choices=[*SYSTEMS, []])
    parser.add_argument("--seconds", type=float, default=60.0, help="of each run")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--half", type=int, default=2)
    parser.add_argument("--busy", type=int, default=0, help="processes that only compute beside the server")
    parser.add_argument("--keep", type=Path, help="a folder for the evidence of each run, and the journal")
    parser.add_argument("--budget", default="10%", help="what mining may cost, 10%% unless told")
    asked, bars = parser.parse_args(), Bars()
    if asked.runs + asked.half < 2:
        parser.error("at least two runs are merged: raise --runs or --half")
    with ExitStack() as stack:
        for _ in range(asked.busy):
            started(stack, sys.executable, "-c", BUSY)
        for name in asked.systems or SYSTEMS:
            mined(name, asked, bars)
    bars.leave()


if __name__ == "__main__":
    main()
