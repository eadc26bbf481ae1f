"""From gcc's counts to clusters: the examples of Goldsmith et al., FSE'07, §1, §4.1.2 and §6.1.2."""

import shutil
import subprocess

import pytest

from perflaw.learn.trend import trend
from perflaw.store.counts import read_matrix
from perflaw.store.experiment import open_experiment
from tests.conftest import PROGRAMS, first


@pytest.fixture
def clusters(perflaw, tmp_path):
    """Compile a program, record it, and give its clusters by what their lines say."""

    def learn(program, *arguments, options=()):
        source = shutil.copy(PROGRAMS / f"{program}.c", tmp_path)
        subprocess.run(["gcc", "-O0", "--coverage", "-o", program, source], cwd=tmp_path, check=True)
        perflaw("record", "--collect", "lines", *options, "--", f"./{program}", *arguments)
        matrix = read_matrix(open_experiment("default", tmp_path).recordings(), ("line",))
        names = [place.name for place in matrix.locations]
        features = {"n": matrix.features["n"]}
        texts = (PROGRAMS / f"{program}.c").read_text().splitlines()
        found = trend(matrix.counts, names, features)
        says = [texts[place.line - 1].strip() for place in matrix.locations]
        return {frozenset(says[row] for row in one.members if says[row]): one for one in found.clusters}

    return learn


def numbered(found):
    """Clusters by the numbers of the paper's locations that they have."""
    named = {}
    for lines, one in found.items():
        numbers = {int(line.partition("location ")[2][0]) for line in lines if "location " in line}
        named[frozenset(numbers)] = one
    return named


COMPARES, SWAPS, SIZE = frozenset({4, 5, 7}), frozenset({6}), frozenset({2, 3, 8})


@pytest.mark.parametrize(
    ("kind", "bounds", "expected"),
    first(
        1,
        [
            ("random", "30,1000,100000", {COMPARES, SWAPS, SIZE}),
            pytest.param("sorted", "1", {COMPARES, SIZE}, marks=pytest.mark.slow),
            pytest.param("reversed", "1", {COMPARES | SWAPS, SIZE}, marks=pytest.mark.slow),
            ("nearly", "1", {COMPARES, SIZE | SWAPS}),
        ],
    ),
)
def test_bubble_sort_on_the_four_kinds_of_workloads(clusters, kind, bounds, expected):
    options = ("--select", "bubble_sort", "--vary", "n=60,100,200,400,800,1600", "--vary", f"b={bounds}")
    found = numbered(clusters("bubble", kind, "{n}", 3, "{b}", options=options))
    assert set(found) == expected
    compares = next(one for numbers, one in found.items() if 4 in numbers)
    assert compares.rank == 1
    assert compares.powers["n"].exponent == pytest.approx(2, abs=0.05)
    size = next(one for numbers, one in found.items() if 2 in numbers)
    assert size.is_feature
    assert size.powers["n"].exponent == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(("length", "exponent"), [(0, 2), (20, 1)])
def test_a_list_append_is_a_problem_where_lists_grow_and_benign_where_they_do_not(clusters, length, exponent):
    found = clusters("list_append", "{n}", length, options=("--vary", "n=100,200,400,800,1600,3200"))
    walk = next(one for lines, one in found.items() if any(line.startswith("n = n->next;") for line in lines))
    assert walk.powers["n"].exponent == pytest.approx(exponent, abs=0.05)
    assert walk.is_feature == (exponent == 1)
    assert walk.rank == 1
