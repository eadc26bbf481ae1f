"""The reader of native recordings, on spools written by hand: rings, several processes, those that outlive the program."""

import os
import random
import re
import subprocess
import sys

import pytest

from perflaw.record import build
from perflaw.record.compiled.hooks import HooksReader
from perflaw.record.compiled.questions import FOLDER, Answerer
from perflaw.record.compiled.selection import EVERYTHING
from perflaw.record.manifest import Execution
from perflaw.record.python import native_reader
from perflaw.record.python.native_reader import NativeReader, is_running
from perflaw.record.python.tracers import NativeTracer
from perflaw.record.saving import RunContext, save_recording
from perflaw.record.settings import RecordSettings
from perflaw.record.tree import records
from perflaw.record.tree.records import ENTER, MAX_LANES, DefinitionsReader
from perflaw.record.unfinished import RunClaim
from perflaw.store.experiment import open_experiment
from tests.conftest import assert_identities
from tests.record.rings import CAPACITY, NO_PROCESS, READ, STOP, calls, word, write_process, write_ring
from tests.record.tree_objects import from_tables

ROOT, CHILD, GRANDCHILD = NO_PROCESS + 1, NO_PROCESS + 2, NO_PROCESS + 3


@pytest.fixture(scope="session")
def library():
    return build.build(build.core())


@pytest.fixture
def spool(tmp_path):
    folder = tmp_path / "spool"
    folder.mkdir()
    return folder


def read(spool, library, pid=ROOT):
    return list(NativeReader(spool, 1, library).finish(pid))


def test_a_ring_is_read_as_it_was_written(spool, library):
    write_process(spool, ROOT, 1, calls(100), ended=1000)
    [program] = read(spool, library)
    assert program.definitions.process.pid == ROOT
    assert (program.tree.calls, from_tables(program.tree).nodes[1].lanes[0].sum_x) == (100, 1000)
    assert program.parent is None
    assert not program.alive


def test_a_ring_that_wrapped_and_was_read_before(spool, library):
    folder = write_process(spool, ROOT, 1, ())
    events = calls(CAPACITY)  # two records each and one more: the ring went round twice
    write_ring(folder / "0001.ring", events, read=len(events) - CAPACITY)
    [program] = read(spool, library)
    assert program.tree.calls == CAPACITY // 2


def test_rings_that_appear_while_it_reads_are_taken_in_and_room_is_given_back(spool, library):
    folder = write_process(spool, ROOT, 1, calls(3))
    reader = NativeReader(spool, 1, library)
    reader.next_check = 1e18  # its process is_running, as far as the reader knows
    assert reader.step() == 7
    assert word(folder / "0001.ring", READ) == 7
    write_ring(folder / "0002.ring.part", calls(2))
    assert reader.step() == 0
    (folder / "0002.ring.part").rename(folder / "0002.ring")
    reader.next_look = 0
    assert reader.step() == 5
    [program] = reader.finish(ROOT)
    assert program.tree.calls == 5
    assert not list(folder.glob("*.ring")), "what was read takes no disk"


def test_each_process_has_a_tree_and_parents_stand_before_children(spool, library):
    write_process(spool, GRANDCHILD, CHILD, calls(3), began=30)
    write_process(spool, CHILD, ROOT, calls(2), began=20)
    write_process(spool, ROOT, 77, calls(1), began=10)
    write_process(spool, ROOT, 77, calls(4), serial=2, began=40)  # the program replaced itself by another one
    write_process(spool, NO_PROCESS + 9, NO_PROCESS + 8, calls(5), began=50)  # started by one that was not recorded
    found = [(one.definitions.process.pid, one.tree.calls, one.parent) for one in read(spool, library)]
    assert found == [(ROOT, 1, None), (CHILD, 2, 0), (ROOT, 4, 0), (NO_PROCESS + 9, 5, 0), (GRANDCHILD, 3, 1)]


def test_a_process_that_is_done_is_read_at_once(spool, library):
    folder = write_process(spool, CHILD, ROOT, calls(2))
    reader = NativeReader(spool, 1, library)
    reader.step()
    assert not list(folder.glob("*.ring"))


