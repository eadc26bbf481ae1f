"""Recordings in object storage: whole or not at all, never overwritten, as they were written."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import pytest

import perflaw
from perflaw.errors import StoreError, UsageError
from perflaw.imports.experiments import import_experiment
from perflaw.store import remote
from perflaw.store.checksums import digests_of, verify_all
from perflaw.store.experiment import MARK, Experiment, write_manifest
from perflaw.store.remote import experiments_in, mirror, open_store, push
from tests.conftest import run_perflaw

APP = """
import os, sys
def f(n): return sum(range(n))
def main(n):
    for i in range(10): f(n)
main(int(sys.argv[1]))
if len(sys.argv) > 2 and not os.fork(): main(5); sys.exit()
"""

# Answers one request at a time, so that two creations of one object are one after the other, as S3 promises.
SERVER = """
import sys
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=False)
print(server.port, flush=True)
server.serve_forever()
"""


@pytest.fixture(scope="module")
def recorded(made_once):
    """An experiment of three runs with counted lines, the last of them with a child process."""

    def make(folder):
        (folder / "app.py").write_text(APP)
        run_perflaw(folder, "record", "-e", "web", "--collect", "lines", "--vary", "n=10,100", "--", "app.py", "{n}")
        run_perflaw(folder, "record", "-e", "web", "--collect", "lines", "--", "app.py", "20", "fork")

    return made_once("remote", make)


@pytest.fixture
def web(recorded, tmp_path):
    shutil.copytree(recorded / ".perflaw", tmp_path / ".perflaw")
    return Experiment("web", tmp_path / ".perflaw/web")


@pytest.fixture
def shared(tmp_path):
    return open_store(f"file://{tmp_path}/shared")


@pytest.fixture(scope="module")
def server():
    command = [sys.executable, "-W", "ignore", "-c", SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            address = f"http://127.0.0.1:{int(process.stdout.readline())}"
            yield address
        finally:
            process.kill()


@pytest.fixture
def s3(server, monkeypatch):
    """Environment of a client of the server, and the URL of a bucket of the test's own."""
    for name, value in {
        "AWS_ENDPOINT_URL": server, "AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    bucket = f"bucket-{secrets.token_hex(4)}"
    open_store(f"s3://{bucket}").files.mkdir(bucket)
    return f"s3://{bucket}/laws"


def contents(experiment):
    """Digests of everything that is read of an experiment's runs but their numbers."""
    answers = []
    for recording in experiment.recordings():
        verify_all(recording.folder)
        run = replace(recording.run, id="", parent=str(bool(recording.run.parent)), planned="")
        answers.append(blake2b((repr(run) + repr(digests_of(recording.folder))).encode(), digest_size=8).hexdigest())
    return sorted(answers)


def there(store, cache):
    return contents(mirror(store, "web", cache))


# ---- The road.


def test_what_is_pushed_to_s3_is_read_and_pulled_elsewhere(web, s3, tmp_path, monkeypatch):
    monkeypatch.setenv("PERFLAW_CACHE", str(tmp_path / "cache"))
    said = run_perflaw(tmp_path, "push", "web", s3).stderr
    assert f"pushed 4 runs → {s3}, experiment web" in said
    assert "pushed 0 runs, 4 more are there already" in run_perflaw(tmp_path, "push", "web", s3).stderr
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for verb in (["annotate"], ["show"], ["trend"]):
        here = run_perflaw(tmp_path, *verb, "-e", "web", "--json").stdout
        assert run_perflaw(elsewhere, *verb, "-e", "web", "--store", s3, "--json").stdout == here
    assert "pulled 4 runs of 1 machine" in run_perflaw(elsewhere, "pull", s3).stderr
    assert contents(Experiment("web", elsewhere / ".perflaw/web")) == contents(web)
    assert "pulled 0 runs, 4 more are here already" in run_perflaw(elsewhere, "pull", s3, "web").stderr


@pytest.mark.slow
def test_programs_read_what_was_pushed(web, s3, tmp_path, monkeypatch):
    """The Python API, in a folder that has no recordings of its own."""
    monkeypatch.setenv("PERFLAW_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    local = perflaw.load("web")
    push(web, open_store(s3))
    (tmp_path / "elsewhere").mkdir()
    expected = local.annotate().text, local.trend().text, local.show(), list(local.runs), list(local.components)
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="no recordings"):
        perflaw.load("web")
    there = perflaw.load("web", store=s3)
    assert (
        there.annotate().text,
        there.trend().text,
        there.show(),
        list(there.runs),
        list(there.components),
    ) == expected
    assert [one["id"] for one in perflaw.load("web", "2", store=s3).runs] == ["0002"]
    with pytest.raises(StoreError, match="there are: web"):
        perflaw.load("weB", store=s3)


@pytest.mark.slow
def test_what_is_recorded_with_a_store_is_pushed_and_numbered_there(web, s3, tmp_path, monkeypatch):
    monkeypatch.setenv("PERFLAW_CACHE", str(tmp_path / "cache"))
    run_perflaw(tmp_path, "push", "web", s3)
    other = tmp_path / "other"
    other.mkdir()
    (other / "app.py").write_text(APP)
    environment = {**os.environ, "PERFLAW_CACHE": str(Path("~/.cache/perflaw").expanduser())}
    said = run_perflaw(
        other, "record", "-e", "web", "--store", s3, "--", "app.py", "20", "fork", env=environment
    ).stderr
    assert "pushed 2 runs" in said
    assert "numbers there are others: 0001 is 0005, 0002 is 0006" in said
    runs = json.loads(run_perflaw(tmp_path, "runs", "-e", "web", "--store", s3, "--json").stdout)["runs"]
    assert [run["id"] for run in runs] == ["0001", "0002", "0003", "0004", "0005", "0006"]
    assert [run["parent"] for run in runs] == ["", "", "", "0003", "", "0005"]


@pytest.mark.parametrize("url", ["memory://{name}/laws", "file://{folder}/laws"])
def test_any_file_system_will_do(url, web, tmp_path):
    store = open_store(url.format(name=tmp_path.name, folder=tmp_path))
    push(web, store)
    assert experiments_in(store) == ["web"]
    assert there(store, tmp_path / "cache") == contents(web)


# ---- Interruptions.

WRITES_AND_READS = ("put", "get", "pipe_file", "ls", "cat", "cat_file")


class Broken(Exception):
    pass


def breaks_after(store, calls):
    """The store, of which the given number of calls works; returns the count of calls as well."""
    made = [0]

    class Files:
        protocol = store.files.protocol

        def __getattr__(self, name):
            function = getattr(store.files, name)
            if name not in WRITES_AND_READS:
                return function

            def called(*arguments, **options):
                made[0] += 1
                if made[0] > calls:
                    raise Broken("the connection was lost")
                return function(*arguments, **options)

            return called

    return replace(store, files=Files()), made


FAMILY = ("0003", "0004")
"""A run and the run of its child process."""


def test_a_push_that_breaks_at_any_moment_leaves_whole_runs_and_goes_on(web, tmp_path, request):
    whole, made = breaks_after(open_store(f"memory://{request.node.name}-all"), 1 << 30)
    push(web, whole, FAMILY)
    total, wanted = made[0], there(whole, tmp_path / "cache")
    assert len(wanted) == 2
    for calls in range(total):
        store = open_store(f"memory://{request.node.name}-{calls}")
        with pytest.raises(StoreError, match="connection was lost"):
            push(web, breaks_after(store, calls)[0], FAMILY)
        if experiments_in(store):
            assert set(there(store, tmp_path / "cache")) <= set(wanted)
        push(web, store, FAMILY)
        assert there(store, tmp_path / "cache") == wanted


def test_a_pull_that_breaks_at_any_moment_leaves_whole_runs_and_goes_on(web, tmp_path, request):
    store = open_store(f"memory://{request.node.name}")
    push(web, store, FAMILY)
    whole, made = breaks_after(store, 1 << 30)
    wanted, total = there(whole, tmp_path / "all"), made[0]
    for calls in range(total):
        cache = tmp_path / str(calls)
        with pytest.raises(StoreError, match="connection was lost"):
            mirror(breaks_after(store, calls)[0], "web", cache)
        for folder in cache.glob("*/web"):
            left = Experiment("web", folder)
            assert set(contents(left) if left.ids() else []) < set(wanted)
        again, made = breaks_after(store, 1 << 30)
        assert there(again, cache) == wanted
    assert made[0] < total, "what was there was not copied again"


def test_an_import_that_was_killed_is_done_anew(web, tmp_path, monkeypatch):
    target = Experiment("mine", tmp_path / ".perflaw/mine")
    with monkeypatch.context() as patch:
        patch.setattr("perflaw.imports.experiments.write_manifest", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            import_experiment(target, web.folder)
    assert target.unfinished() == ["0001"]
    import_experiment(target, web.folder)
    assert target.unfinished() == []
    assert contents(target) == contents(web)


KILLED = """
import os, sys
from pathlib import Path
from perflaw.store.experiment import Experiment
from perflaw.store.remote import open_store, push
calls = [int(sys.argv[3])]
def dies(event, arguments):
    if event == "open" and "/shared/" in str(arguments[0]):
        calls[0] -= 1
        if not calls[0]:
            os.kill(os.getpid(), 9)
sys.addaudithook(dies)
push(Experiment("web", Path(sys.argv[1])), open_store(sys.argv[2]))
"""


def test_a_push_that_is_killed_leaves_whole_runs_and_goes_on(web, shared, tmp_path):
    for calls in (2, 31, 90):
        done = subprocess.run([sys.executable, "-c", KILLED, web.folder, shared.url, str(calls)])
        assert done.returncode == -9
        if experiments_in(shared):
            assert set(there(shared, tmp_path / "cache")) <= set(contents(web))
    push(web, shared)
    assert there(shared, tmp_path / "cache") == contents(web)


# ---- Several at once.

PUSHER = """
import sys
from pathlib import Path
from perflaw.store.experiment import Experiment
from perflaw.store.remote import open_store, push
sys.stdin.readline()
push(Experiment("web", Path(sys.argv[1])), open_store(sys.argv[2]))
"""


@pytest.mark.parametrize("place", ["file", pytest.param("s3", marks=pytest.mark.slow)])
def test_pushers_at_once_give_every_run_a_number_of_its_own(place, web, tmp_path, request):
    """Two machines push runs of the same numbers, and one of them from two shells."""
    url = request.getfixturevalue("s3") if place == "s3" else f"file://{tmp_path}/shared"
    other = Experiment("web", tmp_path / "other/web")
    shutil.copytree(web.folder, other.folder)
    for run in other.ids():
        recording = other.recording(run)
        write_manifest(recording.folder, replace(recording.run, host="another"))
    folders = [web.folder, web.folder, other.folder]
    pushers = [
        subprocess.Popen([sys.executable, "-c", PUSHER, folder, url], stdin=subprocess.PIPE) for folder in folders
    ]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda pusher: pusher.communicate(b"now\n"), pushers))
    assert [pusher.returncode for pusher in pushers] == [0, 0, 0]
    assert there(open_store(url), tmp_path / "cache") == sorted(contents(web) + contents(other))


