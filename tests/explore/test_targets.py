"""Targets that go wrong, and servers: told by reason, nothing left over, files as they were."""

import json
import socket
import time

import pytest

from perflaw.errors import TargetError
from perflaw.explore.studying import Wish
from tests.explore.tiny import KNOB, PYTHON, RATE, explore, left_in, write

PATIENT = "ready_s: 60, timeout_s: 60"
SHORT = "ready_s: 1, timeout_s: 1"
"""For what never ends or is never ready; anything else may take longer than that on a busy machine."""


def one_shot(more: str = "") -> str:
    return f'target: {{run: "{PYTHON} prog.py {{args}}", result: {{json: stdout}}, {PATIENT}{more}}}\n' + KNOB + RATE


def served(ready: str, more: str = "") -> str:
    start, load = f"{PYTHON} server.py {{args}}", f"{PYTHON} prog.py --size={{size}}"
    target = (
        f'target: {{start: "{start}", ready: {ready}, workload: "{load}", result: {{json: stdout}}, {PATIENT}{more}}}\n'
    )
    return target + KNOB + RATE + "trials: 2\npolicy: grid\n"


def assert_nothing_left(folder):
    deadline = time.monotonic() + 10
    while left_in(folder) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not left_in(folder)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import sys; sys.exit('no such table')", "ended with status 1: no such table"),
        ("import os; os.kill(os.getpid(), 11)", "killed by SIGSEGV"),
        ("import time; time.sleep(60)", r"did not end within 1 s"),
        ("print('hello')", "metric rate: the program printed no JSON but 'hello'"),
        ('print(\'{"rate": "many"}\')', "'many' is not a number"),
        ("print('{\"rate\": NaN}')", "not a finite number"),
        ("import time\nwhile True: print('x' * 10000)", "did not end within 1 s"),
        ("print('{}')", "has nothing at 'rate'"),
    ],
)
def test_a_program_that_goes_wrong_gives_no_data_point(tmp_path, program, reason):
    text = one_shot().replace(PATIENT, SHORT) if "within 1 s" in reason else one_shot()
    path = write(tmp_path, text + "trials: 1\npolicy: grid\n")
    (tmp_path / "prog.py").write_text(program)
    (trial,) = explore(path)
    assert not trial.valid and reason in trial.reason and not trial.metrics and not trial.run
    assert_nothing_left(tmp_path)


def test_what_a_program_forks_away_is_found_and_ended(tmp_path):
    away = """
import os, signal, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 3)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pause()
    os._exit(0)
print('{"rate": 1}')
"""
    path = write(tmp_path, one_shot() + "trials: 2\npolicy: grid\n")
    (tmp_path / "prog.py").write_text(away)
    assert all(trial.valid for trial in explore(path))
    assert_nothing_left(tmp_path)


def test_who_fills_the_disk_is_ended_and_what_it_wrote_removed(tmp_path):
    fill = "file = open('giant', 'wb')\nwhile True: file.write(b'x' * 4096); file.flush()\n"
    path = write(tmp_path, one_shot(", disk: 3MB") + "trials: 1\npolicy: grid\n")
    (tmp_path / "prog.py").write_text(fill)
    (trial,) = explore(path)
    assert not trial.valid and "3,000,000 are allowed" in trial.reason
    assert not (tmp_path / "giant").exists() and (tmp_path / "study.yaml").exists()


def test_a_verify_that_does_not_match_makes_the_trial_invalid(tmp_path):
    text = one_shot().replace('{arg: "--size={}"}', '{arg: "--size={}"}, verify: {path: real}')
    path = write(tmp_path, text + "policy: grid\n")
    (tmp_path / "prog.py").write_text(
        "import json, sys\nsize = int(sys.argv[1].split('=')[1])\nprint(json.dumps({'rate': size, 'real': min(size, 4)}))"
    )
    trials = explore(path)
    assert [trial.valid for trial in trials] == [trial.configuration["size"] <= 4 for trial in trials]
    assert all("was requested" in trial.reason for trial in trials if not trial.valid)
    assert all(not trial.metrics and not trial.run for trial in trials if not trial.valid)


