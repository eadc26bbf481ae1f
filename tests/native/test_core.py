"""The C core against its Python twin: equal to the last bit, whatever a program does."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflaw.record.tree.builder import TreeBuilder
from perflaw.record.tree.call_tree import RecordedTree, to_tables
from perflaw.record.tree.core import Core, Export, load
from perflaw.record.tree.records import CHANGE, ELSEWHERE, ENTER, EXIT, LIBRARY, RECORD, SWITCH, Event, TreeLimits
from perflaw.store.schema import OTHER
from tests.conftest import examples, first
from tests.native.building import NATIVE, make
from tests.native.rings import STOP, WRITTEN, RingFile
from tests.native.streams import Piece, Program, deep_program, wide_program
from tests.record.test_tree_builder import Stream, trees
from tests.record.tree_objects import from_tables

USUAL = TreeLimits()
METRICS = ("time", "cpu", "events", "bytes", "blocks")


def tree_of_core(
    library: Path, folder: Path, pieces: list[Piece], seed: int = 0, limits: TreeLimits = USUAL
) -> RecordedTree:
    core, rings = Core(library, seed, METRICS, limits), {}
    capacity = 1 << max(sum(len(events) for _, events in pieces), 1).bit_length()
    for number, events in pieces:
        if number not in rings:
            rings[number] = RingFile(folder / f"{number}.ring", capacity)
            core.attach(rings[number].path)
        rings[number].append(events)
        while core.step(1000) or core.asks():
            pass
    return from_tables(core.finish())


def tree_of_twin(pieces: list[Piece], seed: int = 0, limits: TreeLimits = USUAL) -> RecordedTree:
    builder = TreeBuilder(seed, METRICS, limits)
    for ring, events in pieces:
        builder.feed(ring, events)
    return builder.finish()


def assert_parity(
    library: Path, folder: Path, pieces: list[Piece], seed: int = 0, limits: TreeLimits = USUAL
) -> RecordedTree:
    core, twin = tree_of_core(library, folder, pieces, seed, limits), tree_of_twin(pieces, seed, limits)
    assert len(core.nodes) == len(twin.nodes)
    for mine, its in zip(core.nodes, twin.nodes, strict=True):
        assert mine == its
    assert core == twin
    assert from_tables(to_tables(twin)) == twin
    assert_identity(core)
    return core


def assert_identity(tree: RecordedTree) -> None:
    """ΣΣP == ΣX² on every node, in every lane."""
    for node in tree.nodes:
        for lane, sums in enumerate(node.lanes):
            products = (row[lane] * (1 if i == j else 2) for (i, j), row in node.pairs.items())
            assert sum(products) == sums.sum_xx


def test_unit_tests_pass_under_sanitizers(native):
    out = subprocess.run([native / "unit"], capture_output=True, text=True)
    assert out.returncode == 0, out.stdout + out.stderr
    assert out.stdout.splitlines()[-1].endswith(" passed, 0 failed")


shared_folder = settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # every example writes its files anew


@shared_folder
@given(calls=st.lists(trees(), max_size=4), seed=st.integers(0, 2**62))
def test_plain_calls_give_what_the_twin_gives(library, tmp_path, calls, seed):
    stream = Stream()
    for call in calls:
        stream.call(call)
    assert_parity(library, tmp_path, [(1, stream.events)], seed)


steps = st.tuples(st.integers(0, 1), st.integers(0, 15), st.integers(0, 10**6), st.integers(0, 10**12))
bounds = st.builds(
    TreeLimits, st.integers(1, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 3), spans=st.integers(0, 30)
)


@shared_folder
@given(taken=st.lists(steps, max_size=200))
def test_everything_at_once_gives_what_the_twin_gives(library, tmp_path, taken):
    program = Program(more=True)
    for step in taken:
        program.step(*step)
    assert_parity(library, tmp_path, program.pieces)


@shared_folder
@given(taken=st.lists(steps, max_size=200), limits=bounds)
def test_bounds_are_met_where_the_twin_meets_them(library, tmp_path, taken, limits):
    program = Program(more=True)
    for step in taken:
        program.step(*step)
    assert_parity(library, tmp_path, program.pieces, limits=limits)


@pytest.mark.parametrize(
    ("seed", "limits"),
    first(2, [(1, USUAL), (2, USUAL), (3, USUAL), (4, TreeLimits(nodes=100, links=90, pairs=80, components=5))]),
)
def test_long_random_programs_give_what_the_twin_gives(library, tmp_path, seed, limits):
    random, program = Random(seed), Program(codes=seed * 3, sites=seed + 1, more=True)
    for _ in range(20000):
        thread = 1 if random.random() < 0.97 else 2
        choice, argument = random.randrange(len(program.actions)), random.randrange(10**6)
        program.step(thread, choice, argument, random.randrange(1 << random.randrange(40)))
    tree = assert_parity(library, tmp_path, program.pieces, seed, limits)
    assert tree.calls > 1000
    assert any(call.parts for calls in tree.samples.values() for call in calls)
    assert bool(tree.folded) == bool(tree.unlinked) == (limits != USUAL)


@pytest.mark.slow
def test_many_callees_and_samples_give_what_the_twin_gives(library, tmp_path):
    tree = assert_parity(library, tmp_path, wide_program(seed=4, calls=20000), 4)
    assert any((OTHER, OTHER) in node.pairs for node in tree.nodes)


def test_deep_chains_give_what_the_twin_gives(library, tmp_path):
    assert_parity(library, tmp_path, deep_program(depth=60, rounds=40))


def test_what_happens_while_a_stack_is_switched_out_is_no_cost_of_it(library, tmp_path):
    events = [
        (0, 1, 1, 0, -1, ENTER),
        (10, 7, 0, 0, -1, SWITCH),
        (12, 2, 2, 0, -1, ENTER),
        (3, 0, 1, -1, -1, CHANGE),
        (32, 2, 2, -1, -1, EXIT),
        (40, 0, 0, 0, -1, SWITCH),
        (45, 1, 1, -1, -1, EXIT),
    ]
    tree = assert_parity(library, tmp_path, [(1, events)])
    assert [[sums.sum_x for sums in node.lanes[:3]] for node in tree.nodes[1:]] == [[15, 15, 1], [20, 17, 1]]


def test_contexts_beyond_the_bound_are_a_node_a_function(library, tmp_path):
    events = []
    for site in range(10):
        events += [(site * 4, 1, 1, 0, -1, ENTER), (site * 4 + 1, 2, 2, site, -1, ENTER)]
        events += [(site * 4 + 2, 2, 2, -1, -1, EXIT), (site * 4 + 3, 1, 1, -1, -1, EXIT)]
    tree = assert_parity(library, tmp_path, [(1, events)], limits=TreeLimits(nodes=5))
    assert [(node.site, node.n) for node in tree.nodes[1:]] == [(0, 10), (0, 1), (1, 1), (2, 1), (ELSEWHERE, 7)]
    assert tree.folded == 7


OWN, CALLED_BACK, FIRST_LIBRARY = 1, 2, 3


def library_calls(paths: list[tuple[int, ...]], functions: int) -> list[Event]:
    """Calls of OWN that call functions along a path, one below the other; those from FIRST_LIBRARY on are libraries'."""
    events: list[Event] = [(0, 0, FIRST_LIBRARY + one, -1, -1, LIBRARY) for one in range(functions)]
    for now, path in enumerate(paths):
        for depth, code in enumerate((OWN, *path)):
            events.append((now, depth + 1, code, 0, -1, ENTER))
        events += [(now, depth, OWN, -1, -1, EXIT) for depth in range(len(path) + 1, 0, -1)]
    return events


