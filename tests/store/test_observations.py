"""Observations on a busy machine: the time in which others had the CPU is no cost of theirs."""

from perflaw.store.observations import queueing_of_parts
from perflaw.store.tables import table_of

HANDLER, QUERY, WORK = 1, 2, 3
TREE = [(HANDLER, 0, 1, 0, 0, 1), (QUERY, HANDLER, 2, 0, 0, 2), (WORK, HANDLER, 3, 0, 0, 2)]


def left_out(parts, queued, costs):
    """Time left out of the own time of every node of the observations, ns."""
    tables = [
        table_of("parts", [("r", *part) for part in parts]),
        table_of("calltree", TREE),
        table_of("queued", queued),
        table_of("invocation_costs", [("r", *cost) for cost in costs]),
    ]
    return queueing_of_parts(*tables).tolist()


def test_nodes_share_what_their_observation_queued():
    """The work was off the CPU because others had it; the query waited for its answer, which is its own cost."""
    parts = [
        (7, HANDLER, 1, 1_000, 1_000),
        (7, QUERY, 1, 500_000, 1_000),
        (7, WORK, 1, 400_000, 100_000),
        (8, HANDLER, 1, 900, 900),
        (8, WORK, 1, 90_000, 90_000),
    ]
    queued = [(HANDLER, 300_000), (WORK, 300_000)]
    costs = [(7, "off.queued", 300_000), (7, "off.io", 499_000), (9, "off.queued", 5)]
    assert left_out(parts, queued, costs) == [0, 0, 300_000, 0, 0]


def test_no_more_is_left_out_than_a_node_was_off_the_cpu():
    parts = [(7, HANDLER, 1, 10_000, 4_000), (7, WORK, 1, 20_000, 19_000)]
    assert left_out(parts, [(HANDLER, 50_000), (WORK, 1_000)], [(7, "off.queued", 9_000)]) == [6_000, 180]
    assert left_out(parts, [], [(7, "off.queued", 9_000)]) == [0, 0]