def test_a_line_that_is_written_while_the_file_is_read_is_read_later(tmp_path):
    """The mapped file is read as the tracer writes: a line read as zeros, then one that was written meanwhile."""
    path, lines = (
        tmp_path / "definitions",
        [b"('say', 'clock', 'fake')\n", b"('failed', 'no')\n", b"('cpu', 'begun', 7)\n"],
    )
    reader = DefinitionsReader(path)
    path.write_bytes(lines[0] + b"(\0" + bytes(len(lines[1]) - 2) + lines[2] + bytes(99))
    assert (reader.update().words, reader.update().cpu_ns) == ({"clock": "fake"}, {})
    path.write_bytes(b"".join(lines) + bytes(99))
    assert (reader.update().failed, reader.update().cpu_ns) == ("no", {"begun": 7})


def test_nothing_recorded(spool, library):
    [nothing] = read(spool, library)
    assert nothing.definitions.started is None
    assert len(nothing.tree.nodes) == 1


def test_why_it_could_not_begin(spool, library):
    write_process(spool, ROOT, 1, ())
    (spool / f"{ROOT}-1" / "definitions").write_text("")
    (spool / f"{ROOT}-0").mkdir()
    (spool / f"{ROOT}-0" / "definitions").write_text("('failed', 'ImportError: no')\n")
    assert read(spool, library)[0].definitions.failed == "ImportError: no"


def test_a_spool_that_the_program_removed(spool, library):
    reader = NativeReader(spool / "gone", 1, library)
    assert reader.step() == 0
    assert [one.tree.calls for one in reader.finish(ROOT)] == [0]


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "60"])
    yield process.pid
    process.kill()
    process.wait()


def test_who_outlives_the_program_is_asked_to_stop(spool, library, sleeper):
    write_process(spool, ROOT, 1, calls(1), ended=9)
    folder = write_process(spool, sleeper, ROOT, calls(2), began=1)
    kept = (folder / "0001.ring").open("rb")  # its writer has it mapped
    program, orphan = read(spool, library)
    assert (program.alive, orphan.alive) == (False, True)
    kept.seek(STOP)
    assert kept.read(4) != b"\0\0\0\0"
    kept.close()


def test_who_has_told_its_end_is_not_waited_for(spool, library, sleeper):
    write_process(spool, ROOT, 1, calls(1), ended=9)
    write_process(spool, sleeper, ROOT, calls(2), ended=9)
    assert [one.alive for one in read(spool, library)] == [False, False]


def test_a_dead_process_does_not_run():
    process = subprocess.Popen(["true"])
    while is_running(process.pid):
        pass
    assert process.wait() == 0  # until here it was there, waiting to be asked


def concluded(tmp_path, library, *, selected=False):
    experiment = open_experiment("default", tmp_path)
    claim = RunClaim.with_spool(experiment, "planned", "df -h")
    spool = claim.folder / "spool"
    process = Execution(("python", "app.py", "--token", "x"), "app.py", "2026-01-01T00:00:00.000+00:00", 10**9, 0)
    what = RunContext(
        claim, NativeTracer("r", library, library), RecordSettings(select=("app.*",) * selected), {"n": 5.0}
    )

    def conclude_it():
        return save_recording(what, process, NativeReader(spool, 1, library).finish(ROOT))

    return spool, conclude_it, experiment


def test_children_become_runs_of_their_own(tmp_path, library):
    spool, conclude_it, experiment = concluded(tmp_path, library)
    argv = ("python", "app.py", "--token", "x")
    write_process(spool, ROOT, 1, calls(1), argv, began=1_000_000_000, ended=2_000_000_000)
    write_process(spool, CHILD, ROOT, calls(2), argv, began=1_500_000_000)
    write_process(
        spool, GRANDCHILD, CHILD, calls(3), ("python", "-m", "json.tool"), began=1_600_000_000, ended=1_700_000_000
    )
    write_process(spool, NO_PROCESS + 5, CHILD, (), began=1_600_000_001)
    outcome = conclude_it()
    assert len(outcome.children) == 2
    program, child, grandchild = [experiment.recording(name).run for name in experiment.ids()]
    assert [run.parent for run in (program, child, grandchild)] == ["", "0001", "0002"]
    assert [run.target for run in (program, child, grandchild)] == ["app.py", "app.py", "-m json.tool"]
    assert [run.calls for run in (program, child, grandchild)] == [1, 2, 3]
    assert child.command == ("python", "app.py", "--token", "***")
    assert child.features == grandchild.features == {"n": 5.0}, "they describe the whole execution"
    assert (child.ended, grandchild.ended) == (
        "without the interpreter's shutdown (os._exit, exec, a signal)",
        "normally",
    )
    assert (child.complete, grandchild.complete) == (False, True)
    assert (grandchild.wall_ns, grandchild.started) == (100_000_000, "2026-01-01T00:00:00.600+00:00")
    assert child.pid == CHILD
    for name in experiment.ids():
        assert_identities(experiment.recording(name).tables())
    assert not spool.exists()