@pytest.mark.slow
def test_a_number_that_another_pusher_took_meanwhile_is_left_to_it(web, s3, tmp_path, monkeypatch):
    store, other = open_store(s3), Experiment("web", tmp_path / "other/web")
    shutil.copytree(web.folder, other.folder)
    first = web.recording("0001")
    write_manifest(first.folder, replace(first.run, host="another"))
    put, seen = remote._put_objects, []

    def late(*arguments):
        if not seen:
            seen.append(None)
            seen.append(push(other, open_store(s3)))
        return put(*arguments)

    monkeypatch.setattr(remote, "_put_objects", late)
    done = push(web, store)
    assert seen[1].runs == [("0001", "0001"), ("0002", "0002"), ("0003", "0003"), ("0004", "0004")]
    assert done.runs[0] == ("0001", "0005"), "the others were found to be there"
    assert there(store, tmp_path / "cache") == sorted({*contents(web), *contents(other)})


def test_an_object_is_created_once(s3, shared, request):
    for store in (open_store(s3), shared, open_store(f"memory://{request.node.name}")):
        place = store.path("web", "runs", "0001.json")
        assert store.create(place, b"first") == b"first"
        assert store.create(place, b"second") == b"first"


# ---- Damage.


def files_of(store, kind):
    return sorted(Path(store.root).glob(f"web/{kind}/*"))


