"""The end of the process against a machine of which it is known how dear a block of memory is, in and out of its caches."""

from dataclasses import replace

import numpy as np
import pytest

from perflaw.laws.evaluation import evaluate
from perflaw.learn.program import RunLaws, learn_program
from perflaw.learn.program.ends import learn_ends
from perflaw.learn.program.terms import values
from perflaw.types import CPU, Collections, Machine, Metric
from perflaw.types.programs import OUTSIDE
from perflaw.types.recordings import HeapCosts
from tests.learn.program_data import Node, Program, run

KNOTS, DEARER = (0, 100_000, 300_000, 900_000), (1.0, 1.0, 3.0, 4.0)
HEAP = HeapCosts(
    KNOTS[1:], tuple(one // 3 for one in KNOTS[1:]), (50.0, 150.0, 180.0), tuple(50.0 * one for one in DEARER[1:])
)
START_NS, BLOCK_NS = 20e6, 130.0
SIZES = (100.0, 200.0, 400.0, 800.0)


def weighted(blocks: float) -> float:
    """Blocks, those outside of the caches weighted; straight between what the machine was measured at."""
    costs = [many * dearer for many, dearer in zip(KNOTS, DEARER, strict=True)]
    return float(np.interp(blocks, KNOTS, costs)) if blocks <= KNOTS[-1] else blocks * DEARER[-1]


def recorded(n: float, blocks: float, heap: HeapCosts | None = HEAP):
    machine = Machine(2, 0.0, 0, 0, 0, 0, 0, 0, 0, heap=heap)
    known = Collections(0, 0, 0, 0, 0, 0, blocks=int(blocks))
    return replace(run(1, {"n": n}), machine=machine, collections=known)


def learnt(each: float, noise: float = 0.0, metric: Metric = CPU, heap: HeapCosts | None = HEAP):
    random = np.random.default_rng(1)
    blocks = np.array([30_000.0 + each * n for n in SIZES for _ in range(2)])
    own = START_NS + BLOCK_NS * np.array([weighted(one) for one in blocks])
    own *= np.exp(random.normal(0.0, noise, own.size))
    sizes = np.repeat(SIZES, 2)
    runs = [recorded(n, many, heap) for n, many in zip(sizes, blocks, strict=True)]
    return learn_ends(runs, metric, own, {"n": sizes})


@pytest.mark.parametrize("factor", [2, 5, 10, 50, 200])
@pytest.mark.parametrize("each", [80, 300])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_blocks_outside_of_the_caches_are_as_much_dearer_as_the_machine_says(each, factor, noise):
    found = learnt(each, noise)
    n = factor * SIZES[-1]
    terms = found.blocks.terms
    [told] = np.array(list(terms.values())) @ values(list(terms), {"n": np.array([n])}, 1)
    least = 30_000 + each * SIZES[0]
    true = BLOCK_NS * (weighted(30_000 + each * n) - weighted(least))
    assert told * found.unit.terms()[0][()] == pytest.approx(true, rel=0.05 if not noise else 0.35)
    assert abs(np.log(told * found.unit.terms()[0][()] / true)) < 2.0 * found.unit.forms[0].spread


def test_runs_that_say_nothing_of_their_end_take_a_guess_from_the_machine():
    found = learnt(2, noise=0.05)
    assert found.unit.terms()[0][()] == pytest.approx(125.0, rel=0.1)
    assert found.unit.forms[0].spread > 0.5
    assert found.own.max() < 0.02 * START_NS


def test_nothing_is_said_where_it_does_not_depend_on_blocks():
    assert learnt(0) is None
    assert learnt(80, metric=Metric("alloc_bytes", "bytes")) is None
    assert learnt(80, heap=None) is None


def test_blocks_that_rise_and_fall_with_full_collections_grow_as_collections_do():
    """Black on 10 to 80 functions: garbage of the last quarter lives on until a full collection frees it."""
    sizes = np.repeat([10.0, 20.0, 40.0, 80.0], 3)
    blocks = np.repeat([111_000.0, 133_000.0, 117_000.0, 194_500.0], 3)
    young = np.repeat([50.0, 61.0, 92.0, 150.0], 3)
    own = START_NS + BLOCK_NS * np.array([weighted(one) for one in blocks])
    runs = [recorded(n, many) for n, many in zip(sizes, blocks, strict=True)]
    found = learn_ends(runs, CPU, own, {"n": sizes}, young)
    terms = found.blocks.terms
    told, least = np.array(list(terms.values())) @ values(list(terms), {"n": np.array([320.0, 10.0])}, 2)
    cost = found.unit.terms()[0][()] * (told - least)
    assert BLOCK_NS * weighted(250_000) < cost < BLOCK_NS * weighted(800_000), "296,000 were left in a run of 320"


@pytest.mark.parametrize("n", [400.0, 2000.0, 5000.0])
def test_the_law_of_the_end_holds_between_two_sizes_at_which_blocks_leave_caches(n):
    nodes = [
        Node("main", -1, np.ones_like, lambda x: 5e4 * x),
        Node(
            OUTSIDE,
            -1,
            np.ones_like,
            lambda x: START_NS + BLOCK_NS * np.array([weighted(30_000 + 80 * one) for one in x]),
        ),
    ]
    costs = Program(nodes).record([20, 50, 120, 250, 500] * 2, np.random.default_rng(1), noise=0.01)
    runs = tuple(replace(recorded(run.features["n"], 30_000 + 80 * run.features["n"]), id=run.id) for run in costs.runs)
    laws = RunLaws(learn_program(replace(costs, runs=runs)), {"n": n})
    [end] = [place for place, one in enumerate(costs.components) if one.name == OUTSIDE]
    law = laws.of(end)
    told = evaluate(law.mean, {"n": np.array([n])})
    assert float(np.max(told)) == pytest.approx(START_NS + BLOCK_NS * weighted(30_000 + 80 * n), rel=0.25)
