"""No altered byte of a recording gives another answer: it is refused, or the answer is the same."""

from __future__ import annotations

import json
import random
import shutil
import tracemalloc
from pathlib import Path

import pytest

from perflaw.errors import StoreError
from perflaw.store import checksums
from perflaw.store.checksums import CHECKSUM, TABLES, digests_of, verify
from perflaw.store.experiment import Recording, read_manifest, replace_table
from perflaw.store.schema import COLUMNS, table_of
from perflaw.store.tables import connect, read_table, write_tables
from perflaw.types.documents import encoded
from tests.conftest import run_perflaw

TRIALS = 150


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "app.py").write_text("def f(n): return [0] * n\nfor n in range(50): f(n)\n")
    run_perflaw(folder, "record", "--", "app.py")
    return folder / ".perflaw/default/runs/0001"


@pytest.fixture
def run(recorded, tmp_path):
    shutil.copytree(recorded, tmp_path / ".perflaw/default/runs/0001")
    return tmp_path / ".perflaw/default/runs/0001"


def answer(folder: Path) -> str:
    """Everything that is read of a recording, in one text."""
    run = read_manifest(folder)
    tables = Recording(run, folder).tables()
    return repr(encoded(run)) + repr({name: list(table) for name, table in tables.items()})


def test_no_altered_byte_is_read_as_right(run):
    right, chance = answer(run), random.Random(19)
    files = sorted(path for path in run.iterdir() if path.suffix in (".json", ".parquet"))
    refused = 0
    for _ in range(TRIALS):
        path = chance.choice(files)
        content = path.read_bytes()
        altered = bytearray(content)
        match chance.randrange(3):
            case 0:
                altered[chance.randrange(len(altered))] ^= 1 << chance.randrange(8)
            case 1:
                del altered[chance.randrange(len(altered)) :]
            case 2:
                altered[chance.randrange(len(altered))] = chance.randrange(256)
        path.write_bytes(altered)
        try:
            assert answer(run) == right, path
        except StoreError as error:
            assert str(run) in str(error)
            refused += 1
        path.write_bytes(content)
    assert answer(run) == right
    assert refused > TRIALS / 2


ALTERED = {
    "a number": lambda document: {**document, "calls": document["calls"] + 1},
    "a digest": lambda document: {**document, TABLES: {**document[TABLES], "worst": "0" * 16}},
    "a field more": lambda document: {**document, "unheard_of": 1},
    "no checksum": lambda document: {name: value for name, value in document.items() if name != CHECKSUM},
    "no digests": lambda document: {name: value for name, value in document.items() if name != TABLES},
    "another checksum": lambda document: {**document, CHECKSUM: "0" * 16},
}
"""Manifests that are well formed and were not written so."""


@pytest.mark.parametrize("what", ALTERED)
def test_a_well_formed_manifest_that_was_altered_is_refused(run, what):
    document = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(ALTERED[what](document)))
    with pytest.raises(StoreError, match="its checksum differs"):
        read_manifest(run)


def test_verify_names_what_was_altered_and_older_recordings_are_read(perflaw, run):
    assert "1 recordings are as they were written, 0 are damaged" in perflaw("runs", "--verify").stderr
    table = run / "components.parquet"
    content = table.read_bytes()
    table.write_bytes(content[:100] + b"x" + content[101:])
    done = perflaw("runs", "--verify", "--json", status=2)
    assert "its checksum differs" in json.loads(done.stdout)["damaged"]["0001"]
    table.unlink()
    assert "missing" in perflaw("runs", "--verify", "--json", status=2).stdout
    table.write_bytes(content)
    document = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({k: v for k, v in document.items() if k not in (TABLES, CHECKSUM)}))
    assert "1 of an earlier version have no checksums" in perflaw("runs", "--verify").stderr
    perflaw("annotate")


