"""``pytest --perflaw`` as a person runs it: pytest's own output and exit status, a recording, verdicts on laws."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from perflaw.pytest_plugin.session import packages_under_test, without_own_options

SUITE = """
import pytest, words

@pytest.mark.parametrize("n", [10, 20, 40, 80, 160, 320])
def test_index(n):
    assert len(words.index([str(i) for i in range(n)])) == n
"""
WORDS = """
def index(words):
    found = []
    for word in words:
        if word not in found:
            found.append(word)
    return found
"""


[ENTRY] = entry_points(group="pytest11", name="perflaw")


def write_suite(folder, plugins=""):
    (folder / "words.py").write_text(WORDS)
    (folder / "test_words.py").write_text(SUITE)
    (folder / "pytest.ini").write_text(f"[pytest]\naddopts = {plugins} -p no:cacheprovider -p no:benchmark\n")
    return folder


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """A folder with a program and its tests, run with our plugin alone: others take seconds to import."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return write_suite(tmp_path, f"-p {ENTRY.value}")


@pytest.fixture
def usual_suite(tmp_path):
    """The same with every plugin that is installed, as pytest finds them itself."""
    return write_suite(tmp_path)


def run_pytest(folder, *arguments, script=True, status=0, **options):
    """A run by the console script, or by ``-m pytest``."""
    start = [str(Path(sys.executable).parent / "pytest")] if script else [sys.executable, "-m", "pytest"]
    done = subprocess.run(
        [*start, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=280,
        **options,
    )
    assert done.returncode == status, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def timeless(text):
    return re.sub(r"=+", "=", re.sub(r"in \d+\.\d+s", "in …", text))  # the line is as wide as the duration lets it be


def runs(perflaw, experiment="pytest"):
    return json.loads(perflaw("runs", "-e", experiment, "--json").stdout)["runs"]


@pytest.mark.interpreter
def test_output_and_status_are_pytests_own(usual_suite, perflaw):
    plain = run_pytest(usual_suite, "-v")
    recorded = run_pytest(usual_suite, "-v", "--perflaw")
    assert timeless(recorded.stdout) == timeless(plain.stdout)
    assert recorded.stderr.count("\n") == plain.stderr.count("\n") + 1
    told = recorded.stderr.splitlines()[-1]
    assert re.fullmatch(r"recorded 1 run of pytest, .* \.perflaw/pytest · perflaw show -e pytest", told)
    documents = json.loads(perflaw("annotate", "-e", "pytest", "--json").stdout)["annotations"]
    names = {one["component"] for one in documents}
    assert {"words.index", "test_words.test_index"} <= names
    assert [name for name in names if name.startswith(("pytest", "_pytest", "perflaw"))] == []


def test_pytest_starts_once(suite):
    (suite / "conftest.py").write_text("print('start', file=open('starts', 'a'))\n")
    run_pytest(suite, "--perflaw")
    assert (suite / "starts").read_text().split() == ["start"]


@pytest.mark.slow
def test_where_the_native_tracer_cannot_be_had_another_process_is_recorded(suite, perflaw, monkeypatch):
    monkeypatch.setenv("CC", "/nothing")
    monkeypatch.setenv("XDG_CACHE_HOME", str(suite / "cache"))
    done = run_pytest(suite, "--perflaw")
    assert "6 passed" in done.stdout
    assert runs(perflaw)[0]["calls"] > 0


@pytest.mark.slow
def test_failures_and_an_empty_suite_keep_their_status(suite):
    (suite / "test_words.py").write_text(
        "def test_wrong():\n    import words\n    assert words.index([1, 1]) == [1, 2]\n"
    )
    plain = run_pytest(suite, status=1, script=False)
    recorded = run_pytest(suite, "--perflaw", status=1, script=False)
    assert timeless(recorded.stdout) == timeless(plain.stdout)
    assert "1 incomplete" in recorded.stderr
    run_pytest(suite, "--perflaw", "-k", "nothing", status=5)


def test_several_runs_show_the_first(suite, perflaw):
    (suite / "pytest.ini").write_text(f"[pytest]\naddopts = -p {ENTRY.value} --perflaw --perflaw-runs 2\n")
    done = run_pytest(suite, "--perflaw-experiment", "mine")
    assert done.stdout.count("6 passed") == 1
    first, second = runs(perflaw, "mine")
    assert first["features"] == second["features"]  # both are made in the same way
    assert first["calls"] == second["calls"]


@pytest.mark.slow
def test_a_later_run_that_fails_is_shown(suite):
    body = "path = pathlib.Path('seen')\n    assert not path.exists()\n    path.touch()"
    (suite / "test_words.py").write_text(f"import pathlib\n\ndef test_once():\n    {body}\n")
    done = run_pytest(suite, "--perflaw", "--perflaw-runs", "3", status=1)
    assert "1 passed" in done.stdout
    assert "run 2 of 3 ended with status 1" in done.stderr
    assert "1 failed" in done.stderr


SHOP = """
def prices(n):
    return [(f"item {i}", i % 13) for i in range(n)]


def total(items):
    return sum(price for _, price in items)


def doubled(items):
    names = [name for name, _ in items]
    return {name for name in names if names.count(name) > 1}


def cheapest(items):
    return min(items, key=lambda item: item[1])
"""
SUITE_OF_SHOP = """
import pytest
import shop

SIZES = [20, 40, 80, 160, 320, 640]


@pytest.mark.parametrize("n", SIZES)
def test_total(n):
    assert shop.total(shop.prices(n)) > 0


@pytest.mark.parametrize("n", SIZES)
def test_doubled(n):
    assert not shop.doubled(shop.prices(n))


def test_cheapest():
    assert shop.cheapest(shop.prices(50)) == ("item 0", 0)
"""


def test_the_quadratic_function_of_a_suite_is_named(suite, perflaw):
    """What follows a recorded suite names the planted function first, and says how a suite measures more."""
    (suite / "shop.py").write_text(SHOP)
    (suite / "test_words.py").unlink()
    (suite / "test_shop.py").write_text(SUITE_OF_SHOP)
    run_pytest(suite, "--perflaw", "--perflaw-runs", "3")
    found = {
        one["component"]: one for one in json.loads(perflaw("annotate", "-e", "pytest", "--json").stdout)["annotations"]
    }
    own = {name: one for name, one in found.items() if name.startswith("shop.")}
    planted = max(own.values(), key=lambda one: one["share"])
    assert planted["component"] == "shop.doubled"
    assert planted["share"] > 0.5
    [scope] = planted["scopes"]
    assert scope["law"]["slope"]["items.len"] > 1.5
    table = perflaw("annotate", "-e", "pytest").stdout
    assert re.search(r"shop\.doubled .*items\.len\^(2|1\.[5-9])", table)
    assert "shop.doubled" in perflaw("show", "-e", "pytest").stdout
    # A suite has no size to vary: its tests have parameters.
    everything = perflaw("annotate", "-e", "pytest", "--all").stdout
    reasons = [scope["law"]["reason"] for one in found.values() for scope in one["scopes"]]
    assert not [text for text in (everything, *reasons) if "--vary" in text or "--repeat" in text]
    assert [text for text in reasons if 'parametrize("n", …)' in text]
    perflaw("report", "-e", "pytest", "-o", "report.html")
    assert "shop.doubled" in (suite / "report.html").read_text()


@pytest.mark.slow
def test_workers_of_xdist_are_recorded_as_children(suite, perflaw):
    done = run_pytest(suite, "-p", "xdist.plugin", "--perflaw", "-n", "2")
    assert "6 passed" in done.stdout
    assert "2 child processes" in done.stderr
    documents = json.loads(perflaw("annotate", "-e", "pytest", "--json").stdout)["annotations"]
    assert "words.index" in {one["component"] for one in documents}


@pytest.mark.slow
def test_laws_that_are_violated_fail_the_session(suite):
    suite.joinpath("wrong.law").write_text("words.index.time(words) [ns] { LogNorm(0.001, 0.01) }\n")
    alone = run_pytest(suite, "--perflaw-check", "wrong.law", "--perflaw-runs", "1")
    assert "6 passed" in alone.stdout
    assert re.search(r"inconclusive\s+words.index", alone.stdout)
    bad = run_pytest(suite, "--perflaw-check=wrong.law", "--perflaw-runs=2", status=1)
    assert "6 passed" in bad.stdout
    assert re.search(r"violated\s+words.index", bad.stdout)


def test_a_suite_that_fails_is_not_checked(suite):
    suite.joinpath("some.law").write_text("words.index.time(words) { Norm(5, 5) }\n")
    (suite / "test_words.py").write_text("def test_wrong():\n    assert False\n")
    done = run_pytest(suite, "--perflaw-check", "some.law", "--perflaw-runs", "1", status=1)
    assert "some.law not checked: the suite ended with status 1" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--perflaw-check", "none.law"), "none.law: no such file"),
        (("--perflaw", "--perflaw-runs", "0"), "at least one run"),
        (("--perflaw", "--perflaw-experiment", "../x"), "x"),
    ],
)
def test_options_that_cannot_be_followed(suite, arguments, says):
    done = run_pytest(suite, *arguments, status=4)
    assert says in done.stderr
    assert not (suite / ".perflaw").exists()


