"""``perflaw feature``: features added after the recording, from the command line, a file, or what programs printed."""

import json
import resource
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflaw.errors import DataError
from perflaw.store.checksums import sealed
from perflaw.store.csv_files import parse_csv
from perflaw.store.experiment import open_experiment, read_manifest, write_manifest
from perflaw.store.features import change_features, executions, find_number, match_rows, output_path
from perflaw.types import Clock, Losses, Run


def made(number, parent="", complete=True, **features):
    """A manifest."""
    kind = {"kind": "even" if number % 2 == 0 else "odd"}
    return Run(
        *(
            f"{number:04}",
            ("app.py",),
            "app.py",
            features,
            "2026-01-01T00:00:00.000+00:00",
            10,
            9,
            0,
            complete,
            "normally",
        ),
        *("native: r", "3.13.0", Clock("fake", 1, 0, 0), Losses(), "here", {}, kind, 5, 1, 1),
        parent=parent,
        workload=f"w{number}",
    )


@pytest.fixture
def experiment(tmp_path):
    """Runs 1, 2 and 4 with n = 10, 20, 40; run 3 is a child of 2, run 4 is incomplete. They printed what they compared."""
    found = open_experiment("default", tmp_path)
    for run in (made(1, n=10.0), made(2, n=20.0), made(3, "0002", n=20.0), made(4, complete=False, n=40.0)):
        folder = found.new_run()
        write_manifest(folder, run)
        output_path(folder, "stdout").write_text(
            f"read {run.features['n']:g} lines\ncompares: {run.features['n'] * 7:,.0f}\n"
        )
    (found.runs_folder / "0004" / "stdout.txt").write_text("read 40 lines\n")
    return found


def features(experiment):
    return [dict(one.run.features) for one in experiment.recordings()]


def test_values_are_given_to_runs_and_to_their_children(perflaw, experiment):
    assert perflaw("feature", "threads=4").stderr == "changed 4 runs\n"
    done = perflaw("feature", "bytes=5e6", "n=21", "2")
    assert done.stderr == "perflaw: n had another value in 1 run\nchanged 2 runs\n"
    changed = {"n": 21.0, "threads": 4.0, "bytes": 5e6}
    assert features(experiment) == [{"n": 10.0, "threads": 4.0}, changed, changed, {"n": 40.0, "threads": 4.0}]
    perflaw("feature", "bytes=1", "0003")
    assert features(experiment)[1]["bytes"] == 1, "a child stands for its whole execution"
    assert perflaw("feature", "bytes=1", "2").stderr == "changed 0 runs\n"
    perflaw("feature", "--remove", "threads", "--remove", "bytes")
    assert features(experiment) == [{"n": 10.0}, {"n": 21.0}, {"n": 21.0}, {"n": 40.0}]


def test_the_list(perflaw, experiment):
    perflaw("feature", "bytes=123456789", "1")
    listed = perflaw("feature").stdout
    assert [line.split() for line in listed.splitlines()[1:]] == [
        ["0001", "app.py", "w1", "n=10", "bytes=123456789"], ["0002", "app.py", "w2", "n=20"], ["0004", "app.py", "w4", "n=40"],
    ]  # fmt: skip
    assert perflaw("feature", "2").stdout.count("app.py") == 1


