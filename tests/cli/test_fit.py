"""``perflaw fit`` as a person runs it: laws of a CSV file, and what it says to input it cannot use."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from perflaw.cli.fit import command
from perflaw.errors import DataError, PerflawError, StoreError, UsageError
from perflaw.store.csv_files import read_csv

SIZES = (10, 20, 50, 100, 200, 500, 1000, 2000)
Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file and give its name."""

    def text(content: str | bytes, name: str = "data.csv") -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return text


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(command, arguments, input=stdin, catch_exceptions=False, standalone_mode=False)


def documents(*arguments: str, stdin: str | None = None) -> list[dict[str, Any]]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in JSON")

    lines = run(*arguments, "--json", stdin=stdin).stdout.splitlines()
    return [json.loads(line, parse_constant=refuse) for line in lines]


def squares(header: str = "n,t") -> str:
    return f"{header}\n" + "".join(f"{n},{3 * n * n}\n" for n in SIZES)


def test_a_square_law(write: Write) -> None:
    (document,) = documents(write(squares()), "--response", "t")
    law = document["law"]
    assert document["schema"] == "perflaw.fit/1"
    assert (law["family"], law["verdict"], law["features"]) == ("quadratic", "law", ["n"])
    assert law["slope"] == {"n": 2.0}
    assert law["n"] == law["runs"] == len(SIZES)
    assert [p["features"]["n"] for p in law["predictions"]] == pytest.approx([2 * 1650, 10 * 1650])
    assert law["predictions"][1]["mean"] == pytest.approx(3 * 16500**2)
    assert set(law["noise"]) == {"distribution", "scale"}


def test_points_asked_for(write: Write) -> None:
    (document,) = documents(write(squares()), "--response", "t", "--at", "n=1e6", "--at", "n=1_000")
    assert [p["mean"] for p in document["law"]["predictions"]] == pytest.approx([3e12, 3e6])


def test_a_table_of_eighty_columns(write: Write) -> None:
    text = run(write(squares()), "--response", "t").stdout
    assert text.splitlines()[0].split() == ["series", "law", "grows", "as", "verdict"]
    assert "3*n^2" in text
    assert max(map(len, text.splitlines())) <= 80


def test_one_line_a_series(write: Write) -> None:
    rows = "".join(f"{key},{n},{n**power}\n" for key, power in (("b", 1), ("a", 2)) for n in SIZES)
    name = write("id,n,t\n" + rows)
    found = documents(name, "--response", "t", "--by", "id")
    assert [(one["series"], one["law"]["family"]) for one in found] == [("b", "linear"), ("a", "quadratic")]
    assert "2 series: 2 law" in run(name, "--response", "t", "--by", "id").stdout


def test_standard_input() -> None:
    (document,) = documents("-", "--response", "t", stdin=squares())
    assert document["law"]["family"] == "quadratic"


@pytest.mark.parametrize(
    "content",
    [
        squares().replace("\n", "\r\n"),
        b"\xef\xbb\xbf" + squares().encode(),
        squares('"n","t"'),
        "note,n,t\n" + "".join(f'"a, ""b""\nc",{n},{3 * n * n}\n' for n in SIZES),
        squares() + "\n\n",
        squares().rstrip("\n"),
    ],
)
def test_forms_of_csv(write: Write, content: str | bytes) -> None:
    (document,) = documents(write(content), "--response", "t")
    assert document["law"]["family"] == "quadratic"


def test_features_are_the_other_numeric_columns(write: Write) -> None:
    rows = "".join(f"{n},x{n},{n % 7},{3 * n * n},r{n}\n" for n in SIZES)
    name = write("n,label,k,t,run\n" + rows)
    (document,) = documents(name, "--response", "t", "--run", "run")
    assert set(document["law"]["range"]) == {"n", "k"}
    (document,) = documents(name, "--response", "t", "--features", "k")
    assert set(document["law"]["range"]) == {"k"}


