"""CONTRIBUTING.md names files that exist, and at most three for each change."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_every_path_exists():
    paths = re.findall(r"`((?:src|native|tests|docs|scripts|benchmarks)/[\w./-]+?)`", PAGE)
    paths += re.findall(r"((?:tests|benchmarks|scripts)/[\w/]+\.py)", PAGE)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_each_change_needs_three_files_at_most():
    table = PAGE.split("## Where to change what")[1]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 8
    for change, files in rows:
        assert 1 <= len(re.findall(r"`[^`]+`", files)) <= 3, change
