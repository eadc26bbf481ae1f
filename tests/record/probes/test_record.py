"""``record --collect probes`` of programs whose counts are known, and what learners make of them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perflaw.record.build import sources_folder
from perflaw.record.probes.client import start_collector
from perflaw.record.probes.rings import RecordAccount
from perflaw.record.probes.tracer import Tracer
from perflaw.store.experiment import open_experiment
from perflaw.store.tables import has_table, read_table
from tests.conftest import first

ROOT = Path(__file__).parents[3]
PROGRAMS = ROOT / "tests" / "programs"
LAW = """
import sys
from pathlib import Path
import numpy as np
from perflaw.record.probes import layout
from perflaw.record.probes.areas import VARIABLE
from tests.record.probes.fake import FakeArea
import os
area = FakeArea(os.environ[VARIABLE], records=1 << 13)
for number, name, kind, fields in (
    (1, "query", layout.LAT, ""), (2, "work", layout.SNAPSHOT, "rows,colour"), (3, "flat", layout.LAT, "")
):
    area.register(number, name, kind, fields)
rng, now = np.random.default_rng(4), 1000
for _ in range(400):
    rows, colour = int(rng.integers(10, 5000)), int(rng.integers(0, 50))
    took = 400 + 3 * rows + int(rng.normal(0, 8))
    area.shot(2, now + 1, rows, colour)
    area.lat(1, now, now + took)
    now += took + 100
    flat = 500 + int(rng.normal(0, 8))
    area.shot(2, now + 1, rows, colour)
    area.lat(3, now, now + flat)
    now += flat + 100
