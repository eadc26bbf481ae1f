"""Root attaches to programs of other users: they are recorded, and lead root's recorder to nothing that is not theirs."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from perflaw.errors import TargetError
from perflaw.record.attach import injection, process, session, spool
from perflaw.record.attach.native_session import record_native
from perflaw.record.attach.patching import JUMP, Patching
from perflaw.record.attach.process import image_of, native_program
from perflaw.record.compiled.elf import open_elf
from perflaw.record.compiled.inject.choice import Injection
from perflaw.record.compiled.inject.tables import NO_PATCHES
from perflaw.record.compiled.questions import Answerer
from perflaw.record.compiled.selection import EVERYTHING
from perflaw.record.rights import Rights, User, read_regular, write_new
from perflaw.record.settings import RecordSettings
from perflaw.record.tree.records import DefinitionsReader
from perflaw.store.experiment import open_experiment
from tests.conftest import attach_for_a_while, attached_perflaw
from tests.record.test_attach import WITH_THREADS, calls, recorded
from tests.record.test_attach_compiled import wait_until
from tests.record.test_hooks import built

NOBODY = User(pwd.getpwnam("nobody").pw_uid, pwd.getpwnam("nobody").pw_gid)
SIZES = (10, 1000, 20_000, 5, 300_000)


@pytest.fixture(autouse=True)
def root() -> None:
    assert os.geteuid() == 0, "only root may attach to another user's process: sudo make test"


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user can enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def leftovers() -> list[Path]:
    """Folders of other users' recordings."""
    return [path for path in Path("/tmp").glob("perflaw-*-*") if path.stat().st_uid == NOBODY.uid]


def interpreter() -> str:
    """A Python that every user can start: that of the tests, else the system's."""
    places = (os.path.realpath(sys.executable), "/usr/bin/python3")
    return next(one for one in places if _starts(one))


def _starts(python: str) -> bool:
    with suppress(OSError):  # the user may not run it
        return (
            subprocess.run([python, "-c", ""], user=NOBODY.uid, group=NOBODY.gid, capture_output=True).returncode == 0
        )
    return False