def test_an_orphan_says_so(tmp_path, library, sleeper):
    spool, conclude_it, _ = concluded(tmp_path, library)
    write_process(spool, ROOT, 1, calls(1), ended=9)
    write_process(spool, sleeper, ROOT, calls(1)[:2], began=1)
    [child] = conclude_it().children
    assert child.ended == "still running when the recording ended"
    assert child.lost.open_invocations == 1


def test_a_program_in_which_nothing_selected_ran_is_kept_for_its_children(tmp_path, library):
    spool, conclude_it, experiment = concluded(tmp_path, library, selected=True)
    write_process(spool, ROOT, 1, (), ended=9)
    write_process(spool, CHILD, ROOT, calls(1), began=1)
    assert conclude_it().folder is not None
    assert experiment.ids() == ["0001", "0002"]


def test_nothing_selected_leaves_nothing(tmp_path, library):
    spool, conclude_it, experiment = concluded(tmp_path, library, selected=True)
    write_process(spool, ROOT, 1, (), ended=9)
    assert conclude_it().folder is None
    assert experiment.ids() == experiment.unfinished() == []


def test_a_ring_of_another_kind_is_passed_over(spool, library):
    folder = write_process(spool, ROOT, 1, [(5, 1, 1, -1, -1, ENTER)])
    (folder / "0002.ring").write_bytes(b"\0" * 9000)
    [program] = read(spool, library)
    assert program.tree.nodes["open"].sum() == 1
    assert program.tree.head("unread_rings") == 1


_SCRIBBLER = """
import ctypes, threading
def work(): pass
def idle():
    for _ in range(100): work()
    ready.set()
    never.wait()
ready, never = threading.Event(), threading.Event()
threading.Thread(target=idle, daemon=True).start()
ready.wait()
for line in open("/proc/self/maps"):
    if line.endswith(".ring\\n"):  # the main thread mends the number of its own records at its next call
        ctypes.c_uint64.from_address(int(line.split("-")[0], 16) + 64).value = 1 << 60
"""


def test_a_program_that_writes_over_a_ring_ends_the_recording_and_nothing_else(perflaw, tmp_path):
    (tmp_path / "scribbler.py").write_text(_SCRIBBLER)
    done = perflaw("record", "--", sys.executable, "scribbler.py", timeout=60)
    assert done.returncode == 0
    assert "not read to the end: their ring is damaged" in done.stderr


DAMAGES = {
    "bytes": lambda line, chance: bytes(byte ^ (1 << chance.randrange(8)) * (chance.random() < 0.05) for byte in line),
    "numbers": lambda line, chance: re.sub(rb"\b\d+\b", chance.choice([b"None", b"-1", b"1" * 25, b"9" * 5000]), line),
    "texts": lambda line, chance: re.sub(rb"'[^']*'", chance.choice([b"7", rb"'\\udc80'", b"None", b"()"]), line),
    "brackets": lambda line, chance: line.replace(b"(", b"(" * chance.choice([0, 2, 300])),
    "another kind": lambda line, chance: re.sub(rb"'\w+'", b"'" + chance.choice(KINDS) + b"'", line, count=1),
}
KINDS = b"code metric mark counts sample end start cpu collections process type".split()