def test_a_library_beyond_its_bound_leaves_the_contexts_of_own_functions_apart(library, tmp_path):
    chain = tuple(FIRST_LIBRARY + at for at in range(12))
    paths = [(*chain[:length], CALLED_BACK) for length in (0, 4, 8, 12)]
    events = library_calls(paths, len(chain))
    tree = assert_parity(library, tmp_path, [(1, events)], limits=TreeLimits(nodes=12))
    [own] = [number for number, node in enumerate(tree.nodes) if node.code == OWN]
    assert tree.nodes[own].n == 4
    assert [node.n for node in tree.nodes if node.code == CALLED_BACK] == [1, 1, 1, 1]
    assert all(node.site != ELSEWHERE for node in tree.nodes if node.code in (OWN, CALLED_BACK))
    # nine library functions fill three quarters; the others hang below the own function that their stretch begins at
    elsewhere = [node for node in tree.nodes if node.site == ELSEWHERE]
    assert [(node.parent, node.code) for node in elsewhere] == [(own, code) for code in chain[9:]]


@pytest.mark.slow
def test_the_recursion_of_a_library_does_not_use_up_the_contexts(library, tmp_path):
    """Functions that call each other in any order have thousands of contexts; beyond half of the bound they are folded."""
    random, codes = Random(5), [FIRST_LIBRARY + at for at in range(4)]
    paths = [tuple(random.choice(codes) for _ in range(12)) for _ in range(1500)]
    tree = assert_parity(library, tmp_path, [(1, library_calls(paths, len(codes)))], limits=TreeLimits(nodes=2000))
    assert 1000 < len(tree.nodes) < 1500
    assert tree.folded == 0
    assert tree.calls == 1500 * 13


