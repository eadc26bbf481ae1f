"""Executions of lines and blocks: exact, the same as Python's own ``trace`` counts, and harmless to the program."""

import itertools
import json
import random
import re
import subprocess
import sys

import pytest

from perflaw.errors import TargetError
from perflaw.record.plan import make_plan
from perflaw.record.session import record_all
from perflaw.record.settings import RecordSettings, require_collectable
from perflaw.record.tracers import TracerChoice
from perflaw.store.counts import read_counts, read_sources
from perflaw.store.experiment import open_experiment
from tests.record import line_programs
from tests.record.branch_oracle import SMALL, expected, program
from tests.record.test_branches import COVERAGE, HOSTILE

pytestmark = pytest.mark.interpreter

REFERENCE = """
import json, os, sys, trace
tracer = trace.Trace(count=1, trace=0)
sys.path.insert(0, "")
names = {"__name__": "__main__", "__file__": "app.py"}
tracer.runctx(compile(open("app.py").read(), "app.py", "exec"), names, names)
counts = [(os.path.basename(file), line, n) for (file, line), n in tracer.results().counts.items()]
print(json.dumps(counts), file=sys.stderr)
"""


def record(folder, collect=("lines",), **settings):
    """Record ``app.py`` of a folder by this Python."""
    number = len(list(folder.glob("e*")))
    (folder / f"e{number}").mkdir()
    experiment = open_experiment("lines", folder / f"e{number}")
    plan = make_plan((sys.executable, str(folder / "app.py")), {}, 1, {})
    (attempt,) = record_all(
        experiment, plan, TracerChoice("native", lambda text: None), RecordSettings(collect=collect, **settings)
    )
    assert attempt.error is None, attempt.error
    return experiment.recordings()


def traced(folder):
    """What ``trace`` counts: file → line → executions."""
    done = subprocess.run([sys.executable, "-c", REFERENCE], cwd=folder, capture_output=True, text=True, check=True)
    counts = json.loads(done.stderr.splitlines()[-1])
    return {name: {line: n for other, line, n in counts if other == name} for name, _, _ in counts}


@pytest.fixture
def counted(tmp_path):
    """Record a program with its lines; of each run, name of a location (``app.py:3``) → executions."""

    def counted(text, collect=("lines",), **settings):
        (tmp_path / "app.py").write_text(text)
        return [by_name(read_counts(one.folder)) for one in record(tmp_path, collect, **settings)]

    return counted


def by_name(counts):
    return {place.name: int(count) for place, count in zip(counts.locations, counts.counts, strict=True)}


def lines_of(counts, file="app.py"):
    """Line → executions, of those that ran."""
    split = (name.split(":") for name, count in counts.items() if count)
    return {int(line): counts[f"{name}:{line}"] for name, line in split if line.isdigit() and name == file}


def told(text):
    """Line → what its comment says of it: ``# 3`` three executions."""
    said = (re.search(r"# (\d+)$", line) for line in text.splitlines())
    return {number: int(found[1]) for number, found in enumerate(said, 1) if found and int(found[1])}


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """All programs, as modules of one: name → what perflaw and what ``trace`` counts."""
    folder = tmp_path_factory.mktemp("together")
    texts = {**line_programs.KNOWN, **line_programs.FURTHER, "random": called(1)[0]}
    files = {name: "p_" + re.sub(r"\W", "_", name) for name in texts}
    for name, text in texts.items():
        (folder / f"{files[name]}.py").write_text(text)
    (folder / "app.py").write_text("".join(f"import {file}\n" for file in files.values()))
    (recording,) = record(folder)
    ours, theirs = by_name(read_counts(recording.folder)), traced(folder)
    return {name: (lines_of(ours, f"{file}.py"), theirs[f"{file}.py"]) for name, file in files.items()}


@pytest.mark.parametrize("name", line_programs.KNOWN)
def test_what_the_source_says(together, name):
    expected = told(line_programs.KNOWN[name])
    assert {line: count for line, count in together[name][0].items() if line in expected} == expected