"""


@pytest.fixture(scope="session")
def probed(tmp_path_factory):
    program = tmp_path_factory.mktemp("probed") / "probed"
    flags = ["-O2", "-I", sources_folder() / "include", "-pthread"]
    subprocess.run(["gcc", *flags, PROGRAMS / "probed.c", "-o", program], check=True, timeout=60)
    return program


def accounts(recording):
    return [dict(zip(("process", "host", "language", "produced", "received", "lost", "kept"), row[:7], strict=True))
            for row in read_table(recording.folder, "probe_processes")]  # fmt: skip


def made(threads, calls):
    """Records of one process of probed.c."""
    return threads * (2 * calls + 1)


def test_a_program_without_hooks(perflaw, probed, tmp_path):
    told = perflaw("record", "--collect", "probes", "--", probed, 1, 1, 1000).stderr
    dumped = perflaw("dump", "1").stdout
    assert "probes: " in dumped and "probe_processes: " in dumped and "probe_records: " not in dumped
    assert perflaw("dump", "1", "--table", "probe_records").stdout.count("\n") == 2003
    assert "2 functions, 1,001 calls, 2,001 records of 3 probes" in told
    assert "nothing lost" in told
    (recording,) = open_experiment("default", tmp_path).recordings()
    assert recording.run.tracer.startswith("probes: ") and recording.run.complete
    components = {row[1]: row for row in recording.tables()["components"]}
    assert {name: (row[4], row[7]) for name, row in components.items()} == {
        "query": ("probe", 1000),
        "thread": ("probe", 1),
    }
    rows = [row[1:] for row in read_table(recording.folder, "probes")]
    assert rows == [
        (7, "query", "LAT", "", "ns", 1, 1000, 1000, 0),
        (8, "work", "SNAPSHOT", "rows", "v0,v1,v2,v3,v4,v5", 1, 1000, 1000, 0),
        (9, "thread", "LAT", "", "ns", 1, 1, 1, 0),
    ]
    assert accounts(recording)[0]["kept"] == 2001


def test_the_table_of_records_and_nothing_in_shared_memory(perflaw, probed, tmp_path):
    perflaw("record", "--collect", "probes", "--", probed, 1, 2, 500)
    litter = Path(f"/dev/shm/perflaw-{os.getuid()}").glob("record.*")
    assert all(Path("/proc", path.name.split(".")[1]).exists() for path in litter)
    (recording,) = open_experiment("default", tmp_path).recordings()
    rows = list(read_table(recording.folder, "probe_records"))
    assert len(rows) == 2002
    shots = [row for row in rows if row[3] == 8]
    assert [row[5] for row in shots] == [*range(500), *range(500)]
    assert all(row[6:] == (None,) * 5 for row in shots)
    for thread in {row[1] for row in rows}:
        times = [row[4] for row in rows if row[1] == thread]
        assert times == sorted(times)
    size = (recording.folder / "probe_records.parquet").stat().st_size
    assert size < 6.8 * len(rows) + 2000  # the file's own description is some 1.5 kB


def test_snapshots_are_features_and_spans_a_tree(perflaw, probed, tmp_path):
    perflaw("record", "--collect", "probes", "--", probed, 1, 1, 300)
    (recording,) = open_experiment("default", tmp_path).recordings()
    tables = recording.tables()
    names = {row[0]: row[1] for row in tables["components"]}
    assert [(names.get(row[2]), row[1]) for row in tables["calltree"]] == [(None, -1), ("thread", 0), ("query", 1)]
    values = [row[3] for row in tables["features"] if row[2] == "work.v0"]
    assert sorted(values) == list(range(300))


def test_only_the_probes_that_are_named(perflaw, probed, tmp_path):
    told = perflaw("record", "--probe", "work", "--probe", "9", "--probe", "nosuch", "--", probed, 1, 1, 100).stderr
    assert "101 records of 2 probes" in told
    assert "probes: no probe nosuch" in told


@pytest.mark.parametrize(
    ("processes", "threads", "calls", "how"),
    first(1, [(1, 6, 4000, "together"), (3, 4, 1500, "after"), (2, 40, 200, "after")]),
)
def test_received_and_lost_are_what_was_produced(perflaw, probed, tmp_path, processes, threads, calls, how):
    """Rings of 64 records: nearly all are overwritten before the collector comes, and every one is counted."""
    env = {**os.environ, "PERFLAW_PROBES_RECORDS": "64"}
    told = perflaw("record", "--collect", "probes", "--", probed, processes, threads, calls, how, env=env).stderr
    recordings = open_experiment("default", tmp_path).recordings()
    found = [account for recording in recordings for account in accounts(recording)]
    assert [account["produced"] for account in found] == [made(threads, calls)] * processes
    assert all(account["received"] + account["lost"] == account["produced"] for account in found)
    lost = sum(account["lost"] for account in found)
    assert sum(recording.run.lost.probe_records for recording in recordings) == lost
    assert (f"{lost} records of probes lost" in told) == (lost > 0)
    kept = list(read_table(recordings[0].folder, "probe_records"))
    assert len(kept) == sum(account["received"] for account in found)


def test_more_threads_than_rings(perflaw, probed, tmp_path):
    env = {**os.environ, "PERFLAW_PROBES_RINGS": "2"}
    perflaw("record", "--collect", "probes", "--", probed, 1, 8, 500, "together", env=env)
    (account,) = accounts(open_experiment("default", tmp_path).recordings()[0])
    assert account["produced"] == made(8, 500) == account["received"] + account["lost"]


def collected(folder, *bounds, during):
    """What a slow collector makes of what runs meanwhile."""
    collecting, tracer = start_collector(folder, *bounds), Tracer()
    try:
        during(lambda: [tracer.take(batch) for batch in collecting.poll(0.01)])
        for batch in collecting.finish():
            tracer.take(batch)
    finally:
        collecting.close()
    return tracer.tally


def test_a_slow_collector_counts_what_it_missed(probed, tmp_path):
    """16 records a ring and turn, 20 turns a second at most, for a program that makes 100,000."""
    folder = tmp_path / "areas"
    env = {**os.environ, "PERFLAW_PROBES": str(folder), "PERFLAW_PROBES_ENABLE": "*", "PERFLAW_PROBES_RECORDS": "128"}

    def run(poll):
        program = subprocess.Popen([probed, "1", "5", "10000", "together"], env=env)
        while program.poll() is None:
            poll()

    tally = collected(folder, "16", "0.05", during=run)
    assert tally.produced == made(5, 10_000) == tally.received + tally.lost
    assert tally.received >= 127  # what stood in a ring at the end, at least


def test_what_a_killed_program_wrote_is_there(probed, tmp_path):
    folder = tmp_path / "areas"
    env = {**os.environ, "PERFLAW_PROBES": str(folder), "PERFLAW_PROBES_ENABLE": "*"}

    def run(poll):
        command = [probed, "1", "3", "600", "together", "wait"]
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as program:
            program.stdout.readline()
            program.send_signal(signal.SIGKILL)
            program.wait(10)

    assert collected(folder, during=run) == RecordAccount(made(3, 600), made(3, 600), 0)
    assert not list(folder.iterdir())


def test_record_of_a_killed_program(perflaw, probed, tmp_path):
    until_ready = "while ! [ -s ready ]; do sleep 0.05; done"  # it says a word when all is written
    script = f"{probed} 1 2 300 after wait > ready & {until_ready}; kill -9 $!; wait $!"
    perflaw("record", "--collect", "probes", "--", "sh", "-c", script, status=137)
    recordings = open_experiment("default", tmp_path).recordings()
    found = [
        account for recording in recordings if has_table(recording.folder, "probes") for account in accounts(recording)
    ]
    assert [account["received"] for account in found] == [made(2, 300)]


def test_a_killed_collector_costs_the_probes_alone(perflaw, probed, tmp_path, monkeypatch):
    from perflaw.record.probes.session import ProbeSession

    (tmp_path / "spool").mkdir()
    with ProbeSession(tmp_path, 1) as session:
        os.kill(session._collecting.process.pid, signal.SIGKILL)
        session._collecting.process.wait(10)
        deadline = time.monotonic() + 10
        while session._collecting and time.monotonic() < deadline:
            session.step()
        told = session.finish()
    assert "the collector of probes" in told["probes"]


def test_annotate_learns_the_law_of_a_span_over_its_snapshots_and_none_of_another(perflaw, tmp_path):
    (tmp_path / "law.py").write_text(LAW)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    perflaw("record", "--tracer", "nothing", "--collect", "probes", "--", "law.py", env=env)
    assert "work.rows" in perflaw("dump", "1", "--table", "features").stdout
    document = json.loads(perflaw("annotate", "--json").stdout)
    laws = {one["component"]: one for one in document["annotations"]}
    (scope,) = laws["query"]["scopes"]
    assert (scope["law"]["family"], scope["law"]["features"]) == ("linear", ["work.rows"])
    assert scope["law"]["slope"]["work.rows"] == pytest.approx(1.0, abs=0.05)
    predicted = scope["law"]["predictions"][0]
    assert predicted["mean"] == pytest.approx(400 + 3 * predicted["features"]["work.rows"], rel=0.02)
    assert all(one["law"]["family"] == "constant" for one in laws["flat"]["scopes"])


@pytest.mark.slow
def test_calls_and_probes_of_a_python_program_stand_beside_each_other(perflaw, tmp_path):
    twice = LAW.replace("kind, fields)", "kind, fields, conflict=number == 1)")
    (tmp_path / "law.py").write_text(
        twice + "\ndef work(n):\n    return sum(range(n))\nfor n in range(40):\n    work(n)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    told = perflaw("record", "--collect", "probes", "--", "law.py", env=env).stderr
    assert "1,600 records of 3 probes" in told
    assert "probe id 1 is used twice: by query and another" in told
    (recording,) = open_experiment("default", tmp_path).recordings()
    components = {row[1]: (row[4], row[7]) for row in recording.tables()["components"]}
    assert components["query"] == ("probe", 400)
    assert components["law.work" if "law.work" in components else "__main__.work"] == ("python", 40)
    assert "query" in perflaw("variance", "query").stdout


def test_a_program_without_probes(perflaw, tmp_path):
    (tmp_path / "app.py").write_text("def f(): pass\nf()\n")
    told = perflaw("record", "--collect", "probes", "--", "app.py").stderr
    assert "no process with probes ran" in told
    assert not has_table(open_experiment("default", tmp_path).recordings()[0].folder, "probes")


def test_the_collector_ends_with_its_recorder(tmp_path):
    code = "import sys, time; from pathlib import Path; from perflaw.record.probes.client import start_collector;"
    code += "one = start_collector(Path(sys.argv[1])); print(one.process.pid, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE) as recorder:
        collector = int(recorder.stdout.readline())
        recorder.kill()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{collector}").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{collector}/stat").read_text().split(") ")[1][0] == "Z":
            break  # nobody collects the status of orphans here
        time.sleep(0.02)
    else:
        assert not Path(f"/proc/{collector}").exists()