SERVER = """
import signal, sys, time
open("ready", "w")
signal.pause()
"""
LISTENS = """
import socket, sys
server = socket.create_server(("127.0.0.1", PORT))
print("listening", flush=True)
while True:
    connection, _ = server.accept()
    connection.close()
"""


def test_a_server_is_started_awaited_loaded_and_stopped_for_each_trial(tmp_path):
    path = write(tmp_path, served("{file: ready}"), server=SERVER)
    trials = explore(path)
    assert [trial.metrics["rate"] for trial in trials] == [100 - abs(one.configuration["size"] - 5) for one in trials]
    assert_nothing_left(tmp_path)


def test_a_server_is_ready_when_its_port_answers_or_it_says_so(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        path = write(tmp_path, served(f"{{tcp: {port}}}"), server=LISTENS.replace("PORT", str(port)))
        first = explore(path)
        assert all(f"something else listens on port {port}" in trial.reason for trial in first)
    for ready in (f"{{tcp: {port}}}", "{output: listening}"):
        (tmp_path / "study.yaml").write_text(served(ready))
        (tmp_path / ".perflaw" / "study" / "study.db").unlink()
        assert all(trial.valid for trial in explore(path))


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        ("import time; time.sleep(60)", "the server did not become ready: no file ready within 1 s"),
        ("import sys; sys.exit('bad option')", "the server ended with status 1 before it was ready: bad option"),
        (SERVER.replace("signal.pause()", "time.sleep(.15); sys.exit('out of memory')"), "out of memory"),
    ],
)
def test_a_server_that_goes_wrong_gives_no_data_point(tmp_path, server, reason):
    text = served("{file: ready}").replace("trials: 2", "trials: 1")
    path = write(tmp_path, text.replace(PATIENT, SHORT) if "within 1 s" in reason else text, server=server)
    (tmp_path / "prog.py").write_text("import time\ntime.sleep(50)\nprint('{\"rate\": 1}')")
    (trial,) = explore(path)
    assert not trial.valid and reason in trial.reason
    assert_nothing_left(tmp_path)


def test_a_server_that_goes_to_the_background_is_one_too(tmp_path):
    server = """
import os, signal
if os.fork():
    os._exit(0)
os.setsid()
open("ready", "w")
signal.pause()
"""
    path = write(tmp_path, served("{file: ready}"), server=server)
    assert all(trial.valid for trial in explore(path))
    assert_nothing_left(tmp_path)


def test_files_are_as_they_were_after_each_trial_and_at_the_end(tmp_path):
    program = """
import json
text = open("data/db").read()
open("data/db", "a").write("x")
print(json.dumps({"rate": len(text)}))
"""
    text = one_shot() + "policy: grid\ntrials: 3\nrestore: {snapshot: [data], on: [trial, exit, crash]}\n"
    path = write(tmp_path, text)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "db").write_text("12345")
    (tmp_path / "prog.py").write_text(program)
    assert [trial.metrics["rate"] for trial in explore(path)] == [5, 5, 5]
    assert (tmp_path / "data" / "db").read_text() == "12345"
    assert [child.name for child in (tmp_path / "data").iterdir()] == ["db"]
    (tmp_path / "other").mkdir()
    path = write(tmp_path / "other", text.replace("trial, ", ""))
    (tmp_path / "other" / "data").mkdir()
    (tmp_path / "other" / "data" / "db").write_text("12345")
    (tmp_path / "other" / "prog.py").write_text(program)
    assert [trial.metrics["rate"] for trial in explore(path)] == [5, 6, 7]
    assert (tmp_path / "other" / "data" / "db").read_text() == "12345"


def test_a_knob_in_a_file_is_put_back(tmp_path):
    text = one_shot().replace('{arg: "--size={}"}', "{file: app.conf, key: size}, verify: {path: size}")
    path = write(tmp_path, text + "policy: grid\ntrials: 2\n")
    (tmp_path / "app.conf").write_text("# ours\nsize = 3\n")
    (tmp_path / "prog.py").write_text(
        "import json\nsize = int(open('app.conf').read().split('=')[1])\nprint(json.dumps({'rate': size, 'size': size}))"
    )
    trials = explore(path)
    assert all(trial.valid for trial in trials), trials
    assert [trial.metrics["rate"] for trial in trials] == [trial.configuration["size"] for trial in trials]
    assert (tmp_path / "app.conf").read_text() == "# ours\nsize = 3\n"