@pytest.mark.parametrize("name", [*line_programs.KNOWN, *line_programs.FURTHER, "random"])
def test_what_trace_counts(together, name):
    ours, theirs = together[name]
    assert ours == theirs


def called(seed):
    """A random program that calls its functions, and those calls."""
    chance, text = random.Random(seed), program(seed)
    calls = [
        (f"f{k}", arguments)
        for k in range(25)
        for arguments in chance.sample(list(itertools.product(SMALL, repeat=3)), 8)
    ]
    return text + "\n".join(f"{name}{arguments}" for name, arguments in calls) + "\n", calls


@pytest.mark.parametrize("collect", [("lines",), ("branches", "lines")])
def test_blocks_are_what_the_source_says(counted, collect):
    text, calls = called(2)
    (found,) = counted(text, collect=collect)
    outcomes = expected(program(2), calls)
    blocks = {name: count for name, count in found.items() if " " in name}
    wanted = {name: outcomes["L" + name.split(":")[1].split()[0], "not" not in name] for name in blocks}
    assert blocks == wanted
    assert len(blocks) > 100


def test_blocks_are_of_lines_that_have_several(counted):
    (found,) = counted(line_programs.BLOCKS)
    blocks = {name.removeprefix("app.py:"): count for name, count in found.items() if " " in name}
    assert blocks == {
        f"{line}{rank} {outcome}": count
        for line, rank, taken, not_taken in line_programs.BLOCKS_TOLD
        for outcome, count in (("taken", taken), ("not taken", not_taken))
    }


