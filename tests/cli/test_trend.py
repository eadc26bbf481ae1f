"""``perflaw trend`` as a person runs it: a recording, a matrix, and what it says to what it cannot use."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PROGRAMS, run_perflaw

Trend = Callable[..., "subprocess.CompletedProcess[str]"]

SIZES = (100, 200, 500, 1000, 3000, 10_000)


def matrix(**columns: Callable[[int], float]) -> str:
    """CSV of counts by n."""
    lines = [",".join(["run", "feature:n", *columns])]
    lines += [",".join(map(str, [f"r{n}", n, *(of(n) for of in columns.values())])) for n in SIZES]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The paper's bubble sort with counted lines, runs without them, a failing one, and a matrix."""
    made = tmp_path_factory.mktemp("trend")
    (made / "fails.py").write_text("import sys\nfor i in range(int(sys.argv[1])): x = i\nsys.exit(i == 99)\n")
    (made / "counts.csv").write_text(matrix(parse=lambda n: 200 * n, walk=lambda n: n * n // 10, once=lambda n: 1))

    def record(*arguments: object, status: int = 0) -> None:
        run_perflaw(made, "record", *arguments, status=status)

    bubble = PROGRAMS / "bubble.py"
    record("--collect", "lines", "--vary", "n=20,40,80,160,320,640", "--", bubble, "reversed", "{n}", 1)
    record("-e", "calls", "--vary", "n=40,80,160", "--", bubble, "reversed", "{n}", 1)
    record("-e", "failed", "--collect", "lines", "--vary", "n=100,200,400,800,1600", "--", "fails.py", "{n}", status=1)
    record("-e", "failed", "--", "fails.py", 50)
    return made


@pytest.fixture
def trend(folder: Path) -> Trend:
    def run(*arguments: str, status: int = 0, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return run_perflaw(folder, "trend", *arguments, status=status, input=stdin)

    return run


def clusters(trend: Trend, *arguments: str) -> list[dict[str, Any]]:
    document = json.loads(trend(*arguments, "--json").stdout, parse_constant=pytest.fail)
    assert document["schema"] == "perflaw.trend/1"
    return list(document["clusters"])


@pytest.mark.slow
def test_bubble_sort_on_reversed_input(trend: Trend) -> None:
    """The paper's case (c), §6.1.2: swaps fall into COMPARES; SIZE has the feature for its representative."""
    compares, size = clusters(trend)
    assert (compares["rank"], compares["is_feature"], size["representative"]) == (1, False, "n")
    assert compares["laws"]["n"]["slope"]["n"] == pytest.approx(2.0, abs=0.02)
    assert size["powers"]["n"]["exponent"] == pytest.approx(1.0, abs=0.02)
    assert any(place.endswith("in swap()") for place in compares["places"])
    assert any(place.endswith("in bubble_sort()") for place in size["places"])


@pytest.mark.slow
def test_the_table_names_lines(trend: Trend) -> None:
    text = trend("--at", "n=1e6").stdout
    assert "in bubble_sort()" in text
    assert "at n=1e6" in text
    assert "At n = 1,000,000 cluster 1 dominates with 100 % of all counts" in text
    assert max(map(len, text.splitlines())) <= 80


def test_runs_may_be_named(trend: Trend) -> None:
    assert len(json.loads(trend("1", "2", "3", "--json").stdout)["runs"]) == 3


def test_counts_of_lines_are_features(trend: Trend) -> None:
    found = clusters(trend, "--count", "swaps=bubble.py:14")
    assert "swaps" in {name for one in found for name in one["laws"]}
    wrong = trend("--count", "swaps=bubble.py:1444", status=2).stderr
    assert "no such location" in wrong
    assert "try: --count swaps=bubble.py:" in wrong


def test_without_lines_calls_are_taken_and_it_is_said(trend: Trend) -> None:
    document = json.loads(trend("-e", "calls", "--json").stdout)
    assert "no run counted lines" in document["left_out"][0]
    assert "bubble.bubble_sort -> bubble.swap" in document["clusters"][0]["locations"]
    assert trend("-e", "calls", "--kind", "function").stdout.count("no run counted lines") == 0
    assert "--collect lines" in trend("-e", "calls", "--kind", "line", status=2).stderr


def test_runs_that_failed_or_counted_nothing_are_left_out_and_it_is_said(trend: Trend) -> None:
    document = json.loads(trend("-e", "failed", "--json").stdout)
    assert len(document["runs"]) == 4
    assert any("1 run recorded without --collect lines" in one for one in document["left_out"])
    assert any("1 run incomplete or failed (0001: " in one for one in document["left_out"])


def test_a_matrix(trend: Trend, folder: Path) -> None:
    first, second = clusters(trend, "counts.csv", "--at", "n=1e6")
    assert (first["representative"], first["laws"]["n"]["family"]) == ("walk", "quadratic")
    assert (second["representative"], second["locations"]) == ("n", ["parse"])
    assert first["predicted"]["mean"] == pytest.approx(1e11, rel=0.05)
    piped = trend("-", "--json", stdin=(folder / "counts.csv").read_text()).stdout
    assert len(json.loads(piped)["clusters"]) == 2


def test_a_cluster_that_will_overtake(trend: Trend, folder: Path) -> None:
    (folder / "rising.csv").write_text(matrix(parse=lambda n: 9000 * n, walk=lambda n: n * n // 10))
    parse, walk = clusters(trend, "rising.csv", "--at", "n=1e6")
    assert (parse["rank"], parse["predicted_rank"], walk["rank"], walk["predicted_rank"]) == (1, 2, 2, 1)
    [passed] = walk["overtakes"]
    assert (passed["rank"], passed["feature"]) == (1, "n")
    assert passed["low"] <= 90_000 <= passed["high"]
    assert "overtakes 1" in trend("rising.csv").stdout


def test_the_page(trend: Trend, folder: Path) -> None:
    said = trend("-o", "trend.html", "--json")
    assert "wrote trend.html: 2 clusters" in said.stderr
    json.loads(said.stdout)
    assert "bubble_sort" in (folder / "trend.html").read_text()
    assert "cannot be written" in trend("-o", "no/where.html", status=2).stderr


def test_the_report_has_the_clusters_beside_the_laws(folder: Path) -> None:
    assert "2 clusters" in run_perflaw(folder, "report", "-o", "report.html").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--at", "m=5"], "no such feature"),
        (["--feature", "m"], "no run has it"),
        (["--kind", "loop"], "there are line, block, function, edge"),
        (["--alpha", "0.7"], "alpha must lie between 0 and 0.5"),
        (["--count", "n=bubble.py:14"], "n is a feature already"),
        (["-e", "none"], "no recordings"),
        (["1", "2"], "2 runs tell no trend"),
        (["counts.csv", "--kind", "line"], "columns of a file have no kind"),
        (["counts.csv", "1"], "one matrix is read at a time"),
        (["missing.csv"], "no such file"),
    ],
)
def test_wrong_use_is_told_in_a_line(trend: Trend, arguments: list[str], said: str) -> None:
    done = trend(*arguments, status=2)
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


RARE = """
import sys


def rare(n):
    for _ in range(n * n):
        pass


n = int(sys.argv[1])
for _ in range(n):
    pass
if n in (20, 160):
    rare(n)
"""


@pytest.mark.slow
def test_what_dominates_is_unknown_where_the_heaviest_cluster_has_no_law(tmp_path, perflaw):
    (tmp_path / "app.py").write_text(RARE)
    perflaw("record", "--collect", "lines", "--vary", "n=5,10,20,40,80,120,160", "--", "app.py", "{n}")
    text = " ".join(perflaw("trend", "--at", "n=1600").stdout.split())
    assert "At n = 1,600 it is not known what dominates: the count of cluster 1 (now" in text


GENERATORS = """
import sys


def numbers(n):
    for i in range(n):
        yield i


def total(n):
    return sum(x * x for x in numbers(n))


for k in range(int(sys.argv[1])):
    total(k % 9)
"""


def test_waiting_and_collections_are_no_code_of_the_program(tmp_path, perflaw):
    (tmp_path / "app.py").write_text(GENERATORS)
    perflaw("record", "--vary", "n=100,200,400,800,1600,3200", "--", "app.py", "{n}")
    text = perflaw("trend", "--kind", "function,edge", "--all", "--sigma", "0").stdout
    assert "app.numbers" in text
    assert "(waiting)" not in text
    assert "(garbage collection)" not in text


INDEXED = """
import sys


def parse(text):
    found = []
    for line in text.splitlines():
        for word in line.split():
            found.append(int(word))
    return found


print(len(set(parse(open(sys.argv[1]).read()))))
"""


@pytest.mark.slow
def test_a_size_is_told_before_the_number_of_a_file(tmp_path, perflaw):
    (tmp_path / "app.py").write_text(INDEXED)
    for i in range(1, 11):
        lines = [f"{k * 7919 % 9973} {k}" for k in range(round(15 * 1.6**i))]
        (tmp_path / f"d{i}.txt").write_text("\n".join(lines) + "\n")
    perflaw("record", "--collect", "lines", "--vary", "i=1,2,3,4,5,6,7,8,9,10", "--", "app.py", "d{i}.txt")
    first = json.loads(perflaw("trend", "--json").stdout)["clusters"][0]
    assert first["law"]["features"] in (["argv1.lines"], ["argv1.bytes"])
    assert first["law"]["family"] == "linear"
    text = perflaw("trend").stdout
    assert text.index("argv1.lines") < text.index("exp(")
    assert " E" not in text


def test_a_law_needs_runs_with_counts_above_zero(trend, folder):
    (folder / "rare.csv").write_text(matrix(parse=lambda n: 200 * n, rare=lambda n: (n > 500) * n**3))
    assert "no law: only 3" in trend("rare.csv").stdout
    assert "rare" not in json.loads(trend("rare.csv", "--json").stdout)["clusters"][0]["laws"]
    assert "no law: only" not in trend("rare.csv", "--nonzero", "3").stdout


def test_one_line_says_which_exponent_to_believe(trend, folder):
    (folder / "constant.csv").write_text(matrix(setup=lambda n: 20_000 + 5 * n, walk=lambda n: n * n))
    text = trend("constant.csv").stdout
    [at] = [place for place, line in enumerate(text.splitlines()) if "believe the law" in line]
    told = " ".join(" ".join(text.splitlines()[at : at + 3]).split())
    assert "believe the law (n^1.00 for large n), not n^0." in told
    assert "in the larger half of the runs the law is off by 0 %, the power law by" in told
    found = {one["representative"]: one["disagreements"] for one in clusters(trend, "constant.csv")}
    assert found["walk"] == {}
    [believed] = [one for one in found.values() if one]
    assert believed["n"]["believe"] == "law"