@contextmanager
def serving(program: Path, *words: object) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """The service, and the process id of its worker, which is nobody's."""
    command = [str(program), *map(str, words), str(NOBODY.uid)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as service:
        try:
            yield int(service.stdout.readline()), service  # type: ignore[union-attr]
            assert service.communicate("", timeout=60)[0] == ""
            assert service.returncode == 0
        finally:
            service.kill()


def ask(service: subprocess.Popen[str], size: int) -> int:
    assert service.stdin and service.stdout
    service.stdin.write(f"{size}\n")
    service.stdin.flush()
    return int(service.stdout.readline())


def test_a_python_program_of_another_user_is_recorded_again_and_again(public: Path, tmp_path: Path) -> None:
    (public / "app.py").write_text(WITH_THREADS)
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [interpreter(), "app.py"]
    options = {"user": NOBODY.uid, "group": NOBODY.gid, "extra_groups": [], "env": {"HOME": "/nonexistent"}}
    with subprocess.Popen(command, cwd=public, text=True, **pipes, **options) as program:  # type: ignore[call-overload]
        try:
            assert program.stdout.readline() == "ready\n"
            for _ in range(2):
                attach_for_a_while(tmp_path, program.pid, s=0.1)
            loaded = {
                line.split()[5]
                for line in Path(f"/proc/{program.pid}/maps").read_text().splitlines()
                if "_perflaw" in line
            }
            assert len(loaded) == 1, "the library of the first recording is used again"
            assert program.communicate("end\n", timeout=30) == ("[] 1 []\n", "")
        finally:
            program.kill()
    for recording in recorded(tmp_path):
        found = calls(recording)
        assert found["app.leaf"] > 0 < found["app.serve"]
        assert recording.run.complete
        assert {path.stat().st_uid for path in recording.folder.rglob("*")} == {0}
    assert len(recorded(tmp_path)) == 2
    assert not leftovers()


def test_the_worker_of_a_service_that_gave_up_root_is_recorded(public: Path, tmp_path: Path) -> None:
    with serving(built(public, "served.c", "-O2")) as (pid, service):
        for options in (
            (),
            ("--select", "answer"),
        ):  # with it, libraries and the kernel's page of code are asked about as well
            with attached_perflaw(tmp_path, pid, "--per", "answer", *options, s=0) as recorder:
                wait_until(lambda: any(Path("/tmp").glob(f"perflaw-{recorder.pid}-*/recorded")))
                assert [ask(service, size) for size in SIZES] == [size * (size + 1) // 2 for size in SIZES]
                recorder.send_signal(2)
                assert recorder.wait(60) == 0, recorder.communicate()[1]
    for recording in recorded(tmp_path):
        assert calls(recording)["answer"] == len(SIZES)
    assert not leftovers()


def test_who_is_not_root_is_told_that_it_takes_root(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(built(public, "served.c", "-O2")) as (pid, _):
        monkeypatch.setattr(process, "Rights", refusing)
        with pytest.raises(TargetError, match=r"this root may not take \(CAP_SETUID"):
            native_program(pid)
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        with pytest.raises(TargetError, match=f"another user .*takes root.*sudo perflaw attach {pid}"):
            native_program(pid)


def refusing(user: User | None) -> Rights:
    raise PermissionError


def test_a_program_in_a_root_folder_of_its_own_is_refused(public: Path) -> None:
    (public / "empty").mkdir()
    with serving(built(public, "served.c", "-O2"), public / "empty") as (pid, _):
        with pytest.raises(TargetError, match="another root folder"):
            native_program(pid)
        with (
            pytest.raises(TargetError, match="has no folder for records"),
            spool.shared_folder(NOBODY, Path(f"/proc/{pid}/root"), "it"),
        ):
            pass


@pytest.mark.parametrize(
    ("may_raise", "way_out"),
    [
        (True, "sudo prlimit --pid {} --nproc=unlimited"),
        (False, "CAP_SYS_RESOURCE.* docker run --cap-add=SYS_RESOURCE"),
    ],
)
def test_a_service_that_may_create_no_thread_is_refused(
    public: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, may_raise: bool, way_out: str
) -> None:
    """As haproxy, whose limit root raises, unless it is a container's root."""
    really = injection._may_raise_limits()
    monkeypatch.setattr(injection, "_may_raise_limits", lambda: may_raise)
    with serving(built(public, "served.c", "-O2"), "alone") as (pid, service):
        program = native_program(pid)
        assert program
        with pytest.raises(TargetError, match=rf"no more threads .*{way_out.format(pid)}"):
            record_native(open_experiment("default", tmp_path), program, RecordSettings(), {}, 0.1)
        assert ask(service, 10) == 55
        raised = subprocess.run(["prlimit", "--pid", str(pid), "--nproc=unlimited"], stderr=subprocess.DEVNULL)
        assert (raised.returncode == 0) == really, "the way out is open where it is said to be"
    assert not list(tmp_path.rglob("run.json"))
    assert not leftovers()


def test_python_that_its_user_can_change_is_not_built_for(public: Path) -> None:
    python = public / "python3"
    shutil.copy(interpreter(), python)
    os.chown(python, NOBODY.uid, NOBODY.gid)
    found = process.RunningProgram(1, (), "app", "app", "", process.probe(interpreter()), process.Place(0, 0), NOBODY)
    assert not session._distrusted(found)
    own = process.RunningProgram(
        1,
        (),
        "app",
        "app",
        "",
        process.Interpreter(str(python), "cpython", "3.11.2", "", ""),
        process.Place(0, 0),
        NOBODY,
    )
    with pytest.raises(TargetError, match=f"compiles nothing for its Python: .*{NOBODY.uid}"):
        session._tracer(own, lambda text: None)


# ---- what the other user may do meanwhile ----


def test_files_are_opened_with_the_rights_of_the_program_s_user(public: Path) -> None:
    secret, folder = public / "secret", public / "spool"
    secret.write_text("('failed', 'the secret')\n")
    secret.chmod(0o640)
    folder.mkdir()
    os.chown(folder, NOBODY.uid, NOBODY.gid)
    (folder / "definitions").symlink_to(secret)
    (folder / "answer").symlink_to(secret)
    (folder / "pipe.counts").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe")
    reader = DefinitionsReader(folder / "definitions")
    with Rights(NOBODY) as rights:
        assert not reader.update().failed
        with rights, pytest.raises(PermissionError):
            secret.read_text()
        for name in ("pipe", "pipe.counts"):
            with pytest.raises(FileNotFoundError, match="not a regular file"):
                read_regular(folder / name)
        write_new(folder / "answer", b"ours")
    assert reader.update().failed == "the secret", "with our own rights again"
    assert secret.read_text() == "('failed', 'the secret')\n"
    assert (folder / "answer").stat().st_uid == NOBODY.uid


def test_a_program_learns_nothing_of_files_that_its_user_may_not_read(public: Path) -> None:
    program = built(public, "served.c", "-O2")
    hidden, folder = public / "hidden", public / "spool"
    shutil.copy(program, hidden)
    hidden.chmod(0o700)
    (folder / "answers").mkdir(parents=True)
    for path in (folder, folder / "answers"):
        os.chown(path, NOBODY.uid, NOBODY.gid)
    (folder / "answers" / "1.ask").write_text(f"patches {hidden}")
    (folder / "answers" / "2.ask").write_text(f"patches {program}")
    (folder / "answers" / "3.ask").write_text("patches")
    for path in (folder / "answers").iterdir():
        os.chown(path, NOBODY.uid, NOBODY.gid)
    Answerer(EVERYTHING, Injection(program, EVERYTHING)).answer(folder, Rights(NOBODY))
    hidden_patches, patches, nothing = ((folder / "answers" / number).read_bytes() for number in "123")
    assert hidden_patches == NO_PATCHES != patches
    assert nothing == b""


def test_a_program_that_truncates_its_records_does_not_end_the_recorder(public: Path, tmp_path: Path) -> None:
    with (
        serving(built(public, "served.c", "-O2")) as (pid, service),
        attached_perflaw(tmp_path, pid, "--per", "answer", s=0) as recorder,
    ):
        wait_until(lambda: any(Path("/tmp").glob(f"perflaw-{recorder.pid}-*/recorded")))
        assert ask(service, 10) == 55
        for ring in Path("/tmp").glob(f"perflaw-{recorder.pid}-*/*/*.ring"):
            os.truncate(ring, 0)  # the recorder looks at it every millisecond
        time.sleep(0.1)
        assert recorder.poll() is None
        os.kill(pid, 9)  # it would end at its next record
        said = recorder.communicate(timeout=60)[1]
        assert recorder.returncode == 0, said
    [recording] = recorded(tmp_path)
    assert not recording.run.complete


def test_another_program_in_the_process_is_not_written_to(tmp_path: Path) -> None:
    """It may have become one with more rights than its user (setuid)."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as sleeping:
        try:
            assert sleeping.stdin and sleeping.stdout
            sleeping.stdin.write(b"\n")
            sleeping.stdin.flush()
            sleeping.stdout.readline()  # by now it runs cat, not what Popen forked
            before, other = image_of(sleeping.pid), image_of(os.getpid())
            rows = np.zeros(1, JUMP)
            Patching(sleeping.pid, rows, before).enable()
            with pytest.raises(TargetError, match="it ended before"):
                Patching(sleeping.pid, rows, other).enable()
        finally:
            sleeping.kill()


def test_what_another_user_may_change_is_kept_apart_in_the_cache(public: Path) -> None:
    program = built(public, "served.c", "-O2")
    twin = public / "twin"
    shutil.copy(program, twin)
    os.chown(twin, NOBODY.uid, NOBODY.gid)
    with open_elf(program) as own, open_elf(twin) as others:
        assert own and others and own.identity == others.identity == own.key
        assert others.key.startswith(f"{own.identity}-")


def test_folders_of_killed_recorders_are_removed(public: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    old = Path(f"/tmp/perflaw-{ended.pid}-0123456789abcdef")
    old.mkdir()
    os.chown(old, NOBODY.uid, NOBODY.gid)
    with spool.shared_folder(NOBODY, Path("/"), "it") as shared:
        assert not old.exists()
        assert shared.put("x", b"1").read_bytes() == b"1" == shared.read("x")
        assert shared.told.stat().st_mode & 0o777 == 0o700
    assert not leftovers()


def test_folders_of_recorders_that_live_are_kept_also_where_their_processes_are_not_seen() -> None:
    """The first recorder of a container has a process id there that is none of ours, and the other way round."""
    with spool.shared_folder(NOBODY, Path("/"), "it") as shared:
        recorder = f"""
from pathlib import Path
from perflaw.record.attach import spool
from perflaw.record.rights import User
assert not Path("/proc/{os.getpid()}").exists()
with spool.shared_folder(User({NOBODY.uid}, {NOBODY.gid}), Path("/"), "it"):
    pass
"""
        container = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", recorder]
        subprocess.run(container, check=True, timeout=60)
        assert Path("/", shared.told).exists()
    assert not leftovers()