MORE = [
    ("metric", 3, "bytes", "bytes"),
    ("counts", 1, 0, 0, 1, 2, (0, 1), ((0, 1, 1),)),
    ("cpu", "begun", 5),
    ("type", 1, "A"),
    ("feature", 1, 1, "n.type"),
    ("sample", 1, 3),
    ("say", "clock", "TSC"),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_definitions_are_counted_and_the_rest_is_read(tmp_path, library, damage):
    """They lie in the program's memory, which may write over them."""
    spool, conclude_it, _ = concluded(tmp_path, library)
    path = write_process(spool, ROOT, 1, calls(3), ended=9) / "definitions"
    whole = path.read_bytes().splitlines() + [repr(line).encode() for line in MORE]
    chance, known = random.Random(damage), DefinitionsReader(path).definitions
    for _ in range(200):
        lines = whole.copy()
        at = chance.randrange(2, len(lines))  # that it began is told at once, when the recorder looks
        lines[at] = DAMAGES[damage](lines[at], chance)
        path.write_bytes(b"\n".join([*lines, b""]))
        known = DefinitionsReader(path).update()
        assert known.line_at(1, 0) >= 0
        assert len(known.lanes()) <= MAX_LANES
        assert known.damaged <= 1
    assert ("1 definition of" in conclude_it().run.lost.reason) == bool(known.damaged)


def test_a_second_signal_ends_the_recorder_whatever_it_still_does():
    script = (
        "import os, signal, time\n"
        "from perflaw.record.process import SignalRelay\n"
        "with SignalRelay() as relay:\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    relay.ended = True\n"
        "    print(relay.received, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    print('still here')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("15\n", -15)


_NO_DESCRIPTORS = """
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
try:
    while True: os.open("/dev/null", os.O_RDONLY)
except OSError: pass
space = {}
exec("\\n".join(f"def function_number_{n}(a, b, c): pass" for n in range(600)), space)
for n in range(600): space[f"function_number_{n}"](1, 2, 3)
"""


def test_a_program_without_descriptors_is_told_so(perflaw, tmp_path):
    (tmp_path / "greedy.py").write_text(_NO_DESCRIPTORS)
    done = perflaw("record", "--", sys.executable, "greedy.py", timeout=60)
    assert "recording stopped early: the program has used up its file descriptors" in done.stderr


def test_definitions_of_code_are_read_alike_by_both_ways(monkeypatch):
    line = "('code', 3, 'a.b', '/x/y.py', 12, 'own', ('self', 'n', ), ((0, 2, 10), (2, 4, None), (4, 8, 11), ))"
    wild = line.replace("'n', ", "'\\u00e9', ")
    quick, slow = records.Definitions(), records.Definitions()
    quick.take(line)
    assert quick.components[3].parameters == ("self", "n")
    assert quick.lines == {3: [(0, 2, 10), (4, 8, 11)]}
    quick.take(wild)
    assert quick.components[3].parameters == ("self", "é")
    monkeypatch.setattr(records, "_CODE", re.compile("nothing"))
    slow.take(line)
    slow.take(wild)
    assert quick == slow


def test_a_listing_has_every_name_and_nothing_where_nothing_changed(tmp_path):
    listing = native_reader.Listing(tmp_path)
    for name in ("a", "b", "c"):
        (tmp_path / name).touch()
        assert name in listing.names()
    os.utime(tmp_path, (1, 1))
    assert listing.names() == {"a", "b", "c"}
    assert listing.names() == set()
    (tmp_path / "d").touch()
    assert "d" in listing.names()
    assert native_reader.Listing(tmp_path / "gone").names() == set()


@pytest.mark.parametrize(("capacity", "longest_s"), [(1 << 17, 0.016), (1 << 13, 0.001)])
def test_pauses_leave_most_of_the_smallest_ring_free(spool, library, capacity, longest_s):
    folder = write_process(spool, os.getpid(), 1, ())
    write_ring(folder / "0001.ring", calls(1), capacity)
    reader = NativeReader(spool, 1, library)
    for _ in range(10):
        reader.step()
    assert reader.pause_s == pytest.approx(longest_s, rel=0.02)


def test_many_records_shorten_the_pause(spool, library):
    folder = write_process(spool, os.getpid(), 1, ())
    write_ring(folder / "0001.ring", calls(20_000), 1 << 17)
    reader = NativeReader(spool, 1, library)
    reader.pause_s = native_reader.MAX_PAUSE_S
    taken = reader.step()
    assert taken > native_reader.MUCH
    assert reader.pause_s == native_reader.MAX_PAUSE_S / 2


def test_a_question_shortens_the_pause(tmp_path, library):
    reader = HooksReader(tmp_path, 1, library, Answerer(EVERYTHING))
    reader.step()
    assert reader.pause_s == 2 * reader.idle_s
    (tmp_path / FOLDER / "0.ask").write_text("functions /none")
    reader.pause_s = native_reader.MAX_PAUSE_S
    reader.next_look = 0.0
    reader.step()
    assert reader.pause_s == 2 * reader.idle_s