@pytest.mark.parametrize("program", [line_programs.RAISES, line_programs.LOOPS], ids=["raises", "loops"])
def test_blocks_from_few_events_are_those_of_every_instruction(tmp_path, capfd, program):
    (tmp_path / "app.py").write_text(program)
    plain = subprocess.run([sys.executable, "app.py"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    kinds = (("lines",), ("branches", "lines"))  # each instruction is told if branches are counted by invocation (3.11)
    few, every = (by_name(read_counts(record(tmp_path, collect)[0].folder)) for collect in kinds)
    assert capfd.readouterr().out == 2 * plain
    assert few == every
    assert sum(" " in name for name in few) > 60


def test_a_program_with_an_audit_hook_does_not_notice(tmp_path, capfd):
    (tmp_path / "app.py").write_text(line_programs.AUDITED)
    record(tmp_path, ())
    plain = capfd.readouterr().out
    record(tmp_path)
    assert capfd.readouterr().out == plain != ""


def test_more_branches_than_features_would_have(counted):
    body = "".join(f"    if n == {k}: n += 0\n" for k in range(300))
    (found,) = counted(f"def f(n):\n{body}for k in range(400): f(k)\n")
    assert {found[f"app.py:{k + 2} taken"] for k in range(300)} == {1}
    assert {found[f"app.py:{k + 2} not taken"] for k in range(300)} == {399}


def test_functions_and_sources(tmp_path):
    (tmp_path / "app.py").write_text("class C:\n    def f(self): return 1\ndef g():\n    return C().f()\ng()\n")
    recordings = record(tmp_path)
    counts = read_counts(recordings[0].folder)
    functions = {place.line: (place.function, place.language) for place in counts.locations}
    assert functions == {
        1: ("app.<module>", "python"),
        2: ("app.C", "python"),
        3: ("app.<module>", "python"),
        4: ("app.g", "python"),
        5: ("app.<module>", "python"),
    }
    (file,) = {place.file for place in counts.locations}
    assert read_sources(recordings)[file] == (tmp_path / "app.py").read_text()


def test_threads_lose_nothing(counted):
    (found,) = counted(
        "import sys, threading\n"
        "sys.setswitchinterval(1e-6)\n"
        "def work(n):\n"
        "    for i in range(n):\n"
        "        n ^= i\n"
        "    while n >= 0: n = -1\n"
        "threads = [threading.Thread(target=work, args=(5000,)) for _ in range(8)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
    )
    assert (found["app.py:3"], found["app.py:4"], found["app.py:5"]) == (1, 8 * 5001, 8 * 5000)


def test_a_killed_program_loses_nothing(counted):
    (found,) = counted(
        "import os, signal\n"
        "def f(n):\n"
        "    while n:\n"
        "        n -= 1\n"
        "f(12345)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
        "f(1)\n"
    )
    assert lines_of(found) == {1: 1, 2: 1, 3: 12346, 4: 12345, 5: 1, 6: 1}


def test_killed_at_any_moment(tmp_path):
    (tmp_path / "app.py").write_text(
        "import mmap, os, random, signal, threading\n"
        "page = mmap.mmap(os.open(os.path.dirname(__file__) + '/page', os.O_RDWR), 4096)\n"
        "numbers = memoryview(page).cast('Q')\n"
        "signal.signal(signal.SIGALRM, signal.SIG_DFL)\n"
        "signal.setitimer(signal.ITIMER_REAL, random.uniform(0.001, 0.1))\n"
        "while True:\n"
        "    numbers[0] += 1\n"
    )
    for _ in range(5):
        (tmp_path / "page").write_bytes(bytes(4096))
        counts = by_name(read_counts(record(tmp_path)[0].folder))
        done = int.from_bytes((tmp_path / "page").read_bytes()[:8], "little")
        assert done <= counts["app.py:7"] <= done + 1


FORKS = """
import os
def f(n):
    for i in range(n):
        pass
f(100)
for k in (10, 20):
    if not os.fork():
        f(k)
        k = 3
        os._exit(0)
    os.wait()
f(1000)
if not os.fork():
    for k in range(7):
        k += 1
    os._exit(0)
os.wait()
"""


def test_a_forked_child_counts_afresh(counted):
    program, *children = counted(FORKS)
    assert [program[f"app.py:{line}"] for line in (4, 5, 9, 13, 15)] == [1102, 1100, 0, 1, 0]
    ran = [lines_of(child) for child in children]  # the last one called nothing and is a run nevertheless
    assert ran == [{4: k + 1, 5: k, 9: 1, 10: 1, 11: 1} for k in (10, 20)] + [{15: 8, 16: 7, 17: 1}]


def test_a_child_that_unwinds_through_its_parents_frames(counted, capfd):
    program, child = counted(
        "import os\n"
        "exec('def leave():\\n    if not __import__(\"os\").fork(): raise KeyError', {'__name__': 'json'}, made := {})\n"
        "def f():\n"
        "    made['leave']()\n"
        "    os.wait()\n"
        "try: f()\n"
        "except KeyError: print('child', flush=True)\n"
        "else: print('parent')\n",
        exclude=("json.*",),
    )
    assert capfd.readouterr().out == "child\nparent\n"
    assert (program["app.py:5"], program["app.py:7"], program["app.py:8"]) == (1, 0, 1)
    assert (child.get("app.py:5", 0), child["app.py:7"], child.get("app.py:8", 0)) == (0, 1, 0)


def test_children_have_the_functions_of_their_parent(tmp_path):
    (tmp_path / "app.py").write_text(
        "import os\ndef f(): return 1\nif not os.fork(): f(); os._exit(0)\nf(); os.wait()\n"
    )
    program, child = record(tmp_path)
    places = [{place for place in read_counts(one.folder).locations if place.line == 2} for one in (program, child)]
    assert places[0] == places[1]


def test_only_what_is_selected(counted):
    text = (
        "import json, sys\ndef f(x):\n    return x\ndef g(x):\n    return f(x)\ng(1)\njson.dumps({1: [2]}, indent=1)\n"
    )
    watched = (
        "if sys.version_info >= (3, 12):\n"
        "    events = [sys.monitoring.get_local_events(4, code.__code__) for code in (f, g, json.dumps)]\n"
        "    assert not events[0] and events[1] and not events[2], events\n"
    )
    (found,) = counted(text + watched, select=("*.g",))
    assert found == {"app.py:5": 1}
    (found,) = counted(text, select=("json.encoder*",))
    assert {name.split(":")[0] for name in found} == {"encoder.py"}
    (found,) = counted(text, exclude=("*.f",))
    assert lines_of(found) == {1: 1, 2: 1, 4: 1, 5: 1, 6: 1, 7: 1}


def test_code_made_again_goes_on_counting(counted, tmp_path):
    (tmp_path / "other.py").write_text("def f(n):\n    return n\nf(1)\n")
    (found,) = counted(
        "import importlib, other\n"
        "for _ in range(4): importlib.reload(other); other.f(2)\n"
        "for n in range(3): exec('x = 1\\nx += 1\\n' + 'x += 1\\n' * n)\n"
    )
    assert lines_of(found, "other.py") == {1: 5, 2: 9, 3: 5}
    assert lines_of(found, "<string>") == {1: 3, 2: 3, 3: 2, 4: 1}


@pytest.mark.parametrize("name", HOSTILE)
def test_the_program_does_not_notice(tmp_path, capfd, name):
    (tmp_path / "app.py").write_text(HOSTILE[name])
    record(tmp_path, ())
    plain = capfd.readouterr().out
    for collect in (("lines",), ("branches", "lines")):
        run = record(tmp_path, collect)[0].run
        assert capfd.readouterr().out == plain != ""
        tells = sys.version_info < (3, 12) and name in ("debugger", "debugger_within", "own_tracer")
        assert run.words.get("lines", "").startswith("not all counted: the program traced itself") == tells


def test_beside_coverage(tmp_path, capfd):
    (tmp_path / "loops.py").write_text(
        "def f(n):\n    while n:\n        n -= 1\n        if n == 3:\n            break\n    return n\n"
    )
    (tmp_path / "app.py").write_text(COVERAGE)
    plain = subprocess.run([sys.executable, "app.py"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    (recording,) = record(tmp_path)
    assert capfd.readouterr().out == plain
    if sys.version_info < (3, 12):  # both would need the one trace function of the thread
        assert "not all counted: the program traced itself" in recording.run.words["lines"]
    else:
        found = by_name(read_counts(recording.folder))
        assert (found["loops.py:2"], found["loops.py:6"]) == (1 + 2 + 3 + 4 + 1 + 2 + 4, 7)


@pytest.mark.any_python
def test_the_closing_line_says_how_many(perflaw, tmp_path):
    (tmp_path / "app.py").write_text("x = 1\nif x:\n    x = 2\n")
    said = perflaw("record", "--collect", "lines", "--", sys.executable, "app.py").stderr
    assert ", 3 lines counted · " in said
    assert "counted" not in perflaw("record", "--", sys.executable, "app.py").stderr


@pytest.mark.any_python
def test_what_cannot_be_counted_is_refused_or_told(perflaw, tmp_path):
    (tmp_path / "app.py").write_text("if 1 < 2: x = 1\n")
    said = perflaw("record", "--collect", "lines", "--tracer", "python", "--", "app.py", status=2).stderr
    assert "only the native tracer counts lines" in said
    with pytest.raises(TargetError, match="no compiler"):
        require_collectable(("lines",), "python", "no compiler")
    said = perflaw("record", "--collect", "lines", "--", sys.executable, "-X", "no_debug_ranges", "app.py").stderr
    assert "lines: not all blocks counted: python -X no_debug_ranges leaves out" in said
    far = "import ast\ntree = ast.parse('x = 1\\ny = 2')\ntree.body[1].value.lineno = tree.body[1].value.end_lineno = 3000000\n"
    (tmp_path / "app.py").write_text(far + "exec(compile(tree, 'far', 'exec'))\n")
    said = record(tmp_path)[0].run.words["lines"]
    assert "not all counted: of code whose lines lie further apart" in said


def test_nothing_else_is_left_in_the_run(tmp_path):
    (tmp_path / "app.py").write_text("x = 1\n")
    (recording,) = record(tmp_path)
    assert not list(recording.folder.rglob("*.counts"))
    assert read_counts(record(tmp_path, ())[0].folder) is None
