"""The history of checks: what one check writes, later ones read, whatever became of the file meanwhile."""

import pytest

from perflaw.errors import StoreError
from perflaw.store.checks import FILE, keep_check, read_checks


def verdicts(*outcomes):
    return {"runs": ["0001"], "verdicts": [{"component": name, "verdict": outcome} for name, outcome in outcomes]}


def test_checks_are_kept_in_their_order(tmp_path):
    keep_check(tmp_path, "a.law", verdicts(("f", "holds"), ("g", "violated"), ("g", "violated")))
    keep_check(tmp_path, "b.law", verdicts(("f\u2028\x85", "violated")))
    first, second = read_checks(tmp_path)
    assert (first["laws"], first["counts"], first["violated"]) == ("a.law", {"holds": 1, "violated": 2}, ["g"])
    assert (second["laws"], second["violated"]) == ("b.law", ["f\u2028\x85"])


def test_a_line_that_was_cut_off_loses_no_other(tmp_path):
    keep_check(tmp_path, "a.law", verdicts(("f", "holds")))
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"when": "2026')
    keep_check(tmp_path, "b.law", verdicts(("f", "holds")))
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes() + b'[1]\n{"when": 5}\n')
    assert [one["laws"] for one in read_checks(tmp_path)] == ["a.law", "b.law"]


def test_no_history_is_an_empty_one_and_a_folder_that_is_gone_is_told(tmp_path):
    assert read_checks(tmp_path) == []
    with pytest.raises(StoreError, match="cannot be written"):
        keep_check(tmp_path / "gone", "a.law", verdicts())