WRONG = {
    "wall_ns": 1 << 70,
    "calls": "many",
    "pid": True,
    "features": {"n": float("1e400")},
    "host": 5,
    "span_ns": None,
}


@pytest.mark.parametrize("name", WRONG)
def test_numbers_out_of_range_are_refused_without_checksums_as_well(run, name):
    path = run / "run.json"
    document = {k: v for k, v in json.loads(path.read_text()).items() if k not in (TABLES, CHECKSUM)}
    path.write_text(json.dumps({**document, name: WRONG[name]}))
    with pytest.raises(StoreError, match="wrong"):
        read_manifest(run)


def test_a_name_of_a_column_that_is_not_utf8_is_refused(tmp_path):
    """DuckDB repeats it in its message, which Python cannot decode."""
    table = table_of("components", [(0, "f", *[None] * (len(COLUMNS["components"]) - 2))])
    write_tables(tmp_path, {"components": table})
    path = tmp_path / "components.parquet"
    data = path.read_bytes()
    assert b"language" in data
    path.write_bytes(data.replace(b"language", b"l\xff\xffguage"))
    with pytest.raises(StoreError, match="cannot be read"):
        read_table(tmp_path, "components")


def test_a_changed_table_can_be_put_in_at_any_moment(run, tmp_path, monkeypatch):
    tables = Recording(read_manifest(run), run).tables()
    new = tmp_path / "new"
    new.mkdir()
    write_tables(new, {"worst": tables["worst"]})
    (new / "worst.parquet").write_bytes((new / "worst.parquet").read_bytes())
    steps = []
    replace = Path.replace

    def watched(self, target):
        answer(run)
        steps.append(target)
        result = replace(self, target)
        answer(run)
        return result

    monkeypatch.setattr(Path, "replace", watched)
    replace_table(run, new / "worst.parquet")
    assert len(steps) == 3
    assert json.loads((run / "run.json").read_text())[TABLES]["worst"].count(" ") == 0


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("name", "'f'::BLOB"),
        ("name", "['f']"),
        ("file", "uuid()"),
        ("line", "1.5"),
        ("calls", "'1'"),
        ("calls", "1::INT"),
    ],
)
def test_columns_of_another_type_are_refused(tmp_path, column, value):
    """Found by benchmarks/fuzz.py: a changed bit in the head of a file makes bytes of texts."""
    right, other = tmp_path / "right", tmp_path / "other"
    right.mkdir()
    other.mkdir()
    write_tables(right, {"components": table_of("components", [(1, "f", "a.py", 1, "python", None, None, 1, 0)])})
    columns = f"* REPLACE ({value} AS {column})"
    source, target = right / "components.parquet", other / "components.parquet"
    connect().execute(f"COPY (SELECT {columns} FROM '{source}') TO '{target}' (FORMAT parquet)")
    assert len(read_table(right, "components")) == 1
    with pytest.raises(StoreError, match=f"cannot be read.*column {column}"):
        read_table(other, "components")


def test_a_number_is_kept_of_each_table_that_was_compared(tmp_path, monkeypatch):
    """A stub reads a new recording with each measurement, for days."""
    monkeypatch.setattr(checksums, "_verified", set())  # which grows in steps, the next of which must not be due
    recordings, tables = 300, ("calltree", "links", "pairs")

    def recording(number):
        folder = tmp_path / str(number)
        folder.mkdir()
        for table in tables:
            (folder / f"{table}.parquet").write_bytes(b"%d" % number)
        (folder / "run.json").write_text(json.dumps({"tables": digests_of(folder)}))
        return folder

    def read(folder):
        for table in tables:
            verify(folder / f"{table}.parquet")

    folders = [recording(number) for number in range(recordings)]
    tracemalloc.start()
    try:
        for folder in folders[:100]:
            read(folder)
        before, _ = tracemalloc.get_traced_memory()
        for folder in folders[100:]:
            read(folder)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 200 * len(tables) * 150  # bytes
