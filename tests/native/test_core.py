"""The native core: its unit tests under sanitizers, parity with the Python twin, and what a kill leaves behind."""

from __future__ import annotations

import shutil
import struct
import subprocess
import time
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflaw.collect.layout import RECORD
from tests.collect.test_tree_builder import Stream, trees
from tests.native.streams import Piece, Program, deep_program, text_of_twin, wide_program

NATIVE = Path(__file__).parents[2] / "native"
KILLS = 20


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of freshly built programs."""
    folder = tmp_path_factory.mktemp("native")
    make(folder, "all", "test")
    return folder


def make(folder: Path, *targets: str) -> str:
    command = ["make", "--no-print-directory", "-j2", "-C", str(NATIVE), f"BUILD={folder}", *targets]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def text_of_core(program: Path, folder: Path, pieces: list[Piece], seed: int) -> list[str]:
    """What the C core makes of the events, its lines sorted."""
    arena, words = folder / "arena", []
    for number, (thread, events) in enumerate(pieces):
        file = folder / f"{number}.events"
        file.write_bytes(np.array(events, RECORD).tobytes())
        words.append(f"{thread}:{file}")
    subprocess.run([program, "run", "--seed", str(seed), arena, *words], check=True)
    return sorted(dump(program, arena))


def dump(program: Path, arena: Path) -> list[str]:
    done = subprocess.run([program, "dump", arena], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def without_unused(lines: list[str]) -> list[str]:
    """Codes below the greatest have a row in the core whether or not anything was called by that number."""
    return [line for line in lines if not (line.startswith("code ") and line.endswith(" 0 0"))]


def assert_parity(program: Path, folder: Path, pieces: list[Piece], seed: int = 0) -> None:
    core = without_unused(text_of_core(program, folder, pieces, seed))
    assert core == without_unused(text_of_twin(pieces, seed))


def test_unit_tests_pass_under_sanitizers(native):
    out = subprocess.run([native / "unit"], capture_output=True, text=True)
    assert out.returncode == 0, out.stdout + out.stderr
    assert out.stdout.splitlines()[-1].endswith(" passed, 0 failed")


shared_folder = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # every example writes its files anew


@shared_folder
@given(calls=st.lists(trees(), max_size=4), seed=st.integers(0, 2**62))
def test_plain_calls_give_what_the_twin_gives(native, tmp_path, calls, seed):
    stream = Stream()
    for call in calls:
        stream.call(call)
    assert_parity(native / "safe_replay", tmp_path, [(1, stream.events)], seed)


steps = st.tuples(st.integers(0, 1), st.integers(0, 7), st.integers(0, 10**6), st.integers(0, 10**12))


@shared_folder
@given(taken=st.lists(steps, max_size=150))
def test_generators_recursion_and_the_dead_give_what_the_twin_gives(native, tmp_path, taken):
    program = Program()
    for step in taken:
        program.step(*step)
    assert_parity(native / "safe_replay", tmp_path, program.pieces)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_long_random_programs_give_what_the_twin_gives(native, tmp_path, seed):
    random, program = Random(seed), Program(codes=seed * 3, sites=seed + 1)
    for _ in range(20000):
        thread = 1 if random.random() < 0.97 else 2
        program.step(thread, random.randrange(8), random.randrange(10**6), random.randrange(1 << random.randrange(40)))
    assert_parity(native / "safe_replay", tmp_path, program.pieces, seed)


def test_many_callees_and_samples_give_what_the_twin_gives(native, tmp_path):
    pieces = wide_program(seed=4, calls=20000)
    text = text_of_twin(pieces, 4)
    assert any(line.startswith("pair ") and " -2 -2 " in line for line in text)  # some were folded into OTHER
    assert_parity(native / "safe_replay", tmp_path, pieces, 4)


def test_deep_chains_give_what_the_twin_gives(native, tmp_path):
    assert_parity(native / "safe_replay", tmp_path, deep_program(depth=60, rounds=40))


def test_an_unknown_version_is_refused(native, tmp_path):
    arena = tmp_path / "arena"
    text_of_core(native / "replay", tmp_path, [], 0)
    with arena.open("r+b") as file:
        file.seek(8)
        file.write(struct.pack("<I", 99))
    done = subprocess.run([native / "replay", "dump", arena], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Protocol error" in done.stderr


def test_a_full_disk_ends_the_recording_and_not_the_program(native, tmp_path):
    events = Program(codes=1000)
    for number in range(30000):
        events.step(1, 0 if number % 2 else 2, Random(number).randrange(1 << 40), 5)
    (tmp_path / "events").write_bytes(np.array(events.pieces[0][1], RECORD).tobytes())
    command = f"ulimit -f 1024; trap '' XFSZ; {native}/replay run {tmp_path}/arena 1:{tmp_path}/events"
    assert subprocess.run(["bash", "-c", command]).returncode == 0
    head = dump(native / "replay", tmp_path / "arena")[0].split()
    assert int(head[3]) > 0, "events were lost"
    assert int(head[4]) > 0, "and the file says why"


def killed(native: Path, folder: Path, delay: float) -> tuple[tuple[int, int], list[str]]:
    """Kill the loop after a while: calls (finished, begun to finish) by its own count, and what its arena holds."""
    arena, counter = folder / "arena", folder / "counter"
    counter.unlink(missing_ok=True)
    loop = subprocess.Popen([native / "kill_loop", arena, counter])
    while not counter.exists() or counter.stat().st_size < 24 or not any(counter.read_bytes()[:8]):
        assert loop.poll() is None
        time.sleep(0.001)
    time.sleep(delay)
    loop.kill()
    loop.wait()
    _, begun, done = struct.unpack("<3Q", counter.read_bytes()[:24])
    return (done, begun), dump(native / "replay", arena)


def test_a_killed_program_leaves_every_completed_call(native):
    random = Random(5)
    folder = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path()
    folder = folder / f"perflaw-kill-{random.getrandbits(32)}-{time.monotonic_ns()}"
    folder.mkdir()
    try:
        for _ in range(KILLS):
            (done, begun), lines = killed(native, folder, random.random() / 20)
            nodes = [line.split() for line in lines if line.startswith("node ")]
            completed = sum(int(node[6]) for node in nodes)
            assert done <= completed <= begun <= done + 1
            assert_whole(lines)
    finally:
        shutil.rmtree(folder)


def assert_whole(lines: list[str]) -> None:
    """ΣΣP == ΣX² and Σ counts == n on every node but the one that the file says was being added to."""
    rows = [line.split() for line in lines]
    busy = next(int(row[7]) for row in rows if row[0] == "head")
    squares: dict[int, int] = {}
    counts: dict[int, int] = {}
    for row in rows:
        number = int(row[1]) if row[0] in ("pair", "histogram") else 0
        if row[0] == "pair":
            squares[number] = squares.get(number, 0) + int(row[4]) * (1 if row[2] == row[3] else 2)
        elif row[0] == "histogram":
            counts[number] = counts.get(number, 0) + int(row[3])
    for row in rows:
        if row[0] == "node" and int(row[1]) not in (0, busy):
            assert squares.get(int(row[1]), 0) == int(row[9])
            assert counts.get(int(row[1]), 0) == int(row[6])


def test_the_record_is_laid_out_as_numpy_reads_it(native):
    out = subprocess.run([native / "replay", "layout"], capture_output=True, text=True, check=True).stdout
    fields = RECORD.fields
    assert fields is not None
    assert out.splitlines() == [f"{name} {at} {kind.itemsize}" for name, (kind, at) in fields.items()]
