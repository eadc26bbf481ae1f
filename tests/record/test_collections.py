"""Garbage collection is a pseudo-callee of whoever sets it off, and the program sees nothing of how that is known."""

import json
from collections import Counter

import pytest

from tests.record.both_ways import run_both_ways

pytestmark = pytest.mark.interpreter

NAME = "(garbage collection)"
FEW = """
import gc
gc.collect(); gc.disable()

def work(n): return sum(range(n))
def handle(i):
    work(300); work(200)
    if i % 100 == 7: {collect}
def main():
    for i in range(3000): handle(i)
main()
"""
CALLBACKS = """
import gc, sys
print(gc.callbacks, len(gc.callbacks), type(gc.callbacks))
print([x for x in gc.get_objects() if 'collecting' in getattr(x, '__name__', '')])
seen = []
def own(phase, info): seen.append((phase, info['generation']))
def late(phase, info): seen.append('late'); raise KeyError(phase)
def collect(): gc.collect()
sys.unraisablehook = lambda one: seen.append((type(one.exc_value).__name__, one.object.__name__))
gc.callbacks.append(own); collect(); print(seen); seen.clear()
gc.callbacks.append(late); collect(); print(seen); seen.clear()
gc.callbacks.remove(own); collect(); print(seen); seen.clear()
gc.callbacks.clear(); collect(); print(seen, gc.callbacks)
gc.callbacks = [own]; collect(); print(seen)
class Cycle:
    def __init__(self): self.me = self
    def __del__(self): finish()
def finish(): seen.append('finished')
def make(): Cycle()
make(); collect(); print(seen)
"""
DEEP = """
import gc, sys
sys.setrecursionlimit(200)
def down(n):
    try:
        return down(n + 1)
    except RecursionError:
        return [[] for _ in range(5)]
gc.set_threshold(1)
kept = [down(0) for _ in range(300)]
print(len(kept))
"""
FORKS = """
import gc, os
def collect(): gc.collect()
collect()
child = os.fork()
if not child: collect(); os._exit(0)
os.waitpid(child, 0); print('both')
"""


def run(tmp_path, text, **how):
    (tmp_path / "app.py").write_text(text)
    return run_both_ways(tmp_path, ("app.py",), **how)


def parents(tables):
    """Function → collections that it set off."""
    names = {row[0]: row[1] for row in tables["components"]} | {-1: "the start"}
    callers = {row[0]: names[row[2]] for row in tables["calltree"]}
    counts = {row[0]: row[2] for row in tables["moments"] if row[1] == "time"}
    found = Counter()
    for row in tables["calltree"]:
        if names[row[2]] == NAME:
            found[callers[row[1]]] += counts[row[0]]
    return found


def test_it_is_told_where_it_ran_and_calls_stay_as_they_are(tmp_path):
    both = run(tmp_path, FEW.replace("{collect}", "gc.collect()"), options=("--select", "app.*"))
    tables = both.recordings[0].tables()
    assert both.calls() == {"<module>": 1, "work": 6000, "handle": 3000, "main": 1}
    assert both.recordings[0].run.calls == 9002
    assert both.recordings[0].run.functions == 4
    assert parents(tables)["app.handle"] == 30
    rows = {row[0]: row[1] for row in tables["components"]}
    events = {rows[row[0]]: row[2] for row in tables["component_costs"] if row[1] == "events"}
    assert events == {"app.<module>": 9002, "app.main": 9001, "app.handle": 9000, "app.work": 6000, NAME: 0}
    spans = {rows.get(next(one[2] for one in tables["calltree"] if one[0] == row[4])) for row in tables["spans"]}
    assert NAME in spans, "it stands among the spans of the worst"


def test_it_is_the_first_source_of_variance(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from perflaw.cli.variance import command

    both = run(tmp_path, FEW.replace("{collect}", "gc.collect()"))
    monkeypatch.chdir(both.recordings[0].folder.parents[3])
    done = CliRunner().invoke(
        command, ["-e", "both", "app.handle", "--metric", "cpu", "--json"], catch_exceptions=False
    )
    explanation = json.loads(done.output)["function"]
    assert explanation["sources"][0]["component"] == NAME
    assert explanation["sources"][0]["cf_net"] > 0.5


def test_without_collections_there_is_none(tmp_path):
    [recording] = run(tmp_path, FEW.replace("{collect}", "pass").replace("gc.collect(); ", "")).recordings
    assert "app.handle" not in parents(recording.tables())


def test_the_programs_list_is_its_own(tmp_path):
    both = run(tmp_path, CALLBACKS)
    first, *_, last = both.stdout.splitlines()
    assert first == "[] 0 <class 'list'>"
    assert last == "['finished']"
    tables = both.recordings[0].tables()
    assert parents(tables)["app.collect"] == 6
    names = {row[0]: row[1] for row in tables["components"]}
    component = {row[0]: names.get(row[2]) for row in tables["calltree"]}
    within = {component[row[0]] for row in tables["calltree"] if component.get(row[1]) == NAME}
    assert within == {"app.own", "app.late", "app.<lambda>:9", "app.Cycle.__del__"}, (
        "what runs inside is called from there"
    )


def test_at_the_limit_of_recursion_nothing_is_said(tmp_path):
    assert run(tmp_path, DEEP).stdout == "300\n"


def test_a_forked_child_tells_its_own(tmp_path):
    both = run(tmp_path, FORKS)
    assert [parents(one.tables())["app.collect"] for one in both.recordings] == [1, 1]


def test_where_it_comes_often_it_costs_little(tmp_path):
    """Two records a collection, whatever it does: the events of the functions are not more."""
    text = (
        "import gc\ngc.set_threshold(50)\ndef make(n): return [[] for _ in range(n)]\nfor _ in range(300): make(400)\n"
    )
    [recording] = run(tmp_path, text).recordings
    assert recording.run.lost.missed_calls == 0
    assert sum(parents(recording.tables()).values()) > 500


@pytest.mark.parametrize("metric", ["gc"])
def test_the_metric_is_that_of_the_pseudo_callee(tmp_path, metric):
    both = run(tmp_path, FEW.replace("{collect}", "gc.collect()"), options=("--metric", metric))
    tables = both.recordings[0].tables()
    rows = {row[0]: row[1] for row in tables["components"]}
    own = {rows[row[0]]: row[3] for row in tables["component_costs"] if row[1] == metric}
    assert own[NAME] > 0.9 * sum(own.values()) > 0


GROWING = """
import gc
full = 0
def seen(phase, info):
    global full
    full += phase == 'stop' and info['generation'] == 2
gc.callbacks.append(seen)
def grow(n): return [[i] for i in range(n)]
kept = grow(1_200_000)
gc.callbacks.remove(seen)
gc.collect()
print(full)
"""


@pytest.mark.slow
def test_full_collections_are_counted_with_the_objects_that_survive(tmp_path):
    both = run(tmp_path, GROWING)
    full = int(both.stdout)
    known = both.recordings[0].run.collections
    assert full >= 3
    assert known.full == full, "the program's own gc.collect() is not the interpreter's"
    assert known.middle > 11 * full
    assert 1_100_000 < known.promoted < 1_300_000
    assert known.visited > known.promoted
    assert known.cpu_ns > 0
    assert known.wall_ns > 0
    heap = both.recordings[0].run.machine.heap
    assert known.blocks > 1_200_000, "the lists live when the recording ends"
    assert heap.blocks[0] < heap.blocks[-1]
    assert heap.free_ns[0] < heap.free_ns[-1]
