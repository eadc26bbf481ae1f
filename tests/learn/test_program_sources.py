"""Where growth enters: the call sites whose calls for each call become more, not those that pass growth on."""

from dataclasses import replace

import numpy as np

from perflaw.learn.program import growth_sources, learn_program
from perflaw.report.annotations import growth_lines
from perflaw.types.documents import encoded
from tests.learn.program_data import Node, Program

SIZES = [20, 40, 80, 160, 300]


def constant(value):
    return lambda n: np.full_like(n, float(value))


NESTED = Program(
    [
        Node("app.main", -1, constant(1), constant(1e6)),
        Node("app.table", 0, constant(1), constant(1e4)),
        Node("app.row", 1, lambda n: n, constant(2000)),
        Node("app.cell", 2, lambda n: n * n, constant(300)),
        Node("app.format", 3, lambda n: 3 * n * n, constant(200)),
        Node("app.rare", 0, lambda n: n, constant(1)),
    ]
)


def sources_of(program, seed=1):
    costs = program.record(SIZES * 2, np.random.default_rng(seed), noise=0.05, speeds=0.1)
    return growth_sources(learn_program(costs), {"n": 3000.0})


def test_growth_enters_where_calls_for_each_call_become_more():
    found = sources_of(NESTED)
    assert [(one.caller.name, one.callee.name) for one in found] == [("app.table", "app.row"), ("app.row", "app.cell")]
    for one in found:
        assert one.feature == "n"
        assert abs(one.exponent - 1.0) < 1e-6
        assert (one.few, one.many) == (20, 300)
        assert one.share > 0.9


def test_a_program_that_does_the_same_at_every_size_has_no_sources():
    assert not sources_of(
        Program([Node("main", -1, constant(1), constant(1e6)), Node("part", 0, constant(9), constant(1e5))])
    )


def test_counts_that_vary_for_another_reason_are_no_source():
    counts = np.random.default_rng(3)
    part = Node("part", 0, lambda n: counts.poisson(40, n.size), constant(1e5))
    assert not sources_of(Program([Node("main", -1, constant(1), constant(1e6)), part]))


def test_the_call_site_is_named():
    [first, _] = sources_of(NESTED)
    text = " ".join(growth_lines(encoded([replace(first, line=17)])).split())
    assert text.startswith("growth enters at app.py:17 (app.table -> app.row): 20 to 300 calls a call, as n^1.00 · ")
    assert text.endswith(" % of the cost")
