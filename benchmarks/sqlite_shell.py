"""SQLite's shell of Debian, built with -finstrument-functions, and a script of a small bank for it."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from debian_source import fetch
from quota import quota

FLAGS = ["-O1", "-g", "-finstrument-functions"]
WITHOUT = ["--disable-tcl", "--disable-readline", "--disable-load-extension", "--disable-threadsafe"]
ACCOUNTS, STATEMENTS = 3000, 6000
TABLES = f"""PRAGMA cache_size = 60;
PRAGMA synchronous = OFF;
CREATE TABLE account(id INTEGER PRIMARY KEY, name TEXT, balance INTEGER, note TEXT);
CREATE TABLE entry(id INTEGER PRIMARY KEY, account INTEGER, amount INTEGER, at INTEGER);
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {ACCOUNTS})
INSERT INTO account SELECT x, 'name' || x, 100, hex(randomblob(60)) FROM n;
CREATE INDEX account_name ON account(name);
CREATE INDEX entry_account ON entry(account);"""


def build(folder: Path) -> Path:
    """The program; a minute on two cores. Its source needs Debian's tcl to be put together."""
    source = fetch("sqlite3", folder)
    program = folder / "sqlite3-hooks"
    link = ["gcc", *FLAGS, "-I.", "-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION", "-o", str(program)]
    configure = ["./configure", *WITHOUT, f"CFLAGS={' '.join(FLAGS)}"]
    link += ["shell.c", ".libs/libsqlite3.a", "-lm", "-lz"]
    for command in (configure, ["make", "sqlite3"], link):
        done = subprocess.run(command, cwd=source, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    return program


def script(seed: int) -> str:
    """Statements of a bank: bookings, transfers of twenty accounts at once, look-ups, sums; drawn at random."""
    return "\n".join([TABLES, *_statements(random.Random(seed))])


def _statements(draw: random.Random) -> Iterator[str]:
    for at in range(STATEMENTS):
        account, kind = draw.randrange(1, ACCOUNTS + 1), draw.random()
        if kind < 0.3:
            yield f"INSERT INTO entry(account, amount, at) VALUES({account}, {draw.randrange(100)}, {at});"
        elif kind < 0.5:
            yield f"UPDATE account SET balance = balance + 1 WHERE id = {account};"
        elif kind < 0.8:
            yield f"SELECT balance FROM account WHERE name = 'name{account}';"
        elif kind < 0.9:
            yield f"SELECT sum(amount) FROM entry WHERE account = {account};"
        elif kind < 0.98:
            some = [draw.randrange(1, ACCOUNTS + 1) for _ in range(20)]
            updates = (f"UPDATE account SET balance = balance - 1, note = 'x{at}' WHERE id = {one};" for one in some)
            yield "\n".join(["BEGIN;", *updates, "COMMIT;"])
        else:
            yield "SELECT count(*), sum(balance) FROM account WHERE note LIKE '%a%';"


def record(
    program: Path,
    folder: Path,
    experiment: str,
    seed: int,
    share: float | None = None,
    select: Sequence[str] = (),
) -> None:
    """One run, with call paths; ``share`` of one processor for the program and its recorder, None for all there are."""
    (folder / "script.sql").write_text(script(seed))
    (folder / "bank.db").unlink(missing_ok=True)
    perflaw = [sys.executable, "-m", "perflaw", "record", "--collect", "paths", "-e", experiment]
    chosen = [word for name in select for word in ("--select", name)]
    with (folder / "script.sql").open() as statements:
        command = [*perflaw, *chosen, "--", str(program), "bank.db"]
        recording = subprocess.Popen(command, cwd=folder, stdin=statements, stdout=subprocess.DEVNULL)
    if share:
        with quota(recording.pid, share):
            status = recording.wait()
    else:
        status = recording.wait()
    if status:
        sys.exit("the recording failed")
