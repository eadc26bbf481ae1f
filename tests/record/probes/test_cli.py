"""``perflaw probes``: programs that run are listed, switched and watched, here and through a collector elsewhere."""

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest

from perflaw.cli.main import main
from perflaw.errors import TargetError
from perflaw.record.build import sources_folder
from perflaw.record.probes.client import reach, remotes
from perflaw.record.probes.control import describe
from perflaw.store.experiment import open_experiment
from perflaw.store.tables import has_table, read_table
from perflaw.wire.channel import WireError
from tests.record.wire.conftest import TOKEN, Secrets, make_certificate

PROGRAM = """
#include <perflaw.h>
#include <unistd.h>
PERFLAW_PROBE(1, "db.query", "")
PERFLAW_PROBE(2, "db.rows", "rows")
PERFLAW_PROBE(3, "net.send", "")
int main(void) {
    for (int turn = 0; turn < 60000; turn++) { /* a minute */
        LAT_PROBE_BEGIN(1, 1);
        SNAPSHOT_PROBE(2, 1, (uint64_t)turn);
        usleep(1000);
        LAT_PROBE_END(1);
        CNT_PROBE_BEGIN(3, 1);
        CNT_PROBE_END(3);
    }
}
"""


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    (folder / "live.c").write_text(PROGRAM.replace('")\n', '");\n'))
    flags = ["-O1", "-I", sources_folder() / "include", "-pthread"]
    subprocess.run(["gcc", *flags, folder / "live.c", "-o", folder / "live"], check=True, timeout=60)
    return folder / "live"


@contextmanager
def started(program, folder):
    """The program with its area in ``folder``, until the end."""
    with subprocess.Popen([program], env={**os.environ, "PERFLAW_PROBES": str(folder)}) as process:
        try:
            deadline = time.monotonic() + 10
            while not (folder.is_dir() and any(folder.glob("[0-9]*"))):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            yield process
        finally:
            process.kill()


@pytest.fixture
def live(program, tmp_path):
    with started(program, tmp_path / "areas") as process:
        yield process


@dataclass(frozen=True)
class Said:
    """What a verb printed."""

    stdout: str
    stderr: str


@pytest.fixture
def probes(capsys, monkeypatch, tmp_path):
    """The verb, for programs of the test's folder; in this process, which is quicker."""
    monkeypatch.setenv("PERFLAW_PROBES", str(tmp_path / "areas"))

    def run(*words, status=0):
        with pytest.raises(SystemExit) as ended:
            main(["probes", *map(str, words)])
        said = Said(*capsys.readouterr())
        assert (ended.value.code or 0) == status, said
        return said

    return run


def states(probes, *words):
    (process,) = json.loads(probes("list", "--json", *words).stdout)["processes"]
    return {probe["name"]: (probe["enabled"], probe["subsample"]) for probe in process["probes"]}


def test_list_and_switch(probes, live):
    told = probes("list").stdout
    assert str(live.pid) in told and "SNAPSHOT" in told and told.count("off") == 3
    assert states(probes) == dict.fromkeys(("db.query", "db.rows", "net.send"), (False, 0))
    assert f"enabled 2 probes of {live.pid}: db.query, db.rows" in probes("enable", "db.*", "--pid", live.pid).stdout
    probes("subsample", 7, "1")
    assert states(probes) == {"db.query": (True, 7), "db.rows": (True, 0), "net.send": (False, 0)}
    probes("disable", "db.rows")
    assert states(probes)["db.rows"] == (False, 0)
    assert "enabled 3 probes" in probes("enable").stdout
    assert all(on for on, _ in states(probes).values())


def test_watch(probes, live):
    probes("enable", "db.query", "net.send")
    lines = probes("watch", "--seconds", 0.6, "--interval", 0.2, "--json").stdout.splitlines()
    last = json.loads(lines[-1])
    assert last["tally"]["received"] + last["tally"]["lost"] <= last["tally"]["produced"]
    assert last["tally"]["received"] > 0
    rows = {row["name"]: row for line in lines for row in json.loads(line)["probes"]}
    assert rows.keys() == {"db.query", "net.send"}
    assert rows["db.query"]["mean"] >= 1_000_000 and rows["db.query"]["value"] == "ns"
    told = probes("watch", "db.*", "--seconds", 0.3).stdout
    assert "db.query" in told and "net.send" not in told and "records received" in told


def test_watch_says_that_nothing_is_enabled(probes, live):
    assert "no probe is enabled" in probes("watch", "--seconds", 0.1).stderr


def test_what_is_not_there(probes, live):
    assert (
        "no probe nosuch: there are db.query, db.rows, net.send" in probes("enable", "db.*", "nosuch", status=2).stderr
    )
    assert not any(on for on, _ in states(probes).values())  # nothing was switched
    assert "process 1 has no probes" in probes("list", "--pid", 1, status=2).stderr
    live.kill()
    live.wait()
    for words in (("list",), ("enable",), ("watch",), ()):
        assert "no process with probes" in probes(*words, status=2).stderr


def test_words_that_are_wrong(probes):
    for words in (
        ("subsample", "-1"),
        ("subsample", "many"),
        ("watch", "--interval", "0"),
        ("nosuch",),
        ("list", "--pid", "x"),
    ):
        probes(*words, status=2)
    assert "--token-file" in probes("list", "--remote", "127.0.0.1:1", status=2).stderr