def test_a_damaged_object_is_told_and_mended(web, shared, tmp_path):
    push(web, shared)
    for spoil in (lambda path, data: path.write_bytes(bytes([data[0] ^ 1]) + data[1:]), lambda path, _: path.unlink()):
        path = files_of(shared, "objects")[3]
        spoil(path, path.read_bytes())
        with pytest.raises(StoreError, match=r"run 000\d of web is damaged.*--verify"):
            mirror(shared, "web", tmp_path / f"cache-{path.exists()}")
        push(web, shared, verify=True)
        assert there(shared, tmp_path / f"cache-{path.exists()}") == contents(web)


def test_a_damaged_manifest_is_told(web, shared, tmp_path):
    push(web, shared)
    path = files_of(shared, "runs")[1]
    data = path.read_bytes()
    for wrong in (data[:-40], data.replace(b'"calls": ', b'"calls": 1'), b"", b"[]", b"{}"):
        path.write_bytes(wrong)
        with pytest.raises(StoreError, match=r"0002.json: cannot be read"):
            mirror(shared, "web", tmp_path / "cache")


@pytest.mark.parametrize("name", ["../../evil", "/etc/evil", "run.json", "unfinished", ".hidden"])
def test_names_in_a_manifest_lead_nowhere_else(name, web, shared, tmp_path):
    push(web, shared)
    path = files_of(shared, "runs")[0]
    document = json.loads(path.read_text())
    document["files"][name] = next(iter(document["files"].values()))
    path.write_text(json.dumps(remote.sealed(document)))
    with pytest.raises(StoreError, match="cannot be read"):
        mirror(shared, "web", tmp_path / "cache")
    assert not list(tmp_path.rglob("evil"))


