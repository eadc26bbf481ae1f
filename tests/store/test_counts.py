"""Execution counts on disk and as a matrix: what is written comes back, and runs stand side by side rightly."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflaw.errors import DataError, StoreError
from perflaw.store.counts import read_counts, read_matrix, read_sources, write_counts
from perflaw.store.csv_files import read_csv_matrix
from perflaw.store.experiment import open_experiment, read_manifest, write_manifest
from perflaw.types import Counts, Location
from tests.conftest import examples

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12)
LOCATIONS = st.builds(
    Location, st.sampled_from(["line", "block"]), TEXT, TEXT, st.integers(0, 1 << 40), TEXT, st.sampled_from(["c", ""])
)
ONCE = settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@ONCE
@given(
    st.lists(st.tuples(LOCATIONS, st.integers(0, (1 << 63) - 1)), max_size=20),
    st.dictionaries(TEXT, st.text(), max_size=3),
)
def test_what_is_written_comes_back(tmp_path, rows, sources):
    counts = Counts(tuple(row[0] for row in rows), np.array([row[1] for row in rows], dtype=np.int64))
    write_counts(tmp_path, counts, sources)
    back = read_counts(tmp_path)
    assert back.locations == counts.locations
    assert back.counts.tolist() == counts.counts.tolist()


def test_a_run_that_did_not_count_has_no_counts(tmp_path):
    assert read_counts(tmp_path) is None


def test_a_damaged_file_is_told(tmp_path):
    (tmp_path / "counts.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(StoreError, match="cannot be read"):
        read_counts(tmp_path)


@pytest.fixture
def counted(recorded, tmp_path):
    """Record a program with functions and give each run these counts."""
    (tmp_path / "app.py").write_text(
        "import sys\ndef leaf(): pass\ndef f(n):\n for _ in range(n): leaf()\nf(int(sys.argv[1]))\n"
    )

    def count(*runs, sources=({},) * 9):
        recordings = recorded("--vary", f"n={','.join(str(n + 1) for n in range(len(runs)))}", "--", "app.py", "{n}")
        for recording, rows, texts in zip(recordings, runs, sources, strict=False):
            if rows is not None:
                write_counts(
                    recording.folder, Counts(tuple(rows), np.array(list(rows.values()), dtype=np.int64)), texts
                )
        return open_experiment("default", tmp_path).recordings()

    return count


def line(file, number, function="f"):
    return Location("line", f"{file.rpartition('/')[2]}:{number}", file, number, function, "c")


def test_runs_stand_side_by_side_and_what_a_run_does_not_know_counts_nothing(counted):
    parts: list[float] = []
    recordings = counted({line("a.c", 1): 5, line("a.c", 2): 7}, {line("a.c", 2): 9, line("a.c", 3): 1})
    matrix = read_matrix(recordings, tell=parts.append)
    assert parts == [0, 1 / 2]
    assert [location.name for location in matrix.locations] == ["a.c:1", "a.c:2", "a.c:3"]
    assert matrix.counts.tolist() == [[5, 0], [7, 9], [0, 1]]
    assert matrix.features["n"].tolist() == [1, 2]
    assert matrix.runs == ("0001", "0002")


def test_runs_without_counts_and_incomplete_ones_are_left_out(counted):
    recordings = counted({line("a.c", 1): 5}, None, {line("a.c", 1): 7})
    assert read_matrix(recordings).counts.tolist() == [[5, 7]]
    folder = recordings[0].folder
    from dataclasses import replace

    write_manifest(folder, replace(read_manifest(folder), complete=False))
    again = [type(one)(read_manifest(one.folder), one.folder) for one in recordings]
    assert read_matrix(again).counts.tolist() == [[7]]
    with pytest.raises(StoreError, match="cut short"):
        read_matrix(again[:1])


def test_a_child_process_counts_with_its_program(counted):
    from dataclasses import replace

    recordings = counted({line("a.c", 1): 5}, {line("a.c", 1): 7, line("b.c", 1): 2})
    child = type(recordings[0])(replace(recordings[1].run, parent="0001", complete=False), recordings[1].folder)
    assert read_matrix([recordings[0], child]).counts.tolist() == [[12], [2]]


def test_files_of_one_name_are_told_apart_by_their_paths(counted):
    rows = {line("/p/x/util.c", 1): 1, line("/p/y/util.c", 1): 2, line("/p/y/main.c", 1): 3}
    rows[Location("block", "util.c:1 taken", "/p/y/util.c", 1, "f", "c")] = 4
    names = [location.name for location in read_matrix(counted(rows)).locations]
    assert names == ["x/util.c:1", "y/util.c:1", "main.c:1", "y/util.c:1 taken"]


def test_functions_and_edges_come_from_the_call_tree(counted):
    matrix = read_matrix(counted(None, None), ("function", "edge"))
    counts = dict(zip([location.name for location in matrix.locations], matrix.counts.tolist(), strict=True))
    assert counts["app.leaf"] == counts["app.f -> app.leaf"] == [1, 2]
    assert counts["app.f"] == [1, 1]


def test_nothing_counted_says_how_to_count(counted):
    with pytest.raises(StoreError, match="perflaw record --collect lines --vary"):
        read_matrix(counted(None))


def test_sources_are_kept_once_and_the_newest_is_read(counted, tmp_path):
    texts = ({"a.c": "old\r\n", "b.c": "same"}, {"a.c": "new", "b.c": "same"})
    recordings = counted({line("a.c", 1): 1}, {line("a.c", 1): 1}, sources=texts)
    assert read_sources(recordings) == texts[1]
    assert read_sources(recordings[:1]) == texts[0]
    assert len(list((tmp_path / ".perflaw/default/sources").iterdir())) == 3


CSV = "run,feature:n,f.c:1,f.c:2,feature:m\na,1,10,0,\nb,2,20,1e3,5\n"


def csv(tmp_path, text):
    (tmp_path / "m.csv").write_text(text)
    return read_csv_matrix(str(tmp_path / "m.csv"))


def test_a_matrix_of_a_csv_file(tmp_path):
    matrix = csv(tmp_path, CSV)
    assert [(one.kind, one.name, one.file) for one in matrix.locations] == [
        ("column", "f.c:1", ""),
        ("column", "f.c:2", ""),
    ]
    assert matrix.counts.tolist() == [[10, 20], [0, 1000]]
    assert matrix.features["n"].tolist() == [1, 2]
    assert np.isnan(matrix.features["m"][0])
    assert matrix.runs == ("a", "b")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("place,a,b\nfeature:n,1,2\nf.c:1,10,20\n", "its rows are locations"),
        ("feature:n,x\n1,-1\n", "line 2: '-1' in column 'x' is no count"),
        ("feature:n,x\n1,nan\n", "no count"),
        ("feature:n,x\n1,\n", "no count"),
        ("feature:n,x\ninf,1\n", "no value of a feature"),
        ("feature:n,run\n1,a\n", "no counts"),
        ("run,x\na,1\na,2\n", "line 3: run 'a' again"),
        ("x\n", "no rows"),
        ("", "empty"),
    ],
)
def test_what_is_no_matrix_is_refused(tmp_path, text, said):
    with pytest.raises(DataError, match=said):
        csv(tmp_path, text)