def test_a_pattern_reads_what_runs_printed(perflaw, experiment):
    done = perflaw("feature", "compares", "--pattern", r"compares: ([\d,]+)$", "1", "2")
    assert done.stderr == "changed 3 runs\n"
    assert [one.get("compares") for one in features(experiment)] == [70.0, 140.0, 140.0, None]
    done = perflaw("feature", "again", "--pattern", r"(?s).*compares: ([\d,]+)")
    assert [one.get("again") for one in features(experiment)] == [70.0, 140.0, 140.0, None]
    assert "run 0004 is incomplete and was left out: nothing that it printed matches" in done.stderr
    assert "(?s)" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["x=y"], "'y' is not a number"),
        (["x=inf"], "'inf' is not a number"),
        (["=5"], "not of the form NAME=VALUE"),
        (["x y=5"], "not of the form NAME=VALUE"),
        (["x"], "x is neither a run nor NAME=NUMBER"),
        (["x=1", "9"], "no run 0009"),
        (["x=1", "--remove", "n"], "one change at a time"),
        (["--remove", "m"], "--remove m: no run has this feature: the features are n"),
        (["--on", "n"], "--on without --from"),
        (["--pattern", "x"], "--pattern reads one feature"),
        (["x", "y", "--pattern", "x"], "--pattern reads one feature"),
        (["x", "--pattern", "("], "not a regular expression"),
        (["x", "--pattern", ""], "--pattern"),
        (
            ["x", "--pattern", "compared (.*)"],
            "run 0001 has no feature x; nothing was changed: nothing that it printed",
        ),
        (["x", "--pattern", "read (.*)"], "run 0001 has no feature x; nothing was changed: '10 lines' is no number"),
        (["--from", "missing.csv"], "cannot read missing.csv"),
    ],
)
def test_wrong_use_changes_nothing(perflaw, experiment, arguments, told):
    before = features(experiment)
    done = perflaw("feature", *arguments, status=2)
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert " · try: " in done.stderr
    assert features(experiment) == before


def test_output_that_was_not_kept(perflaw, experiment):
    output_path(experiment.runs_folder / "0002", "stdout").unlink()
    done = perflaw("feature", "x", "--pattern", r"read (\d+)", status=2)
    assert "run 0002 has no feature x; nothing was changed: its output was not kept" in done.stderr
    assert "perflaw record --keep-output" in done.stderr
    assert all("x" not in one for one in features(experiment))


def test_rows_of_a_file(perflaw, experiment, tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("n,mb,left\n10,5,\n20,6,1\n99,7,2\n")
    done = perflaw("feature", "--from", "f.csv")
    assert done.stderr.splitlines() == [
        "perflaw: f.csv: 1 row without a run", "perflaw: f.csv has no row for run 0004", "changed 3 runs",
    ]  # fmt: skip
    assert features(experiment)[1:3] == [{"n": 20.0, "mb": 6.0, "left": 1.0}] * 2
    assert features(experiment)[0] == {"n": 10.0, "mb": 5.0}, "an empty cell says nothing"
    assert "adds no feature" in perflaw("feature", "--from", "f.csv", status=2).stderr
    path.write_text("n,mb\n10,50\n20,6\n40,8\n")
    assert perflaw("feature", "--from", "f.csv", "--on", "n").stderr.endswith("in 1 run\nchanged 2 runs\n")
    assert [one["mb"] for one in features(experiment)] == [50, 6, 6, 8]
    assert perflaw("feature", "--from", "-", input="run,z\n1,5\n0002,6\n").stderr.endswith("changed 3 runs\n")


def test_rows_are_found_by_ids_workloads_values_and_texts(experiment):
    runs = [one.run for one in experiment.recordings()]
    by_text = match_rows(parse_csv("f", "kind,y\neven,2\nodd,1\n"), runs)
    assert by_text.features == {"0001": {"y": 1.0}, "0002": {"y": 2.0}, "0003": {"y": 1.0}, "0004": {"y": 2.0}}
    assert match_rows(parse_csv("f", "workload,y\nw2,5\n"), runs).features == {"0002": {"y": 5.0}}
    both = match_rows(parse_csv("f", "n,kind,y\n20,even,5\n20.0,odd,6\n"), runs)
    assert both.features == {"0002": {"y": 5.0}, "0003": {"y": 6.0}}
    assert match_rows(parse_csv("f", "run,n\n1,5\n"), runs).features == {"0001": {"n": 5.0}}, "an id tells enough"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n1,2\n", "no column tells which row belongs to which run"),
        ("n,y\n11,2\n", "no row belongs to a run: n of runs: 10, 20, 40"),
        ("n,y\n10,two\n", "line 2, column y: 'two' is no number"),
        ("n,y\n10,nan\n", "line 2, column y: 'nan' is no number"),
        ("n,y\n10,2\n10,3\n", "line 3: another row has another value of y for run 0001"),
        ("n,y z\n10,2\n", "column 'y z'"),
        ("n,y\n10\n", "line 2: it has 1 value, but the header has 2"),
        ("", "f.csv is empty"),
    ],
)
def test_a_file_that_cannot_be_used_changes_nothing(perflaw, experiment, tmp_path, text, told):
    (tmp_path / "f.csv").write_text(text)
    before = features(experiment)
    assert told in perflaw("feature", "--from", "f.csv", status=2).stderr
    assert features(experiment) == before


