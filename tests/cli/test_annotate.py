"""The whole way on functions of known cost: recorded on the fake clock, learnt, and read as a person and as a script."""

import json
import math
import shutil
import sys

import pytest

from perflaw.laws.printing import show
from perflaw.laws.reading import parse
from perflaw.learn.annotations.tree import grow_trees
from perflaw.report.annotations import SMALL_SHARE, annotations_text
from perflaw.types.documents import dumps_short
from tests.conftest import PROGRAMS, first, run_perflaw

SIZES = "100,200,400,800,1600,3200,6400"
EXPECTED = {
    "known.linear": ("linear", 1.0),
    "known.nlogn": ("nlogn", 1 + 1 / math.log(6400)),
    "known.quadratic": ("quadratic", 2.0),
    "known.power": ("power", 1.5),
    "known.with_intercept": ("linear", 250 * 6400 / (100_000 + 250 * 6400)),
}


def record_known(folder, noise, seed):
    command = ["--", PROGRAMS / "known.py", "{n}", noise, seed]
    run_perflaw(folder, "record", "--clock", "fake", "--vary", f"n={SIZES}", "--repeat", 2, *command)


def laws_of(document):
    assert document["schema"] == "perflaw.annotate/1"
    return {one["component"]: one["scopes"][0]["law"] for one in document["annotations"]}


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """A recording with one percent of noise, made once."""
    folder = tmp_path_factory.mktemp("known")
    record_known(folder, 0.01, 0)
    return folder / ".perflaw"


@pytest.fixture
def known(recording, tmp_path):
    """The test's folder with a copy of that recording."""
    shutil.copytree(recording, tmp_path / ".perflaw")
    return tmp_path


@pytest.mark.parametrize(("noise", "seed"), first(1, [(0.05, 2), (0.0, 0), (0.02, 1)]))
def test_the_right_family_and_slope_for_each(perflaw, tmp_path, noise, seed):
    record_known(tmp_path, noise, seed)
    found = laws_of(json.loads(perflaw("annotate", "--json").stdout))
    for name, (family, slope) in EXPECTED.items():
        law = found[name]
        [feature] = law["features"]
        assert law["family"] == family, name
        assert law["slope"][feature] == pytest.approx(slope, abs=0.05)
        assert law["slope_low"][feature] - 0.02 <= slope <= law["slope_high"][feature] + 0.02
        assert law["verdict"] == "law"
        assert feature == ("n" if name == "known.power" else "items.len")
        assert law["runs"] == 14
    assert (found["known.with_intercept"]["intercept"] or 0) == pytest.approx(100_000, rel=0.25)
    for name in ("known.constant", "known.null"):
        assert found[name]["family"] == "constant", name
        assert found[name]["verdict"] == "none"


@pytest.mark.slow
def test_ranked_by_share_and_by_prediction(perflaw, known):
    document = json.loads(perflaw("annotate", "--json").stdout)
    shares = [one["share"] for one in document["annotations"]]
    assert shares == sorted(shares, reverse=True)
    assert all(0 <= one["self_share"] <= one["share"] <= 1 for one in document["annotations"])
    at = json.loads(perflaw("annotate", "--json", "--at", "n=1e6").stdout)
    predicted = [one["predicted"]["mean"] for one in at["annotations"] if one["predicted"]]
    assert predicted == sorted(predicted, reverse=True)
    [quadratic] = [one for one in at["annotations"] if one["component"] == "known.quadratic"]
    assert quadratic["predicted"]["features"] == {"n": 1e6}
    assert quadratic["predicted"]["mean"] == pytest.approx(4 * 3 * 1e12, rel=0.1)
    low, high = quadratic["predicted"]["mean_low"], quadratic["predicted"]["mean_high"]
    assert low <= 4 * 3 * 1e12 <= high


@pytest.mark.slow
def test_the_same_recordings_give_the_same_bytes(perflaw, known):
    assert perflaw("annotate", "--json").stdout == perflaw("annotate", "--json").stdout