def test_a_law_file_that_cannot_be_read(suite):
    suite.joinpath("broken.law").write_text("words.index.time(words) { Nrm(5, 5) }\n")
    done = run_pytest(suite, "--perflaw-check", "broken.law", "--perflaw-runs", "1", status=4)
    assert "broken.law:1:27" in done.stderr


def test_addopts_may_ask_for_it_and_the_environment_is_clean(suite, perflaw):
    (suite / "pytest.ini").write_text(f"[pytest]\naddopts = -p {ENTRY.value} --perflaw -p no:cacheprovider\n")
    text = "import os\n\ndef test_clean():\n    assert not [name for name in os.environ if 'PERFLAW_PYTEST' in name]\n"
    (suite / "test_words.py").write_text(text)
    run_pytest(suite)
    assert len(runs(perflaw)) == 1


def test_what_runs_no_test_records_nothing(suite):
    for option in ("--help", "--version", "--collect-only", "--markers", "--fixtures"):
        run_pytest(suite, "--perflaw", option)
    assert not (suite / ".perflaw").exists()


def test_a_program_that_calls_pytest_main(suite, perflaw):
    (suite / "main.py").write_text("import pytest\nprint(int(pytest.main(['-q', '--perflaw'])), 'ended')\n")
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=suite, capture_output=True, text=True, check=True, timeout=280
    )
    assert done.stdout.splitlines()[-1] == "0 ended"
    assert "6 passed" in done.stdout
    assert len(runs(perflaw)) == 1


