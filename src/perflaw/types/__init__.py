"""The nouns: frozen, typed, one line of documentation a field. Imports nothing of ours.

A recording is evidence, a law is a claim with its uncertainty. Learners return these and never print. A module of nouns
is imported when one of its names is first asked for: each verb needs a few of them, and hundreds of data classes take a
tenth of a second to make.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from perflaw.types.counts import CountMatrix, Counts, Location
    from perflaw.types.laws import (
        Alternative,
        Annotation,
        Breakpoint,
        Curve,
        Law,
        Noise,
        Points,
        Prediction,
        Scope,
        Verdict,
    )
    from perflaw.types.programs import GrowthSource, ProgramCosts, ProgramForecast
    from perflaw.types.recordings import (
        CPU,
        EVENTS,
        FEATURE_NAME,
        MOST_SLOWDOWN,
        TIME,
        Clock,
        Collections,
        Component,
        Evidence,
        Losses,
        Machine,
        Metric,
        Run,
        RunCost,
    )
    from perflaw.types.specifications import (
        Batches,
        Consistency,
        Histogram,
        Observation,
        Observed,
        PathGroup,
        PathSpec,
        Platform,
    )
    from perflaw.types.studies import (
        Budget,
        Conditions,
        Configuration,
        Goal,
        Knob,
        KnobKind,
        Reading,
        Study,
        StudyMetric,
        Target,
        Trial,
        Value,
    )
    from perflaw.types.trends import Cluster, Disagreement, Overtake, PowerLaw, Trends
    from perflaw.types.verdicts import (
        NOT_ASKED,
        Change,
        CheckVerdict,
        DiffVerdict,
        Forecast,
        Outcome,
        SpecVerdict,
        Stated,
    )

_MODULES: Final = {
    "counts": "CountMatrix Counts Location",
    "laws": "Alternative Annotation Breakpoint Curve Law Noise Points Prediction Scope Verdict",
    "programs": "GrowthSource ProgramCosts ProgramForecast",
    "recordings": "CPU EVENTS FEATURE_NAME MOST_SLOWDOWN TIME Clock Collections Component Evidence Losses Machine Metric Run "
    "RunCost",
    "specifications": "Batches Consistency Histogram Observation Observed PathGroup PathSpec Platform",
    "studies": "Budget Conditions Configuration Goal Knob KnobKind Reading Study StudyMetric Target Trial Value",
    "trends": "Cluster Disagreement Overtake PowerLaw Trends",
    "verdicts": "NOT_ASKED Change CheckVerdict DiffVerdict Forecast Outcome SpecVerdict Stated",
}
"""Module → the names that it defines."""
_MODULE_OF: Final = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "CPU",
    "EVENTS",
    "FEATURE_NAME",
    "MOST_SLOWDOWN",
    "NOT_ASKED",
    "TIME",
    "Alternative",
    "Annotation",
    "Batches",
    "Breakpoint",
    "Budget",
    "Change",
    "CheckVerdict",
    "Clock",
    "Cluster",
    "Collections",
    "Component",
    "Conditions",
    "Configuration",
    "Consistency",
    "CountMatrix",
    "Counts",
    "Curve",
    "DiffVerdict",
    "Disagreement",
    "Evidence",
    "Forecast",
    "Goal",
    "GrowthSource",
    "Histogram",
    "Knob",
    "KnobKind",
    "Law",
    "Location",
    "Losses",
    "Machine",
    "Metric",
    "Noise",
    "Observation",
    "Observed",
    "Outcome",
    "Overtake",
    "PathGroup",
    "PathSpec",
    "Platform",
    "Points",
    "PowerLaw",
    "Prediction",
    "ProgramCosts",
    "ProgramForecast",
    "Reading",
    "Run",
    "RunCost",
    "Scope",
    "SpecVerdict",
    "Stated",
    "Study",
    "StudyMetric",
    "Target",
    "Trends",
    "Trial",
    "Value",
    "Verdict",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """A noun that is asked for the first time."""
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    noun = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return noun
