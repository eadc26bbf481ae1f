"""What a report of trends is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from perflaw.types import Cluster, CountMatrix, Trends


@dataclass(frozen=True, slots=True, eq=False)
class TrendView:
    """Clusters with the counts they were found in, and the sources they lie in."""

    trends: Trends
    """What was learnt."""
    matrix: CountMatrix
    """The counts; clusters' members are its rows."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """File → its text; empty where none was kept."""
    left_out: tuple[str, ...] = ()
    """What was left out before learning, a sentence each."""
    asked: bool = False
    """The person asked for the point where costs are predicted; else it is ten times the 95th percentile."""

    counted: Mapping[str, str] = field(default_factory=dict)
    """Feature → location whose count it is."""

    paper: bool = False
    """Costs were predicted by the power laws, as the paper does."""

    @property
    def noun(self) -> str:
        """What the locations are: ``lines`` where all are lines and their blocks, else ``functions``, or ``locations``."""
        kinds = {location.kind for location in self.matrix.locations}
        if "line" in kinds and kinds <= {"line", "block"}:
            return "lines"
        return "functions" if kinds == {"function"} else "locations"

    def places(self, cluster: Cluster) -> int:
        """How many of the nouns a cluster is; outcomes of a line's branches belong to the line."""
        if self.noun != "lines":
            return len(cluster.members)
        members = [self.matrix.locations[row] for row in cluster.members]
        return len({(one.file, one.line) for one in members})

    @property
    def costliest(self) -> int:
        """Column of the run with the largest sum of all counts; the first of several."""
        return int(np.argmax(self.trends.totals)) if self.trends.totals else 0

    @property
    def peak(self) -> list[float]:
        """(L,) counts of that run: how much locations weigh when they are told."""
        counts = self.matrix.counts
        return [float(value) for value in counts[:, self.costliest]] if counts.size else [0.0] * len(counts)
