"""Columns against plain Python: exact sums, order with nulls first, and every value to the disk and back."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflaw.errors import StoreError
from perflaw.store import tables
from perflaw.store.columns import Column, coded_texts, group_sums, grouped, wide
from perflaw.store.schema import table_of
from perflaw.store.tables import read_each, read_table, write_tables
from tests.conftest import examples

SUMS = st.integers(-(10**37), 10**37) | st.integers(-9, 9) | st.sampled_from([2**63, 2**64, -(2**64), 2**96 - 1])
INTS = st.integers(1 - 2**63, 2**63 - 1) | st.integers(-3, 3)


@given(st.lists(st.lists(SUMS, min_size=1), min_size=1))
def test_sums_of_groups_are_exact(groups):
    values = wide([value for group in groups for value in group])
    starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
    assert Column(group_sums(values, starts)).plain() == [sum(group) for group in groups]


@given(st.lists(st.tuples(INTS, st.floats(allow_nan=False) | st.none(), INTS)))
def test_order_is_that_of_the_rows_with_nulls_first(rows):
    columns = [np.array([row[place] for row in rows], dtype) for place, dtype in enumerate(("i8", "f8", "i8"))]
    order, starts = grouped(columns)
    wanted = sorted(range(len(rows)), key=lambda row: [(value is not None, value) for value in rows[row]])
    assert order.tolist() == wanted
    assert len(starts) == len(set(rows))


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(INTS, st.sampled_from(["time", "é"]), SUMS, SUMS), max_size=5))
def test_sums_come_back_from_the_disk(tmp_path, rows):
    write_tables(tmp_path, {"component_costs": table_of("component_costs", rows)})
    assert list(read_table(tmp_path, "component_costs")) == rows


def test_nulls_come_back_from_the_disk(tmp_path):
    rows = [("0001", 1, "a", 1.5, None), ("0001", 2, "b.type", None, "int")]
    callees = [("0001", 1, 2, 3, 4, None), ("0001", 1, 3, 3, 4, 0)]
    write_tables(tmp_path, {"features": table_of("features", rows), "callees": table_of("callees", callees)})
    assert list(read_table(tmp_path, "features")) == rows
    assert list(read_table(tmp_path, "callees")) == callees


def test_tables_that_are_read_together_are_those_that_are_read_alone(tmp_path, monkeypatch):
    folders = [tmp_path / str(place) for place in range(7)]
    for place, folder in enumerate(folders):
        folder.mkdir()
        rows = [(row, f"m{place}", -(2**70) * row, 2**64 + place) for row in range(3 * place % 5)]
        write_tables(folder, {"component_costs": table_of("component_costs", rows)})
    alone = [list(read_table(folder, "component_costs")) for folder in folders]
    for most in (1, 1500, 1 << 20):
        monkeypatch.setattr(tables, "MAX_TOGETHER", most)
        assert [list(table) for table in read_each(folders, "component_costs")] == alone
    (folders[4] / "component_costs.parquet").write_bytes(b"damaged")
    reading = read_each(folders, "component_costs")
    assert [list(next(reading)) for _ in range(4)] == alone[:4]
    with pytest.raises(StoreError, match=r"4/component_costs.parquet: cannot be read"):
        next(reading)


def test_texts_are_coded_by_the_file_as_they_are_one_by_one(tmp_path, monkeypatch):
    """Null, empty, quoted and accented texts, a column of one text, one of many texts, and several files at once."""
    features = ["a", None, "it's", "", "é", '"b"', "a", None, "{'n': 1}"]
    folders = []
    for number in range(2):
        rows = [(f"run {number}", place, name, float(place), f"text {place}") for place, name in enumerate(features)]
        folders.append(tmp_path / str(number))
        folders[-1].mkdir()
        tables.write_tables(folders[-1], {"features": table_of("features", rows)})
    plain = [tables.read_table(folder, "features") for folder in folders]
    monkeypatch.setattr(tables, "LARGE", 0)
    monkeypatch.setattr(tables, "MAX_WORDS", len(features) - 1)
    seen = []
    monkeypatch.setattr(tables, "coded_texts", lambda *of: seen.append(of) or coded_texts(*of))
    for one, expected in zip(
        [*tables.read_each(folders, "features"), *(tables.read_table(folder, "features") for folder in folders)],
        plain * 2,
        strict=True,
    ):
        assert list(one) == list(expected)
        assert one.columns["feature"].words == expected.columns["feature"].words
    assert len(seen) == 8, "two of three columns; the third has more texts than are coded"


def test_a_process_that_writes_for_days_takes_a_new_database_now_and_then(tmp_path):
    """A database keeps something of each table that it wrote."""
    first = tables.connect()
    for number in range(tables.RENEWED_AFTER + 1):
        row = (f"run {number}", 1, "n", float(number), None)
        write_tables(tmp_path, {"features": table_of("features", [row])})
        assert list(read_table(tmp_path, "features")) == [row]
    assert tables.connect() is not first
