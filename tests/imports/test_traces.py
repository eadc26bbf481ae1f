"""Traces of other tools: the same moments as from the events themselves, whatever the format; refusals; damage."""

from __future__ import annotations

import cProfile
import gzip
import json
import pstats
import re
import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflaw.errors import PerflawError
from perflaw.imports.registry import read_trace
from perflaw.imports.runs import core_file
from perflaw.record.tree.tables import tabulate
from perflaw.store.experiment import open_experiment
from tests.conftest import assert_identities, costs_of, examples

LIBRARY = core_file(lambda text: None)


def calls():
    """A call: (name, ns before, calls within, ns after); none is empty, so times alone say what lies in what."""
    times = st.integers(1, 10**7)
    leaf = st.tuples(st.sampled_from("abc"), times, st.just([]), times)
    inner = st.recursive(leaf, lambda some: st.tuples(st.sampled_from("abc"), times, st.lists(some, max_size=4), times))
    return st.lists(inner, min_size=1, max_size=4)


class Planted:
    """Calls one after the other from a moment on, their spans, and what their moments are by a plain recount."""

    def __init__(self, forest, clock=10**15 + 1):
        self.clock, self.spans, self.marks, self.costs = clock, [], [], {}
        for call in forest:
            self.call(call, (), "")

    def call(self, call, path, parent):
        name, before, within, after = call
        path = folded((*path, name))
        start, number = self.clock, len(self.spans)
        self.spans.append(None)
        self.marks.append(("B", name, start))
        self.clock += before
        for inner in within:
            self.call(inner, path, f"s{number}")
        self.clock += after
        self.marks.append(("E", name, self.clock))
        self.spans[number] = (f"s{number}", parent, name, start, self.clock)
        self.costs.setdefault(path, []).append(self.clock - start)

    def moments(self):
        return {
            path: (len(costs), sum(costs), sum(x * x for x in costs), min(costs), max(costs))
            for path, costs in self.costs.items()
        }


def folded(path):
    """Where a caller stands on a path and calls the same callee for the third time, the first of these calls stands for it."""
    edges = list(zip(("", *path), path, strict=False))
    return path if edges.count(edges[-1]) < 3 else path[: edges.index(edges[-1]) + 1]


def us(ns):
    """As trace-event JSON has it: µs, the rest as a fraction, in decimal text as no float could hold it."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def begin_end(planted, pid=1, tid=1):
    return [f'{{"ph":"{ph}","name":"{name}","ts":{us(ts)},"pid":{pid},"tid":{tid}}}' for ph, name, ts in planted.marks]


def complete(planted, by_end=False, pid=1, tid=1):
    spans = sorted(planted.spans, key=lambda one: one[4] if by_end else one[3])
    return [
        f'{{"ph":"X","name":"{name}","ts":{us(start)},"dur":{us(end - start)},"pid":{pid},"tid":{tid}}}'
        for _, _, name, start, end in spans
    ]


def document(events):
    return '{"traceEvents":[' + ",\n".join(events) + "]}"


def otlp(spans, service="shop"):
    told = [
        {
            "traceId": "t", "spanId": identity, "parentSpanId": parent, "name": name,
            "startTimeUnixNano": str(start), **({"endTimeUnixNano": str(end)} if end else {}), **more,
        }
        for identity, parent, name, start, end, *rest in spans
        for more in [rest[0] if rest else {}]
    ]  # fmt: skip
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": told}]}]})


def tables_of(trace, library=LIBRARY):
    """The tables of each process; those of a trace that the C core has read equal those of the Python reader."""
    found = []
    for process in trace.processes:
        found.append(tabulate("0001", process.tree(library, 7), process.definitions))
        assert_identities(found[-1])
    return found


def moments_of(tables):
    """Path of names → n, ΣX, ΣX², least, most of time."""
    names = {row[0]: row[1] for row in tables["components"]}
    paths = {0: ()}
    for node, parent, code, *_ in tables["calltree"]:
        if node:
            paths[node] = (*paths[parent], names[code])
    return {paths[row[0]]: tuple(row[2:7]) for row in tables["moments"] if row[1] == "time" and row[2]}


def read(folder, text, name="trace.json"):
    """The trace that the Python reader finds in a file, after a look that the C core finds the same."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert_core_reads_the_same(path)
    return read_trace(path)