def test_table_and_text(perflaw, known):
    table = perflaw("annotate").stdout
    assert max(map(len, table.splitlines()[:-1])) <= 80
    assert "known.quadratic" in table.replace("\n", "")
    perflaw("annotate", "-o", "laws.law")
    text = perflaw("annotate", "--text").stdout
    assert (known / "laws.law").read_text() == text
    assert "known.quadratic.time(items) [ns] {" in text
    assert show(parse(text)) == text
    assert "at n=1e+06" in perflaw("annotate", "--at", "n=1e6").stdout.replace("\n", " ")


def test_an_unknown_feature_is_refused(perflaw, known):
    assert "no such feature" in perflaw("annotate", "--at", "size=5", status=2).stderr
    assert "is not a number" in perflaw("annotate", "--at", "n=many", status=2).stderr
    assert "cannot be written" in perflaw("annotate", "-o", "missing/folder.law", status=2).stderr


@pytest.mark.parametrize("options", first(2, map(pytest.param, [(), ("--at", "n=20000"), ("--calls",), ("--all",)])))
def test_the_table_says_what_the_document_holds(perflaw, known, options):
    """A table learns only the laws that it shows, and they are those of the document, which holds all."""
    document = json.loads(perflaw("annotate", "--json", *options).stdout)
    assert perflaw("annotate", *options).stdout == annotations_text(document, False, every="--all" in options)


def test_the_costliest_function_has_its_law_however_small_its_share(perflaw, tmp_path):
    """Of a program that waits, the function chosen is a small share of the time."""
    (tmp_path / "waits.py").write_text(
        "import time\n\ndef work(n):\n    return sum(range(n))\n\n"
        "for n in range(1, 2_000, 20): work(n)\ntime.sleep(1)\nwork(1)\n"
    )
    perflaw("record", "--select", "waits.work", "--", "waits.py")
    document = json.loads(perflaw("annotate", "--json").stdout)
    [work] = [one for one in document["annotations"] if one["component"] == "waits.work"]
    assert work["share"] < SMALL_SHARE
    assert perflaw("annotate").stdout == annotations_text(document, False)


def test_the_time_for_which_generators_are_suspended_is_in_no_whole(perflaw, tmp_path):
    """Their callers have it: counted twice, it would halve the shares of all functions."""
    (tmp_path / "lazy.py").write_text(
        "def numbers(n):\n    yield from range(n)\n\n"
        "def total(n):\n    return sum(sum(range(2_000)) for number in numbers(n))\n\n"
        "total(500)\n"
    )
    perflaw("record", "--", "lazy.py")
    document = json.loads(perflaw("annotate", "--json").stdout)
    shares = {one["component"]: one["share"] for one in document["annotations"]}
    assert shares["lazy.<module>"] > 0.9
    assert sum(one["self_share"] for one in document["annotations"]) > 0.9


def test_runs_of_several_sizes_show_the_laws_of_runs(perflaw, known):
    assert "time per run" in perflaw("annotate").stdout
    assert "time per call" in perflaw("annotate", "--calls").stdout


def test_one_run_is_said_to_be_one(perflaw):
    perflaw("record", "--clock", "fake", "--", PROGRAMS / "known.py", 100)
    document = json.loads(perflaw("annotate", "--json").stdout)
    [quadratic] = [one for one in document["annotations"] if one["component"] == "known.quadratic"]
    assert quadratic["scopes"][0]["law"]["verdict"] in ("inconclusive", "none")
    assert "one run" in perflaw("annotate", "--text").stdout