def test_what_is_damaged_or_unfinished_here_is_left_out(web, shared, perflaw, tmp_path):
    table = web.runs_folder / "0002/components.parquet"
    table.write_bytes(table.read_bytes()[:-9])
    (web.runs_folder / "0001" / MARK).touch()
    said = perflaw("push", "web", shared.url, status=2).stderr
    assert "pushed 2 runs" in said
    assert "its checksum differs" in said
    assert "not finished, and left out: 0001" in said
    assert mirror(shared, "web", tmp_path / "cache").ids() == ["0001", "0002"]


def test_a_run_that_was_changed_after_it_had_been_pushed_is_left_as_it_was(web, shared, perflaw, tmp_path):
    push(web, shared)
    before = there(shared, tmp_path / "cache")
    perflaw("feature", "-e", "web", "bytes=5", "1")
    assert (
        "changed here since they were pushed, and left there as they are: 0001"
        in perflaw("push", "web", shared.url).stderr
    )
    assert there(shared, tmp_path / "cache") == before


def test_a_copy_follows_what_is_there(web, shared, tmp_path):
    push(web, shared, {"0001", "0002"})
    assert len(there(shared, tmp_path / "cache")) == 2
    files_of(shared, "runs")[0].unlink()
    assert mirror(shared, "web", tmp_path / "cache").ids() == ["0002"]
    shutil.rmtree(Path(shared.root) / "web")
    push(web, shared, {"0003"})
    experiment = mirror(shared, "web", tmp_path / "cache")
    assert experiment.ids() == ["0001"]
    assert experiment.recording("1").run.started == web.recording("3").run.started


# ---- Errors in words.


@pytest.mark.slow
def test_mistakes_are_told_in_words(web, s3, shared, perflaw, tmp_path, monkeypatch):
    bucket = s3.split("/")[2]
    assert "there is no such bucket" in perflaw("push", "web", "s3://nowhere/laws", status=2).stderr
    assert (
        "there is no such bucket" in perflaw("annotate", "-e", "web", "--store", "s3://nowhere/laws", status=2).stderr
    )
    assert "no experiment web: there are: none" in perflaw("annotate", "-e", "web", "--store", s3, status=2).stderr
    assert "no recordings" in perflaw("push", "nothing", s3, status=2).stderr
    assert "not a URL" in perflaw("push", "web", bucket, status=2).stderr
    assert "cannot be reached: Protocol not known: s4" in perflaw("push", "web", "s4://bucket", status=2).stderr
    assert "the experiments there are: none" in perflaw("pull", s3, status=2).stderr
    assert "--attach with --store" in perflaw("mine", "--attach", "1", "--store", shared.url, status=2).stderr
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "access is refused: Unable to locate credentials" in perflaw("push", "web", s3, status=2).stderr
    for package in ("s3fs", "fsspec.core"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, package, None)
            patch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
            said = perflaw(
                "record", "-e", "web", "--store", s3, "--", "app.py", status=2, env=without(package, tmp_path)
            )
            assert "pip install 'perflaw[s3]'" in said.stderr
            with pytest.raises(UsageError, match="a package is missing"):
                open_store(s3)


def without(package, folder):
    """Environment of a Python that lacks a package."""
    (folder / "sitecustomize.py").write_text(f"import sys; sys.modules[{package!r}] = None")
    return {**os.environ, "PYTHONPATH": str(folder)}
