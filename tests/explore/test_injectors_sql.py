"""SQLite's traps, and SQL through a client."""

import sqlite3
import sys
import textwrap

import pytest

from perflaw.errors import TargetError
from perflaw.explore.injectors import registry
from perflaw.explore.injectors.context import Context
from tests.explore.injecting import knob, tried


@pytest.fixture
def database(tmp_path):
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute("create table t(x)")
    connection.executemany("insert into t values (?)", [(n,) for n in range(100)])
    connection.commit()
    connection.close()
    return "a.db"


PAGE = {"apply": [{"pragma": "page_size"}, {"sql": "VACUUM"}], "verify": {"pragma": "page_size"}}


def test_a_page_size_takes_effect_with_vacuum(tmp_path, database):
    assert tried(tmp_path, knob(**PAGE), 16384, sql=database)[0] == ""


@pytest.mark.parametrize("size", [2 * 2**20, 2**30, 1000])
def test_the_page_size_trap_is_caught(tmp_path, database, size):
    why, context = tried(tmp_path, knob(**PAGE), size, sql=database)
    assert (
        f"x did not take effect: {size} was requested, the target has 4096" in why
        and "64 KiB" in why
        and not context.verified
    )


def test_a_page_size_without_vacuum_is_caught(tmp_path, database):
    assert "VACUUM" in tried(tmp_path, knob(apply={"pragma": "page_size"}), 8192, sql=database)[0]


def test_a_pragma_of_a_connection_is_caught(tmp_path, database):
    one = knob(apply={"pragma": "cache_size", "expr": "-x//1024"}, verify={"pragma": "cache_size"})
    why = tried(tmp_path, one, 2**23, sql=database)[0]
    assert "-8192 was requested, the target has -2000" in why and "each connection" in why


def test_there_must_be_a_database(tmp_path):
    with pytest.raises(TargetError, match="there is no such file"):
        tried(tmp_path, knob(**PAGE), 4096, sql="none.db")
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(TargetError, match="takes no SQL"):
        tried(tmp_path, knob(**PAGE), 4096)
    (tmp_path / "no.db").write_text("not a database, only text" * 100)
    with pytest.raises(TargetError, match="not a database"):
        tried(tmp_path, knob(**PAGE), 4096, sql="no.db")


def test_pragmas_are_words():
    for name, setting in [("x; drop table t", 1), ("page_size", "1; drop table t")]:
        with pytest.raises(TargetError):
            registry.find({"pragma": name}, ".").apply({"pragma": name}, setting, Context(".", sql="a.db"))


def test_sql_through_a_client(tmp_path):
    (tmp_path / "client.py").write_text(
        textwrap.dedent("""
        import pathlib, re, sys
        kept = pathlib.Path("kept")
        found = re.fullmatch(r"SET (\\w+) = (.*)", sys.argv[2])
        if found: kept.write_text(found[2])
        elif sys.argv[2] == "SHOW work_mem": print(kept.read_text())
        else: sys.exit("syntax error: " + sys.argv[2])
    """)
    )
    sql = f"{sys.executable} client.py -c {{}}"
    one = knob(apply={"sql": "SET work_mem = {}MB", "expr": "x//1MiB"}, verify={"sql": "SHOW work_mem"})
    assert tried(tmp_path, one, 64 * 2**20, sql=sql)[0] == ""  # the server says 64MB and means MiB
    with pytest.raises(TargetError, match="status 1: syntax error: SOT"):
        tried(tmp_path, knob(apply={"sql": "SOT x = {}"}), 1, sql=sql)