@pytest.mark.slow
def test_a_function_that_cannot_be_learnt_is_one_row_that_says_why(perflaw, known, monkeypatch):
    """The table, the document, the text, its twin and the page have all other laws, as without the failure."""
    before = laws_of(json.loads(perflaw("annotate", "--json").stdout))

    def fail_at_one(roots, *further):
        if any(root.table.evidence.component.name == "known.quadratic" for root in roots):
            raise KeyError("planted")
        return grow_trees(roots, *further)

    monkeypatch.setattr(sys.modules["perflaw.learn.annotations.annotate"], "grow_trees", fail_at_one)
    why = "not learnt: KeyError: 'planted'"
    laws = laws_of(json.loads(perflaw("annotate", "--json").stdout))
    assert laws["known.quadratic"]["reason"] == why
    assert (laws["known.quadratic"]["family"], laws["known.quadratic"]["verdict"]) == ("constant", "inconclusive")
    assert {name: law for name, law in laws.items() if name != "known.quadratic"} == {
        name: law for name, law in before.items() if name != "known.quadratic"
    }
    assert "not learnt" in " ".join(perflaw("annotate", "--calls").stdout.split())
    assert parse(perflaw("annotate", "--text").stdout)
    perflaw("annotate", "-o", "known.law")
    text = (known / "known.law.json").read_text()
    twin = json.loads(text)
    assert text == dumps_short(twin) + "\n"
    assert len(text) <= 10_000 * len(twin["annotations"])
    assert laws_of(twin)["known.quadratic"]["reason"] == why
    steps = perflaw("report", "-o", "page.html", "--verbose").stderr
    assert "putting the page together: " in steps and "writing the page: " in steps
    assert "known.quadratic" in (known / "page.html").read_text()


def test_a_component_named_script_is_text_everywhere(perflaw, tmp_path):
    (tmp_path / "app.py").write_text(
        "def f(n): return sum(range(n))\n"
        "f.__code__ = f.__code__.replace(co_name='<script>alert(1)</script>', co_qualname='<script>alert(1)</script>')\n"
        "for n in (1, 10, 100): f(n)\n"
    )
    perflaw("record", "--", "app.py")
    name = "app.<script>alert(1)</script>:1"
    document = json.loads(perflaw("annotate", "--json").stdout)
    assert name in [one["component"] for one in document["annotations"]]
    perflaw("report", "-o", "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "alert(1)" in page
    assert "<script>alert" not in page


def test_report(perflaw, known):
    done = perflaw("report", "--at", "n=1e5")
    assert done.stdout.startswith("wrote report.html: ")
    page = (known / "report.html").read_text()
    assert "known.quadratic" in page
    assert "cannot be written" in perflaw("report", "-o", "no/such/place.html", status=2).stderr


@pytest.mark.slow
def test_the_choices_of_the_paper(perflaw, known):
    found = laws_of(json.loads(perflaw("annotate", "--paper", "--json").stdout))
    assert found["known.quadratic"]["family"] == "quadratic"
    assert found["known.constant"]["family"] == "constant"
    assert {law["noise"]["distribution"] for law in found.values()} >= {"normal"}
    assert "Norm(" in perflaw("annotate", "--paper", "--text").stdout


KEEPER = """
import sys
class Node: pass
def keep(n):
    first = last = Node()
    for number in range(n):
        last.next = node = Node()
        node.back, node.items, last = last, [number], node
    return first
keep(int(sys.argv[1]))
"""


def test_what_is_no_function_of_the_program_has_rows_of_its_own(tmp_path):
    (tmp_path / "keeper.py").write_text(KEEPER)
    sizes = "n=2000,5000,10000,20000,40000"
    run_perflaw(tmp_path, "record", "--metric", "cpu", "--vary", sizes, "--", "keeper.py", "{n}")
    asked = ("annotate", "--metric", "cpu", "--at", "n=300000")
    document = json.loads(run_perflaw(tmp_path, *asked, "--json").stdout)
    parts = {one["component"]: one for one in document["program"]["parts"]}
    assert set(parts) == {"(start and end of the process)", "(garbage collection)"}
    table = run_perflaw(tmp_path, *asked).stdout
    assert "(garbage" in table
    assert "(start and" in table
    ends = parts["(start and end of the process)"]
    assert ends["predicted"]["mean"] > 2 * document["program"]["unrecorded"], "all that lives is freed there"
    largest = json.loads(run_perflaw(tmp_path, *asked[:-1], "n=40000", "--json").stdout)["program"]
    [at_largest] = [one["predicted"]["mean"] for one in largest["parts"] if one["component"] == ends["component"]]
    assert at_largest == pytest.approx(largest["unrecorded"], rel=0.02), "the row and the line below have one number"
    [main] = [one for one in document["annotations"] if one["component"] == "keeper.<module>"]
    whole = document["program"]["predicted"]["mean"]
    assert main["predicted"]["mean"] + ends["predicted"]["mean"] == pytest.approx(whole, rel=0.01)
