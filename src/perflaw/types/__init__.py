"""The nouns: frozen, typed, one line of documentation a field. Imports nothing of ours.

A recording is evidence, a law is a claim with its uncertainty. Learners return these and never print.
"""

from perflaw.types.annotations import Annotation, Points, Scope
from perflaw.types.counts import CountMatrix, Counts, Location
from perflaw.types.durations import Batches, Histogram, Observation, Observed, Platform
from perflaw.types.laws import Alternative, Breakpoint, Curve, Law, Noise, Prediction, Verdict
from perflaw.types.measured import CPU, EVENTS, FEATURE_NAME, TIME, Component, Metric
from perflaw.types.recordings import MOST_SLOWDOWN, Clock, Evidence, Losses, Run, RunCost
from perflaw.types.specs import Consistency, PathGroup, PathSpec
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
from perflaw.types.trends import Cluster, Overtake, PowerLaw, Trends
from perflaw.types.verdicts import Change, CheckVerdict, DiffVerdict, Forecast, Outcome, SpecVerdict, Stated

__all__ = [
    "CPU",
    "EVENTS",
    "FEATURE_NAME",
    "MOST_SLOWDOWN",
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
    "Component",
    "Conditions",
    "Configuration",
    "Consistency",
    "CountMatrix",
    "Counts",
    "Curve",
    "DiffVerdict",
    "Evidence",
    "Forecast",
    "Goal",
    "Histogram",
    "Knob",
    "KnobKind",
    "Law",
    "Location",
    "Losses",
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
]