@contextmanager
def collector(secrets, folder):
    """Address of a collector of the areas in ``folder``, as a person starts it."""
    words = [
        "--listen",
        "127.0.0.1:0",
        "--token-file",
        secrets.token,
        "--cert",
        secrets.certificate,
        "--key",
        secrets.key,
    ]
    command = [sys.executable, "-m", "perflaw", "collector", *map(str, words)]
    env = {**os.environ, "PERFLAW_PROBES": str(folder)}
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = process.stderr.readline()
            assert "listens at" in said, said
            yield said.split()[-1]
        finally:
            process.terminate()


def pointing(secrets, *addresses):
    words = [word for address in addresses for word in ("--remote", address)]
    return [*words, "--token-file", secrets.token, "--ca", secrets.certificate]


@pytest.fixture(scope="session")
def secrets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("secrets")
    token = folder / "token"
    token.touch(0o600)
    token.write_text(TOKEN)
    return Secrets(*make_certificate(folder), token)


def test_control_of_another_host(probes, program, secrets, tmp_path):
    with started(program, tmp_path / "there") as process, collector(secrets, tmp_path / "there") as address:
        there = pointing(secrets, address)
        assert f"{process.pid} on {address}" in probes(*there, "list").stdout
        assert f"on {address}: db.query" in probes("enable", "db.query", *there).stdout
        told = probes("watch", "--seconds", 0.5, "--json", *there).stdout.splitlines()
        assert any("db.query" in line for line in told)
        assert "no probe nosuch" in probes("enable", "nosuch", *there, status=2).stderr
        wrong = tmp_path / "wrong"
        wrong.touch(0o600)
        wrong.write_text("f" * 32)
        words = ["--remote", address, "--token-file", wrong, "--ca", secrets.certificate]
        refused = probes("list", *words, status=2)
        assert "wrong token" in refused.stderr
    assert "cannot be reached" in probes(*there, "list", status=2).stderr


@pytest.mark.slow
def test_records_of_several_hosts_are_one_run(perflaw, program, secrets, tmp_path):
    with ExitStack() as stack:
        folders = [tmp_path / "one", tmp_path / "two"]
        processes = [stack.enter_context(started(program, folder)) for folder in folders]
        addresses = [stack.enter_context(collector(secrets, folder)) for folder in folders]
        there = pointing(secrets, *addresses)
        told = perflaw("record", "--probe", "db.query", "--probe", "db.rows", *there, "--", "sleep", "0.7").stderr
        assert "and 2 child processes" in told and "of 2 probes" in told
        on = [probe for folder in folders for one in describe([folder]) for probe in one.probes if probe.enabled]
        assert not on  # what it enabled is off again
    recordings = open_experiment("default", tmp_path).recordings()
    program_run, *others = recordings
    assert "to within" in program_run.run.words["probes of other hosts"]
    rows = [
        row for one in others if has_table(one.folder, "probes") for row in read_table(one.folder, "probe_processes")
    ]
    assert {(row[0], row[1]) for row in rows} == {
        (one.pid, address) for one, address in zip(processes, addresses, strict=True)
    }
    assert all(row[3] == row[4] + row[5] and row[4] > 0 for row in rows)
    times = {row[0]: [] for row in rows}
    for row in read_table(program_run.folder, "probe_records"):
        times[row[0]].append(row[4])
    first, second = times.values()
    assert abs(first[0] - second[0]) < 60_000_000_000  # both on this machine's clock, which is elsewhere on others
    assert sum(map(len, times.values())) == sum(row[4] for row in rows)


def test_a_collector_on_another_host_that_goes_costs_its_records_alone(perflaw, program, secrets, tmp_path):
    from perflaw.record.probes.session import ProbeSession

    (tmp_path / "spool").mkdir()
    with started(program, tmp_path / "there"):
        with collector(secrets, tmp_path / "there") as address:
            found = remotes([address], str(secrets.token), str(secrets.certificate))
            session = ProbeSession(tmp_path, 1, ("db.query",), found)
            with session:
                deadline = time.monotonic() + 10
                while not session.step():
                    assert time.monotonic() < deadline
        with session:
            pass
    (again,) = found
    with pytest.raises(WireError):
        reach(again)


def test_a_recording_without_its_remote_does_not_begin(perflaw, secrets, tmp_path):
    there = pointing(secrets, "127.0.0.1:9")
    told = perflaw("record", "--collect", "probes", *there, "--", "true", status=2).stderr
    assert "127.0.0.1:9: cannot be reached" in told
    assert not list((tmp_path / ".perflaw" / "default" / "runs").iterdir())


def test_a_session_without_its_remote_does_not_begin(program, secrets, tmp_path):
    from perflaw.record.probes.session import ProbeSession

    (tmp_path / "spool").mkdir()
    (tmp_path / "there").mkdir()
    with collector(secrets, tmp_path / "there") as address:
        found = remotes([address], str(secrets.token), str(secrets.certificate))
        with pytest.raises(TargetError, match="no process with probes"):
            ProbeSession(tmp_path, 1, ("*",), found)


def test_a_peer_with_the_token_that_speaks_nonsense_is_answered_or_ended(secrets, program, tmp_path):
    with started(program, tmp_path / "there"), collector(secrets, tmp_path / "there") as address:
        (remote,) = remotes([address], str(secrets.token), str(secrets.certificate))
        collecting = reach(remote)
        for kind, document in (
            ("nosuch", {}),
            ("switch", {"pids": "x"}),
            ("switch", {"names": 7}),
            ("list", {"pids": [[]]}),
        ):
            with pytest.raises(TargetError, match="not understood"):
                collecting.ask(kind, document)
        assert collecting.ask("list")["processes"]
        collecting.close()
        again = reach(remote)
        assert again.ask("clock")["monotonic_ns"] > 0
        again.close()
