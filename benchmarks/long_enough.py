"""Which functions of a program take long enough to be measured beside what they call."""

from collections import Counter
from pathlib import Path

from perflaw.store.call_trees import read_call_tree
from perflaw.store.experiment import open_experiment
from perflaw.types import TIME


def long_enough(folder: Path, experiment: str, least_ns: float) -> list[str]:
    """Functions whose calls take so long on average: among these alone, probes of calls within are a small part of a call.

    What calls them takes longer still, so call paths stay whole.
    """
    tree = read_call_tree(open_experiment(experiment, folder).recordings(), TIME)
    calls, spent = Counter[int](), Counter[int]()
    for component, n, total in zip(
        tree.component, tree.moments[TIME.name].n, tree.moments[TIME.name].sum_x, strict=True
    ):
        calls[int(component)] += int(n)
        spent[int(component)] += int(total)
    return sorted(tree.components[at].name for at in calls if at >= 0 and spent[at] > least_ns * max(calls[at], 1))
