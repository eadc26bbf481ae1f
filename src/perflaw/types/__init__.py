"""The nouns: frozen, typed, one line of documentation a field. Imports nothing of ours.

A recording is evidence, a law is a claim with its uncertainty. Learners return these and never print.
"""

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
from perflaw.types.programs import ProgramCosts, ProgramForecast
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
from perflaw.types.trends import Cluster, CountMatrix, Counts, Location, Overtake, PowerLaw, Trends
from perflaw.types.verdicts import Change, CheckVerdict, DiffVerdict, Forecast, Outcome, SpecVerdict, Stated

__all__ = [
    "CPU", "EVENTS", "FEATURE_NAME", "MOST_SLOWDOWN", "TIME", "Alternative", "Annotation", "Batches", "Breakpoint",
    "Budget", "Change", "CheckVerdict", "Clock", "Cluster", "Collections", "Component", "Conditions", "Configuration",
    "Consistency", "CountMatrix", "Counts", "Curve", "DiffVerdict", "Evidence", "Forecast", "Goal", "Histogram", "Knob",
    "KnobKind", "Law", "Location", "Losses", "Machine", "Metric", "Noise", "Observation", "Observed", "Outcome", "Overtake",
    "PathGroup", "PathSpec", "Platform", "Points", "PowerLaw", "Prediction", "ProgramCosts", "ProgramForecast",
    "Reading", "Run", "RunCost", "Scope", "SpecVerdict", "Stated", "Study", "StudyMetric", "Target", "Trends", "Trial",
    "Value", "Verdict",
]  # fmt: skip