def test_load_beside_the_target_is_there_while_it_runs(tmp_path):
    count = """
import json, os, pathlib
found = 0
for path in pathlib.Path("/proc").iterdir():
    try:
        found += path.name.isdigit() and b"load.py" in (path / "cmdline").read_bytes() and int(
            (path / "stat").read_text().rsplit(")", 1)[1].split()[1]) == os.getppid()
    except OSError: pass
print(json.dumps({"rate": found}))
"""
    text = one_shot() + "policy: grid\ntrials: 1\nload: {cpu: 1.5, memory: 1MB, disk: 1MB/s}\n"
    path = write(tmp_path, text)
    (tmp_path / "prog.py").write_text(count)
    (trial,) = explore(path)
    assert trial.metrics["rate"] == 4  # two of CPU
    assert_nothing_left(tmp_path)


def test_readings_stream_and_the_warm_up_is_cut_off(tmp_path):
    program = """
import json, sys
for i in range(60):
    print(json.dumps({"rate": min(i, 10) + (i % 3) / 10, "other": 1}))
"""
    text = one_shot().replace("json: stdout", "lines: stdout")
    path = write(tmp_path, text + "policy: grid\ntrials: 1\n")
    (tmp_path / "prog.py").write_text(program)
    (trial,) = explore(path)
    assert trial.metrics["rate"] == pytest.approx(10.1, abs=0.05) and 40 <= trial.n <= 55
    assert 0 < trial.scatter["rate"] < 0.1


def test_regular_expressions_wall_cpu_and_memory(tmp_path):
    metrics = "metrics: {took: {regex: 'took ([0-9.]+)', goal: min}, wall: wall, cpu: cpu, memory: memory}\n"
    path = write(tmp_path, one_shot().replace(RATE, metrics) + "policy: grid\ntrials: 1\n")
    (tmp_path / "prog.py").write_text("room = bytearray(30 << 20)\nsum(range(10**6))\nprint('took 4.25 s')")
    (trial,) = explore(path)
    assert trial.metrics["took"] == 4.25 and trial.metrics["memory"] > 30 << 20
    assert 0 < trial.metrics["cpu"] <= trial.metrics["wall"] * 1.5
    assert json.dumps(trial.metrics)


def test_the_study_is_prepared_once_before_the_snapshot(tmp_path):
    text = one_shot(', prepare: "echo made >> db"') + "policy: grid\nrestore: {snapshot: [db]}\n"
    path = write(tmp_path, text)
    (tmp_path / "prog.py").write_text("open('db', 'a').write('x')\nprint('{\"rate\": 1}')")
    assert all(trial.valid for trial in explore(path, Wish(trials=1)) + explore(path, Wish(trials=2)))
    assert (tmp_path / "db").read_text() == "made\n"
    path = write(tmp_path, text.replace("db]}", "db], on: [crash]}"))
    (tmp_path / "prog.py").write_text("open('db', 'a').write('x')\nprint('{\"rate\": 1}')")
    explore(path, Wish(trials=2), name="other")
    assert (tmp_path / "db").read_text() == "made\nmade\nxx"


def test_a_study_whose_target_cannot_be_prepared_is_an_error(tmp_path):
    path = write(tmp_path, one_shot(', prepare: "echo no such table >&2; false"') + "policy: grid\n")
    with pytest.raises(
        TargetError, match="cannot be prepared: prepare: the command ended with status 1: no such table"
    ):
        explore(path)
    path = write(tmp_path, one_shot() + "policy: grid\ntrials: 1\n")  # no trial was made: it may change
    assert len(explore(path)) == 1


def test_giant_outputs_are_bounded(tmp_path):
    path = write(tmp_path, one_shot() + "policy: grid\ntrials: 1\n")
    (tmp_path / "prog.py").write_text(
        "import sys\nfor _ in range(20): sys.stderr.write('ü\\0' * 500_000)\nprint('x' * 9_000_000)\nprint('{\"rate\": 1}')"
    )
    (trial,) = explore(path)
    assert not trial.valid or trial.metrics == {
        "rate": 1
    }  # the end of what is printed may be cut off, and is said then
    assert_nothing_left(tmp_path)