def hostile(random: Random, count: int) -> np.ndarray:
    """Records as no tracer writes them; half of them look right at first sight."""
    rows = np.frombuffer(random.randbytes(count * RECORD.itemsize), RECORD).copy()
    tame = np.array([random.random() < 0.8 for _ in range(count)])
    for name, most in (("code", 9), ("site", 3), ("kind", 15), ("frame", 6)):
        rows[name][tame] %= most
    return rows


def test_records_of_any_content_do_no_harm(native, tmp_path):
    make(native, "safe")
    ring = RingFile(tmp_path / "ring", 1 << 17)
    ring.append_rows(hostile(Random(1), 1 << 17))
    script = (
        "import sys; from pathlib import Path; from perflaw.record.tree.core import Core\n"
        "core = Core(Path(sys.argv[1]), 1, ('time', 'cpu', 'events', 'bytes')); core.attach(Path(sys.argv[2]))\n"
        "import numpy as np; written = np.memmap(sys.argv[2], '<u8', 'r+', 64, 1)\n"
        "taken = 0\n"
        "while taken < 5 * 65536:\n"
        "    step = core.step()\n"
        "    assert step or core.asks()\n"
        "    taken += step\n"
        "    written[0] += step\n"
        "print(len(core.finish().nodes))"
    )
    sanitizer = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    environment = {**os.environ, "LD_PRELOAD": sanitizer.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0"}
    command = [sys.executable, "-c", script, native / "safe" / "libperflaw_core.so", ring.path]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10


@pytest.mark.parametrize("written", [1 << 60, 5, 6 + 1025])
def test_a_ring_that_lies_is_closed_and_told(library, tmp_path, written):
    ring, honest = (RingFile(tmp_path / name, 1024) for name in ("lies", "honest"))
    core = Core(library, 0)
    for each in (ring, honest):
        each.append([(0, 1, 1, 0, -1, ENTER), (1, 1, 1, -1, -1, EXIT)] * 3)
        core.attach(each.path)
    assert core.step() == 12
    ring.set_word(WRITTEN, written)
    assert core.step() == 0
    assert ring.word(STOP) == 1
    honest.append([(0, 1, 1, 0, -1, ENTER), (1, 1, 1, -1, -1, EXIT)])
    assert core.step() == 2
    tree = core.finish()
    assert (tree.calls, tree.head("unread_rings")) == (7, 1)


def test_rings_take_turns(library, tmp_path):
    rings = [RingFile(tmp_path / f"{number}", 1 << 12) for number in range(3)]
    core = Core(library, 0)
    for ring in rings:
        ring.append([(0, 1, 1, 0, -1, ENTER)] * 1000)
        core.attach(ring.path)
    assert core.step(900) == 900
    assert all(ring.word(128) >= 256 for ring in rings)
    assert core.step() == 2100
    core.stop()
    assert [ring.word(STOP) for ring in rings] == [1, 1, 1]
    core.leave()
    assert core.step() == 0
    assert core.finish().nodes["open"].sum() == 3000


def test_a_file_that_is_no_ring_is_refused(library, tmp_path):
    (tmp_path / "ring").write_bytes(b"x" * 8192)
    core = Core(library, 0)
    with pytest.raises(OSError, match="Protocol error"):
        core.attach(tmp_path / "ring")
    with pytest.raises(FileNotFoundError):
        core.attach(tmp_path / "none")


def test_the_record_is_laid_out_as_numpy_reads_it(library):
    fields = RECORD.fields
    assert fields is not None
    told = load(library).core_event_layout().decode()
    assert told.splitlines() == [f"{name} {at} {kind.itemsize}" for name, (kind, at) in fields.items()]


def test_rows_are_as_large_as_numpy_reads_them(library):
    sizes = {table: load(library).core_row_size(table) for table in Export}
    assert sizes == {table: table.row.itemsize for table in Export}
    assert load(library).core_row_size(ctypes.c_uint32(len(Export))) == 0


@pytest.mark.slow
def test_rings_and_trees_have_no_races(native):
    """Nine threads write and three read, under ThreadSanitizer, which wants addresses that are not random."""
    make(native, str(native / "threads"))
    done = subprocess.run(["setarch", "-R", native / "threads"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "0 failures"


@pytest.mark.slow
def test_what_the_fuzzer_of_rings_has_found_stays_mended(native):
    """The corpus under AddressSanitizer, without changes; benchmarks/fuzz.py goes on from it."""
    make(native, str(native / "fuzz_core"))
    corpus = sorted((NATIVE.parent / "benchmarks" / "corpora" / "rings").iterdir())
    done = subprocess.run([native / "fuzz_core", *corpus], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Executed ") == len(corpus)
