"""Specifications for the tests of tables, files and the page: the paper's semop, and one of everything odd."""

from perflaw.learn.paths.durations import histogram_of
from perflaw.types import Consistency, PathGroup, PathSpec, Platform
from perflaw.types.specifications import MergeStep, MinedSpec, SpecFile, SpecRun, Tally

HERE, THERE = Platform("here", "b1", 20.0), Platform("there", "b2", 25.0)
ACQUIRE, RELEASE = "proc_mutex_sysv_acquire", "proc_mutex_sysv_release"
E1, E2 = ("child_main", ACQUIRE), ("listener", ACQUIRE)


def semop(name="semop"):
    """The paper's Table 1: a mutex is acquired on two ways and released on two others."""
    start = ("main", "run_main", "ap_mpm_run", "startup_children", "make_child")
    paths = (
        (*start, "child_main", RELEASE, name),
        (*start, "listener", RELEASE, name),
        (*start, "child_main", ACQUIRE, "try_acquire", name),
        (*start, "listener", ACQUIRE, "try_acquire", name),
        (*start, "clean_up", name),
    )
    counts = ((1485, 15), (495, 5), (410, 590), (350, 650), (3, 1))
    groups = (
        PathGroup("g1", (0, 1), (0.99, 0.01), (1980, 20), 1800.0, (((E1, False), (E2, False)),), "", 0.0, None,
                  (20e6, 25e6, 30e6, 35e6, 38e6), (15e6, 20e6, 25e6, 30e6, 33e6), (29e6, 31e6),
                  ((0.005, 0.02),), 2, (0.003,), 0.02),
        PathGroup("g2", (2,), (0.41, 0.59), (410, 590), 900.0, (((E1, True), (E2, False)),)),
        PathGroup("g3", (3,), (0.35, 0.65), (350, 650), 950.0, (((E1, False), (E2, True)),)),
    )  # fmt: skip
    return PathSpec(
        name,
        "time",
        "ns",
        (70e6,),
        (0.685,),
        groups,
        paths,
        counts,
        (4,),
        True,
        5,
        4004,
        0.1,
        (HERE,),
        atoms=(E1, E2),
        share=0.31,
    )


def odd():
    """Two machines, a disjunction, groups without expressions, names that YAML or a page could trip over."""
    name = "std::vector<int>::operator->"
    strange = 'it\'s: a "name" # - {x} é\n'
    paths = (("a", strange, name), ("a", "f -> g", name), ("a", "yes", name), ("a", name))
    groups = (
        PathGroup("o1", (0, 1), (0.5, 0.25, 0.25), (200, 100, 100), 380.0,
                  ((((strange, name), True),), ((("f -> g", name), True), (("a", "yes"), False))), "", 0.01,
                  {0: (0.5, 0.25, 0.25), 1: (0.5, 0.3, 0.2)}),
        PathGroup("o2", (2,), (0.1, 0.1, 0.8), (10, 10, 80), 99.0, (), "inseparable"),
        PathGroup("o3", (3,), (0.0, 0.0, 1.0), (0, 0, 50), 50.0, (), "quarantined"),
    )  # fmt: skip
    return PathSpec(
        name, "cpu", "ns", (1234.5, 2e9), (0.38, 0.58), groups, paths, ((100, 50, 50), (100, 50, 50), (10, 10, 80), (0, 0, 50)),
        (), False, 2, 550, 1.0, (HERE, THERE), {0: (1234.5, 2e9), 1: (2000.0, 3e9)},
        {0: ((60, 30, 30), (60, 30, 30), (10, 10, 80), (0, 0, 50)), 1: ((40, 20, 20), (40, 20, 20), (0, 0, 0), (0, 0, 0))},
        ((strange, name), ("f -> g", name), ("a", "yes")), None, ("perturbed by nested probes",),
    )  # fmt: skip


def plain():
    """A function whose calls are of one kind."""
    only = PathGroup("p1", (0,), (1.0,), (5000,), 5000.0, ((),))
    return PathSpec(
        "app.steady", "time", "ns", (), (), (only,), (("main", "app.steady"),), ((5000,),), (), True, 5, 5000, 0.0,
        (HERE,), share=0.1,
    )  # fmt: skip


def specs():
    """All three, the semop with its runs and durations."""
    tallies = ((Tally("0001", (990, 10), 900.0), Tally("0002", (990, 10), 900.0)), (), ())
    durations = tuple(
        histogram_of([*[20e6 + 1e5 * i for i in range(quick // 10)], *[90e6 + 1e5 * i for i in range(slow // 10)]])
        for quick, slow in ((1980, 20), (410, 590), (350, 650))
    )
    first = MinedSpec(semop(), tallies, durations, (10**18, 10**18 + 10**12))
    return SpecFile((first, MinedSpec(plain()), MinedSpec(odd())), (SpecRun("0001", "2026-01-01T00:00:00"),))


def steps():
    """Four runs merged into a first one, over three functions."""
    return tuple(
        MergeStep(
            f"000{run}",
            tuple(Consistency(f"f{i}", 1 - 0.05 * i * run, 1 - 0.01 * i * run, 0.5, 0.6, 9) for i in range(5)),
            ("gone",) if run == 3 else (),
        )
        for run in range(2, 6)
    )