def assert_core_reads_the_same(path, also_samples=True):
    here, there = read_trace(path, LIBRARY), read_trace(path)
    assert (here.tool, here.tick_ns, here.lost, here.first()) == (there.tool, there.tick_ns, there.lost, there.first())
    assert len(here.processes) == len(there.processes)
    for one, other in zip(here.processes, there.processes, strict=True):
        mine, its = (tabulate("0001", process.tree(LIBRARY, 7), process.definitions) for process in (one, other))
        assert (one.name, one.pid, +one.notes) == (other.name, other.pid, +other.notes)
        assert (one.first_stamp(), one.last_stamp()) == (other.first_stamp(), other.last_stamp())
        for name in mine:
            if also_samples or name in ("components", "calltree", "moments", "links", "pairs"):
                assert list(mine[name]) == list(its[name]), name


def assert_both_read_the_same(path, data):
    """The same calls, or a refusal in the same words, by the C core and by the Python reader."""
    path.write_bytes(data)
    try:
        read_trace(path)
    except PerflawError as error:
        with pytest.raises(type(error)) as found:
            read_trace(path, LIBRARY)
        assert str(found.value) == str(error)
    else:
        assert_core_reads_the_same(path, also_samples=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("traces")


FORMATS = {
    "begin and end": lambda planted: document(begin_end(planted)),
    "complete": lambda planted: document(complete(planted)),
    "complete, written at their ends": lambda planted: document(complete(planted, by_end=True)),
    "an array": lambda planted: "[" + ",".join(begin_end(planted)) + "]",
    "gzip": lambda planted: gzip.compress(document(complete(planted)).encode()),
    "otlp": lambda planted: otlp(planted.spans),
    "otlp, newest first": lambda planted: otlp(planted.spans[::-1]),
}


@pytest.mark.parametrize("write", FORMATS.values(), ids=FORMATS)
@settings(max_examples=examples(25), deadline=None)
@given(forest=calls())
def test_moments_are_those_of_a_plain_recount(folder, write, forest):
    planted = Planted(forest)
    trace = read(folder, write(planted))
    (tables,) = tables_of(trace)
    assert moments_of(tables) == planted.moments()
    assert not +trace.processes[0].notes


@settings(max_examples=examples(20), deadline=None)
@given(first=calls(), second=calls(), other=calls())
def test_threads_and_processes_are_by_themselves(folder, first, second, other):
    one, two, three = Planted(first), Planted(second, 10**15), Planted(other, 10**15 + 9)
    events = begin_end(two, tid=2) + begin_end(one) + complete(three, pid=2)
    here, there = tables_of(read(folder, document(events)))
    together = {}
    for planted in (one, two):
        for path, costs in planted.costs.items():
            together.setdefault(path, []).extend(costs)
    assert {path: row[:2] for path, row in moments_of(here).items()} == {
        path: (len(costs), sum(costs)) for path, costs in together.items()
    }
    assert moments_of(there) == three.moments()


@settings(max_examples=examples(20), deadline=None)
@given(calls())
def test_the_python_twin_builds_the_same(folder, forest):
    trace = read(folder, document(complete(Planted(forest))))
    assert {name: list(table) for name, table in tables_of(trace)[0].items()} == {
        name: list(table) for name, table in tables_of(trace, None)[0].items()
    }


def test_begin_and_end_on_one_stamp_keep_their_order(folder):
    events = [("B", "a", 5), ("B", "b", 5), ("E", "b", 5), ("E", "a", 5), ("B", "c", 5), ("E", "c", 6)]
    text = json.dumps([{"ph": ph, "name": name, "ts": ts, "pid": 1, "tid": 1} for ph, name, ts in events])
    (tables,) = tables_of(read(folder, text))
    assert moments_of(tables) == {
        ("a",): (1, 0, 0, 0, 0),
        ("a", "b"): (1, 0, 0, 0, 0),
        ("c",): (1, 1000, 10**6, 1000, 1000),
    }


def test_begin_and_end_mixed_with_complete_events(folder):
    events = [
        {"ph": "B", "name": "a", "ts": 0, "pid": 1, "tid": 1},
        {"ph": "X", "name": "b", "ts": 2, "dur": 3, "pid": 1, "tid": 1},
        {"ph": "E", "ts": 9, "pid": 1, "tid": 1},
    ]
    (tables,) = tables_of(read(folder, json.dumps({"traceEvents": events})))
    assert {path: row[1] for path, row in moments_of(tables).items()} == {("a",): 9000, ("a", "b"): 3000}


def test_incomplete_calls_are_open_and_the_rest_is_said(folder):
    rows = [("B", "main", 0), ("E", "early", 1), ("B", "f", 2), ("B", "lost", 3), ("E", "f", 5), ("b", "async", 6)]
    text = "[" + ",".join(json.dumps({"ph": ph, "name": name, "ts": ts, "pid": 1}) for ph, name, ts in rows) + ","
    trace = read(folder, text)
    (tables,) = tables_of(trace)
    assert moments_of(tables) == {("main", "f"): (1, 3000, 9 * 10**6, 3000, 3000)}
    assert {row[1]: row[8] for row in tables["components"]} == {"main": 1, "f": 0, "lost": 1}
    assert sorted(trace.processes[0].notes.values()) == [1, 1]
    assert "has no end" in trace.lost


def test_overlaps_of_a_thread_are_put_aside_and_a_tick_is_cut(folder):
    spans = [("a", 0, 10), ("b", 5, 6), ("late", 8, 4), ("next", 20, 5), ("c", 21, 5)]
    events = [{"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": 1} for name, ts, dur in spans]
    trace = read(folder, json.dumps(events))
    (tables,) = tables_of(trace)
    found = {path: row[1] // 1000 for path, row in moments_of(tables).items()}
    assert found == {("a",): 10, ("a", "b"): 5, ("late",): 4, ("next",): 5, ("next", "c"): 4}
    assert sum(trace.processes[0].notes.values()) == 3


def test_of_overlapping_spans_the_callees_are_those_waited_for(folder):
    """Three requests at once: the parent waits for the last one, and before that for what ended before it began."""
    spans = [
        ("1", "", "page", 0 + 1, 101),
        ("2", "1", "login", 1, 11),
        ("3", "1", "price", 11, 31),
        ("4", "1", "stock", 11, 91),
        ("5", "1", "mail", 50, 151),
        ("6", "4", "select", 21, 81),
        ("7", "9", "orphan", 5, 6),
        ("8", "", "open", 7, None),
    ]
    trace = read(folder, otlp([*spans, spans[0]]))
    (tables,) = tables_of(trace)
    assert {path: row[1] for path, row in moments_of(tables).items()} == {
        ("page",): 100, ("page", "login"): 10, ("page", "stock"): 80, ("page", "stock", "select"): 60,
        ("price",): 20, ("mail",): 101, ("orphan",): 1,
    }  # fmt: skip
    assert {what.split(":")[0][:20]: count for what, count in trace.processes[0].notes.items()} == {
        "spans overlap anothe": 1, "spans do not lie in ": 1, "spans have a parent ": 1, "spans occur twice in": 1,
    }  # fmt: skip
    assert {row[1]: row[8] for row in tables["components"]}["open"] == 1


def test_services_lines_and_numbers_of_spans(folder):
    told = [
        {"key": "code.filepath", "value": {"stringValue": "shop.py"}},
        {"key": "code.lineno", "value": {"intValue": "12"}},
        {"key": "cart.items", "value": {"intValue": "7"}},
        {"key": "user", "value": {"stringValue": "8"}},
    ]
    lines = otlp([("1", "", "buy", 1, 9, {"attributes": told})]) + "\n" + otlp([("2", "1", "pay", 2, 5)], "bank")
    trace = read(folder, lines)
    (tables,) = tables_of(trace)
    assert moments_of(tables)[("shop: buy", "bank: pay")][1] == 3
    assert [row[1:4] for row in tables["components"] if row[1] == "shop: buy"] == [("shop: buy", "shop.py", 12)]
    assert trace.processes[0].definitions.features == {1: "cart_items"}


def test_variance_of_an_imported_trace_is_exact(perflaw, tmp_path):
    """One call in ten of g takes 100 ms, else 1 ms; f has 5 ms of its own: CoVs and shares are known."""
    costs = [100 if number % 10 == 0 else 1 for number in range(200)]
    planted = Planted([("f", 2_000_000, [("g", cost * 500_000, [], cost * 500_000)], 3_000_000) for cost in costs])
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(document(complete(planted)).encode()))
    assert "imported 400 calls, 2 functions" in perflaw("import", "-e", "t", "t.json.gz").stderr
    (recording,) = open_experiment("t", tmp_path).recordings()
    assert_identities(recording.tables())
    assert recording.run.complete
    assert costs_of(recording)["f"][2] == sum(costs) * 10**6 + 200 * 5 * 10**6
    mean = Fraction(sum(costs), 200)
    variance = Fraction(sum(x * x for x in costs), 200) - mean**2
    found = json.loads(perflaw("variance", "-e", "t", "--json").stdout)
    covs = {float(variance) ** 0.5 / float(mean), float(variance) ** 0.5 / float(mean + 5)}
    numbers = [float(one) for one in re.findall(r"\d+\.\d+", json.dumps(found))]
    for cov in covs:
        assert any(abs(number - cov) < 1e-6 for number in numbers), cov


def test_null_trace_has_no_task(perflaw, tmp_path):
    planted = Planted([("f", 2_000, [("g", 500_000, [], 500_000)], 3_000)] * 100)
    (tmp_path / "t.json").write_text(document(begin_end(planted)))
    perflaw("import", "t.json", "--feature", "n=3")
    (recording,) = open_experiment("default", tmp_path).recordings()
    assert recording.run.features == {"n": 3.0}
    assert "Task" not in perflaw("variance").stdout


def test_a_trace_of_viztracer(perflaw, tmp_path):
    program = "def leaf(n):\n    return n\ndef f(n):\n    leaf(n)\nfor n in range(30):\n    f(n)\n"
    (tmp_path / "app.py").write_text(program)
    command = [sys.executable, "-m", "viztracer", "--log_func_args", "-o", "v.json", "app.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "imported" in perflaw("import", "v.json").stderr
    (recording,) = open_experiment("default", tmp_path).recordings()
    tables = recording.tables()
    assert_identities(tables)
    rows = {row[1]: row for row in tables["components"]}
    assert (rows["app.f"][2], rows["app.f"][3], rows["app.f"][4], rows["app.f"][7]) == (
        str(tmp_path / "app.py"), 3, "python", 30
    )  # fmt: skip
    calls = [
        row for row in json.loads((tmp_path / "v.json").read_text())["traceEvents"] if row["name"].startswith("f (")
    ]
    expected = sum(round(row["dur"] * 1000) for row in calls)
    assert abs(costs_of(recording)["app.f"][2] - expected) <= len(calls)
    assert moments_of(tables)[("builtins.exec", "app.<module>", "app.f", "app.leaf")][0] == 30
    assert {row[3] for row in tables["features"]} >= {float(n) for n in range(30)}


def test_processes_are_runs(perflaw, tmp_path):
    one, two = Planted([("a", 5, [], 5)]), Planted([("b", 5, [], 5)])
    names = [f'{{"ph":"M","name":"process_name","pid":{pid},"args":{{"name":"p{pid}"}}}}' for pid in (1, 2)]
    (tmp_path / "t.json").write_text(document(begin_end(one) + begin_end(two, pid=2) + names))
    assert "2 processes" in perflaw("import", "t.json").stderr
    first, second = open_experiment("default", tmp_path).recordings()
    assert (first.run.target, first.run.pid, second.run.pid, second.run.parent) == ("p1", 1, 2, first.run.id)


PSTATS = "statistics of cProfile"
REFUSED = {
    "a.b;c.d 12\na.b 3\n": "collapsed stacks",
    "python  1234 [001] 12.345678:  1000 cycles:\n\t  7f main (/bin/x)\n": "perf script",
    "# callgrind format\nversion: 1\n": "callgrind",
    "Flat profile:\n\nEach sample counts as 0.01 seconds.\n": "gprof",
    b"gmon\1\0\0\0": "gprof",
    b"PERFILE2\0\0": "perf.data",
    b"\x0a\x04\x08\x01\x10\x02\x12\x00": "pprof",
    '{"$schema":"https://www.speedscope.app/file-format-schema.json","profiles":[{"type":"sampled"}]}': "speedscope",
    '{"nodes":[],"samples":[],"timeDeltas":[]}': "V8",
    '{"traceEvents":[{"ph":"P","ts":1,"name":"x"}],"stackFrames":{}}': "without calls",
    "<?xml version='1.0'?><svg></svg>": "flame graph",
}


@pytest.mark.parametrize("text", REFUSED, ids=REFUSED.values())
def test_profiles_without_single_calls_are_refused(perflaw, tmp_path, text):
    (tmp_path / "p").write_bytes(text if isinstance(text, bytes) else text.encode())
    said = perflaw("import", "p", status=2).stderr
    assert REFUSED[text] in said
    assert "no single call" in said
    assert not (tmp_path / ".perflaw").exists()


def test_statistics_of_cprofile_are_refused(perflaw, tmp_path):
    profile = cProfile.Profile()
    profile.runcall(sum, [1])
    pstats.Stats(profile).dump_stats(tmp_path / "p")
    assert PSTATS in perflaw("import", "p", status=2).stderr


DAMAGED = {
    '{"traceEvents": [\n{"ph": "B",, }]}': "t.json:2:12: not JSON",
    '{"traceEvents": [{"ph": "B", "name": "a", "ts": 0}, {"ph": "X", "name": "f", "dur": 1}]}': "event 2 of traceEvents",
    '[{"ph": "X", "name": "f", "ts": 1, "dur": -5}]': "dur is negative",
    '[{"ph": "X", "name": "f", "ts": 1e300, "dur": 5}]': "ts is too large",
    '[{"ph": "X", "name": "f", "ts": NaN, "dur": 5}]': "ts is not a number: 'nan'",
    '[{"ph": "X", "ts": 1, "dur": 5}]': "no name",
    '[{"ph": "M"}, 2]': "event 2 of traceEvents: it is not an object",
    "[1, 2]": "unknown tool, a list of 2",
    '{"benchmarks": [], "machine_info": {}}': "results of pytest-benchmark",
    "[]": "no call in it",
    '{"resourceSpans": []}': "no call in it",
    '{"a": 1}': "unknown tool",
    "": "empty",
    "hello\n": "not a trace",
    b"\x1f\x8b\x08\0": "gzip that cannot be unpacked",
    b"[\xff": "byte 1",
    otlp([("1", "", "f", 9, 5)]): "span 1: it ends before it begins",
    otlp([("1", "2", "f", 1, 5), ("2", "1", "f", 1, 5)]): "circle",
}


@pytest.mark.parametrize("text", DAMAGED, ids=DAMAGED.values())
def test_damage_is_told_with_its_place(perflaw, tmp_path, text):
    (tmp_path / "t.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    said = perflaw("import", "t.json", status=2).stderr
    assert said.startswith("perflaw: t.json")
    assert "unexpected" not in said
    assert DAMAGED[text] in said