def test_an_interrupt_reaches_the_tests_and_what_was_recorded_is_kept(suite, perflaw):
    body = "words.index('ab')\n    pathlib.Path('begun').touch()\n    time.sleep(200)"
    (suite / "test_words.py").write_text(f"import pathlib, time, words\n\ndef test_long():\n    {body}\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "--perflaw"],
        cwd=suite,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # shells start what is in the background deaf to it
    )
    until = time.monotonic() + 200
    while not (suite / "begun").exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=200)
    assert process.returncode in (2, 130)
    assert "KeyboardInterrupt" in output
    assert runs(perflaw)[0]["calls"] > 0


def test_nothing_heavy_is_imported_for_others(usual_suite):
    (usual_suite / "test_words.py").write_text(
        "import sys\n\ndef test_light():\n    print(*sys.modules, file=open('modules', 'w'))\n"
    )
    run_pytest(usual_suite)
    loaded = set((usual_suite / "modules").read_text().split())
    ours = {name for name in loaded if name.startswith("perflaw.")}
    assert ours == {
        "perflaw.decorator",
        "perflaw.listening",
        "perflaw.pytest_plugin",
        "perflaw.pytest_plugin.plugin",
    }
    assert not loaded & {"numpy", "scipy", "duckdb", "_duckdb", "click"}


def test_the_fixture(suite):
    (suite / "test_words.py").write_text("""
now = 0

def clock():
    return now

def test_growth(perflaw):
    def walk(items):
        global now
        now += 10 * len(items)
    perflaw.assert_scales(walk, [100, 300, 1000, 3000, 10_000], "n^2", make=lambda n: range(n), clock=clock)

def test_too_fast(perflaw):
    def pairs(items):
        global now
        now += 10 * len(items) ** 2
    sizes = [10, 20, 40, 80, 160, 320]
    perflaw.assert_scales(pairs, sizes, at_most="n", make=lambda n: list(range(n)), clock=clock)
""")
    done = run_pytest(suite, status=1)
    assert "1 failed, 1 passed" in done.stdout
    assert "ScalingError: test_too_fast.<locals>.pairs grows as n^" in done.stdout
    assert "scales.py" not in done.stdout


def test_only_our_options_go():
    words = ["--perflaw", "-k", "perflaw", "--perflaw-check", "a.law", "--perflaw-experiment=x", "--perflaws", "tests"]
    assert without_own_options(words) == ["-k", "perflaw", "--perflaws", "tests"]


def test_the_variable_is_not_left_behind():
    assert not [name for name in os.environ if name.startswith("PERFLAW_PYTEST")]


def components(perflaw):
    """Names of the functions in the newest run of the experiment pytest."""
    lines = perflaw("export", "-e", "pytest", "--to", "collapsed", "--metric", "events").stdout.splitlines()
    return {frame for line in lines for frame in line.rsplit(" ", 1)[0].split(";")}


INSTALLED = "import textwrap\n\ndef shorter(text):\n    return textwrap.shorten(text, 20)\n"


def test_the_package_under_test_is_recorded_wherever_it_is_installed_and_libraries_when_asked(suite, perflaw):
    (suite / "src" / "subject").mkdir(parents=True)
    (suite / "site-packages" / "subject").mkdir(parents=True)
    for folder in ("src", "site-packages"):
        (suite / folder / "subject" / "__init__.py").write_text(INSTALLED)
    (suite / "test_words.py").write_text(
        "import subject\n\ndef test_it():\n    assert subject.shorter('a b') == 'a b'\n"
    )
    installed = {**os.environ, "PYTHONPATH": str(suite / "site-packages")}
    run_pytest(suite, "-q", "--perflaw", env=installed)
    without = components(perflaw)
    assert {"test_words.test_it", "subject.shorter"} <= without
    assert not [name for name in without if name.startswith("textwrap")]
    run_pytest(suite, "-q", "--perflaw", "--perflaw-libraries", env=installed)
    assert components(perflaw) >= {"test_words.test_it", "subject.shorter", "textwrap.shorten"}


def test_the_packages_under_test(tmp_path):
    (tmp_path / "src" / "spaced").mkdir(parents=True)
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "__init__.py").touch()
    (tmp_path / "docs").mkdir()
    (tmp_path / "one.py").touch()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "other.py").touch()
    assert packages_under_test(tmp_path, [tmp_path / "more"]) == ("flat", "one", "other", "spaced")
