"""``perflaw explore`` and ``perflaw agent`` as a person runs them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perflaw.report.explore.text import explore_text
from tests.conftest import started_perflaw
from tests.explore.tiny import ONE_SHOT, left_in, write

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow
def test_a_study_from_end_to_end(perflaw, tmp_path):
    write(tmp_path, ONE_SHOT + "policy: random\ntrials: 6\n")
    done = perflaw("explore", "study.yaml", "--seed", 1, "-e", "one", "--json", "--page", "page.html")
    document = json.loads(done.stdout)
    assert document["schema"] == "perflaw.explore/1" and document["seed"] == 1 and not document["unfinished"]
    assert len(document["trials"]) == 6 and all(trial["valid"] for trial in document["trials"])
    best = max(document["trials"], key=lambda trial: trial["metrics"]["rate"])
    assert document["best"]["configuration"] == best["configuration"]
    assert not done.stderr and (tmp_path / "page.html").read_text().startswith("<!")
    told = perflaw("explore", "study.yaml", "--seed", 1, "-e", "one").stdout
    assert told == explore_text(json.loads(done.stdout), name="study.yaml")
    runs = json.loads(perflaw("runs", "-e", "one", "--json").stdout)["runs"]
    assert [run["features"] for run in runs] == [trial["configuration"] for trial in document["trials"]]
    learnt = json.loads(perflaw("annotate", "-e", "one", "--metric", "rate", "--json").stdout)
    assert [one["component"] for one in learnt["annotations"]] == ["study"]
    perflaw("report", "-e", "one")
    report = json.loads((tmp_path / "report.html").read_text().split('id="data">')[1].split("</script>")[0])
    assert len(report["exploration"]["trials"]) == 6
    again = perflaw("explore", "study.yaml", "-e", "one", "-o", "laws.law", "--verbose")  # it is over: nothing is run
    # The time left of the trials is not that of what comes after them.
    assert "exploring " in again.stderr and "learning what the trials show: " in again.stderr
    assert "rate" in again.stdout and (tmp_path / "laws.law").exists()


def test_a_dry_run_tells_the_plan_and_touches_nothing(perflaw, tmp_path):
    write(tmp_path, ONE_SHOT.replace("}\n", ", prepare: touch made}\n", 1) + "policy: grid\ntrials: 5\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    told = perflaw("explore", "study.yaml", "--dry-run").stdout
    assert "9 configurations" in told and "5 trials" in told and "5 min" in told and "Nothing was touched" in told
    assert json.loads(perflaw("explore", "study.yaml", "--dry-run", "--json").stdout)["left"] == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_what_is_wrong_is_told_in_a_line(perflaw, tmp_path):
    write(tmp_path, ONE_SHOT + "policy: nothing\n")
    assert "unknown policy 'nothing'" in perflaw("explore", "study.yaml", status=2).stderr
    assert "No such file" in perflaw("explore", "other.yaml", status=2).stderr
    write(tmp_path, ONE_SHOT.replace("target: {", 'target: {remote: "127.0.0.1:1", ') + "policy: grid\n")
    assert "--token-file FILE --ca FILE" in perflaw("explore", "study.yaml", status=2).stderr
    assert not (tmp_path / ".perflaw" / "study" / "runs" / "0001").exists()


def test_interrupting_keeps_what_is_complete_and_restores(tmp_path):
    # The first trial ends at once, the second one not before it is interrupted.
    slow = "import json, os, time\nopen('db', 'a').write('x')\ntime.sleep(40 if os.path.exists('ran') else 0)\n"
    slow += "open('ran', 'w')\nprint(json.dumps({'rate': 1}))"
    write(tmp_path, ONE_SHOT + "policy: grid\ntrials: 9\nrestore: {snapshot: [db]}\n")
    (tmp_path / "prog.py").write_text(slow)
    (tmp_path / "db").write_text("as it was")
    runs = tmp_path / ".perflaw" / "study" / "runs"
    deadline = time.monotonic() + 60
    with started_perflaw(tmp_path, "explore", "study.yaml") as running:
        while not list(runs.glob("*/run.json")) and time.monotonic() < deadline:
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=60)
    assert running.returncode == 130 and "trials are kept, the same command goes on" in told and "Traceback" not in told
    assert (tmp_path / "db").read_text() == "as it was" and not left_in(tmp_path)


@pytest.mark.slow
def test_kill_9_at_random_points_changes_nothing(tmp_path):
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import explore_kills
    finally:
        sys.path.remove(str(BENCHMARKS))
    quick = "from tests.explore.tiny import *; explore(Path('study.yaml').resolve(), Wish(SEED), local_agent, 'kills')"
    command = (sys.executable, "-c", f"import sys; sys.path.insert(0, {str(BENCHMARKS.parent)!r}); {quick}")
    told = []
    assert explore_kills.campaign(tmp_path, 6, 5, each=6, tell=told.append, kinds=["probed"], command=command) == []
    assert "6 kills in" in told[-1]


@pytest.fixture
def secrets(tmp_path):
    folder = tmp_path / "secrets"
    folder.mkdir(mode=0o700)
    request = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    request += ["-subj", "/CN=perflaw", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*request, "-keyout", folder / "key", "-out", folder / "cert"], check=True, capture_output=True)
    (folder / "token").write_text("0123456789abcdef" * 2)
    (folder / "token").chmod(0o600)
    return folder


@pytest.mark.slow
def test_a_target_elsewhere_is_reached_with_tls_and_token(perflaw, tmp_path, secrets):
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    write(there, "")
    words = [sys.executable, "-m", "perflaw", "agent", "--listen", "127.0.0.1:0", "--folder", there]
    words += ["--token-file", secrets / "token", "--cert", secrets / "cert", "--key", secrets / "key"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as agent:
        try:
            port = agent.stderr.readline().split("127.0.0.1:")[1].split(",")[0]
            text = (
                ONE_SHOT.replace("target: {", f'target: {{remote: "127.0.0.1:{port}", ') + "policy: grid\ntrials: 3\n"
            )
            (here / "study.yaml").write_text(text)
            options = ["--token-file", secrets / "token", "--ca", secrets / "cert"]
            document = json.loads(perflaw("explore", "study.yaml", "--json", *options, cwd=here).stdout)
            assert [trial["valid"] for trial in document["trials"]] == [True] * 3
            (secrets / "token").write_text("another secret, long enough")
            refused = perflaw("explore", "study.yaml", "-e", "b", *options, cwd=here, status=2).stderr
            assert "wrong token" in refused
        finally:
            os.kill(agent.pid, signal.SIGKILL)
    assert (there / ".perflaw" / "study" / "agent").is_dir() and not (here / ".perflaw" / "study" / "agent").exists()