def test_rows_of_a_run_are_not_independent(write: Write) -> None:
    rng = np.random.default_rng(1)
    rows = "".join(
        f"{r},{n},{n * level * (1 + 0.01 * rng.standard_normal())}\n"
        for r, level in enumerate((1, 1.1, 0.9))
        for n in SIZES
    )
    name = write("run,n,t\n" + rows)
    (document,) = documents(name, "--response", "t", "--run", "run")
    (naive,) = documents(name, "--response", "t", "--features", "n")
    width, short = (
        one["law"]["predictions"][0]["mean_high"] - one["law"]["predictions"][0]["mean_low"]
        for one in (document, naive)
    )
    assert document["law"]["runs"] == 3
    assert width > 2 * short


def test_rows_without_numbers_are_left_out_on_demand(write: Write) -> None:
    name = write(squares() + "5000,nan\n6000,inf\n7000,\n")
    result = run(name, "--response", "t", "--drop-invalid", "--json")
    assert "3 rows" in result.stderr
    document = json.loads(result.stdout)
    assert (document["dropped"], document["law"]["family"]) == (3, "quadratic")


@pytest.mark.parametrize(
    ("content", "arguments", "error", "says"),
    [
        ("", (), DataError, "is empty"),
        ("n,t\n", (), DataError, "no rows"),
        ("1,2\n3,4\n", (), DataError, "no header"),
        ("n,n,t\n1,2,3\n", (), DataError, "two columns"),
        ("n,t\n1,2\n3\n", (), DataError, "line 3: it has 1 value, but the header has 2"),
        ("n,t\n1,2\nx,4\n1,3\n", ("--features", "n"), DataError, "line 3: 'x' in column 'n'"),
        ("n,t\n1,2\n3,nan\n4,inf\n", (), DataError, "line 3: 'nan' in column 't'.*2 rows"),
        ("n,t\n1,nan\n", ("--drop-invalid",), DataError, "no row is left"),
        ('n,t\n1,"2\n', (), DataError, "not a CSV file"),
        ("n,u\n1,2\n", (), UsageError, "no column 't'.*n, u"),
        ("n,t\n1,2\n", ("--features", "m"), UsageError, "no column 'm'"),
        ("n,t\n1,2\n", ("--features", "t"), UsageError, "names this column already"),
        ("n,t\n1,2\n", ("--by", "m"), UsageError, "no column 'm'"),
        ("n,t\n1,2\n", ("--run", "m"), UsageError, "no column 'm'"),
        ("n,t\n1,2\n", ("--at", "n"), UsageError, "--at n"),
        ("n,t\n1,2\n", ("--at", "n=x"), UsageError, "'x'"),
        ("n,t\n1,2\n", ("--at", "m=1"), UsageError, "no feature 'm'"),
        (b"n,t\n\xff,2\n", (), DataError, "UTF-8"),
    ],
)
def test_what_cannot_be_used(
    write: Write, content: str | bytes, arguments: tuple[str, ...], error: type[PerflawError], says: str
) -> None:
    with pytest.raises(error, match=says):
        run(write(content), "--response", "t", *arguments)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such file"):
        run(str(tmp_path / "none.csv"), "--response", "t")
    with pytest.raises(StoreError, match="is a directory"):
        run(str(tmp_path), "--response", "t")


def test_the_response_must_be_named(write: Write) -> None:
    with pytest.raises(UsageError, match=r"columns of .* are n, t"):
        run(write(squares()))


def test_a_series_of_one_row_is_inconclusive(write: Write) -> None:
    (document,) = documents(write("n,t\n1,2\n"), "--response", "t")
    assert document["law"]["verdict"] == "inconclusive"
    assert "--vary n=" in document["law"]["reason"]


def test_lines_are_those_of_the_file(write: Write) -> None:
    table = read_csv(write('n,t\n\n"a\nb",2\n3,4\n'))
    assert table.lines == (4, 5)