def test_a_full_disk_changes_no_run_at_all(experiment, tmp_path):
    before = features(experiment)
    many = [f"x{i}={i}" for i in range(400)]
    command = [sys.executable, "-m", "perflaw", "feature", *many]

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert features(experiment) == before
    assert not list(experiment.runs_folder.glob("*/*.part"))


def test_what_a_manifest_has_beside_is_kept(perflaw, experiment):
    path = experiment.runs_folder / "0001" / "run.json"
    document = json.loads(path.read_text())
    path.write_text(
        json.dumps(sealed({**{k: v for k, v in document.items() if k not in ("workload", "planned")}, "later": [1]}))
    )
    perflaw("feature", "x=1")
    assert json.loads(path.read_text())["later"] == [1]
    assert path.stat().st_mode & 0o077 == 0
    assert read_manifest(path.parent).features == {"n": 10.0, "x": 1.0}


def test_a_damaged_run_is_in_the_way_of_nobody_who_names_others(perflaw, experiment):
    (experiment.runs_folder / "0001" / "run.json").write_text("{")
    assert "0001" in perflaw("feature", "x=1", status=2).stderr
    perflaw("feature", "x=1", 2)
    assert read_manifest(experiment.runs_folder / "0002").features == {"n": 20.0, "x": 1.0}


def test_children_of_a_loop_of_parents_are_found(experiment):
    for number, parent in ((1, "0002"), (2, "0001")):
        write_manifest(experiment.runs_folder / f"{number:04}", replace(made(number), parent=parent))
    assert sum(map(len, executions(experiment, ()).values())) == 4


def test_laws_see_features_added_afterwards(perflaw, tmp_path):
    (tmp_path / "app.py").write_text("import sys\ndef f(n): return n\n[f(i) for i in range(int(sys.argv[1]) ** 2)]\n")
    quick = ("--tracer", "python", "--clock", "fake")
    perflaw("record", *quick, "--vary", "n=10,20,30,40,50,60", "--", "app.py", "{n}")
    perflaw("feature", "--from", "-", input="n,cells\n" + "".join(f"{n},{n * n}\n" for n in range(10, 70, 10)))
    perflaw("feature", "--remove", "n")
    found = json.loads(perflaw("annotate", "--metric", "events", "--json").stdout)["annotations"]
    [law] = [one["run_law"] for one in found if one["component"] == "app.f"]
    assert law["features"] == ["cells"]
    assert law["slope"]["cells"] == pytest.approx(1, abs=0.02)


NAMES = st.text("abcxyz_", min_size=1, max_size=4)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.dictionaries(NAMES, NUMBERS, max_size=5), st.dictionaries(NAMES, NUMBERS, max_size=5))
def test_any_features_are_read_as_they_were_written(tmp_path_factory, first, second):
    experiment = open_experiment("any", tmp_path_factory.mktemp("any"))
    folder = experiment.new_run()
    write_manifest(folder, made(1, **first))
    changed = change_features(
        experiment, lambda: {one: (each, second) for one, each in executions(experiment, ()).items()}
    )
    assert dict(read_manifest(folder).features) == second
    assert changed.runs == (first != second)
    assert [path.name for path in folder.iterdir()] == ["run.json"]


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["{:.17g}", "{!r}"]))
def test_any_number_that_is_printed_is_read(number, form):
    assert find_number(["", f"a\nvalue = {form.format(number)}\nb"], r"^value = (.*)$") == number


@pytest.mark.parametrize(
    ("text", "number"),
    [("1,024", 1024), ("-1,234,567.5", -1234567.5), ("1e3", 1000), ("1,5", None), ("0x10", None), ("", None)],
)
def test_numbers_as_programs_print_them(text, number):
    if number is not None:
        assert find_number([f"n={text}"], "n=(.*)") == number
    else:
        with pytest.raises(DataError, match="no number"):
            find_number([f"n={text}"], "n=(.*)")
