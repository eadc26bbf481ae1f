"""What the report page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perflaw.report.mine.words import MineView
from perflaw.report.trend.words import TrendView
from perflaw.report.variance.page import VarianceView
from perflaw.types import Annotation


@dataclass(frozen=True, slots=True)
class Page:
    """What a report shows."""

    target: str
    """The program, the page's title."""
    experiment: str
    """Name of the experiment."""
    command: str
    """Command that was recorded."""
    created: str
    """When the newest run was recorded, as ISO text."""
    runs: Sequence[Mapping[str, object]]
    """One mapping a run: ``id``, ``features``, ``wall_ns``, ``complete``, ``calls``."""
    annotations: Sequence[Annotation]
    """The laws, in the order of their ranking."""
    slowdown: str = ""
    """How much the recording slowed the program, such as ``slowdown 1.4x``."""
    lost: str = ""
    """What the recording lost, such as ``nothing lost``."""
    left_out: str = ""
    """What was not recorded, and why."""
    at: Mapping[str, float] | None = None
    """Workload the person asked predictions for."""
    trend: TrendView | None = None
    """Clusters of locations to show beside the laws, or alone where there are none."""
    variance: Sequence[VarianceView] = ()
    """Patterns of variance, a view for each metric, the first shown first; empty where they are not shown."""
    mine: MineView | None = None
    """Specifications of call paths; None where they are not shown."""
    outcomes: Mapping[str, Any] | None = None
    """Document of ``perflaw check --json`` or ``perflaw diff --json`` to show beside the laws."""
