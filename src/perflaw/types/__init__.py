"""The nouns: frozen, typed, one line of documentation a field. Imports nothing of ours.

A recording is evidence, a law is a claim with its uncertainty. Learners return these and never print.
"""

from perflaw.types.annotations import Annotation, Points, Scope
from perflaw.types.laws import Alternative, Breakpoint, Curve, Law, Noise, Prediction, Verdict
from perflaw.types.measured import CPU, EVENTS, TIME, Component, Metric
from perflaw.types.recordings import MOST_SLOWDOWN, Clock, Evidence, Losses, Run, RunCost
from perflaw.types.verdicts import Change, CheckVerdict, DiffVerdict, Forecast, Outcome, Stated

__all__ = [
    "CPU",
    "EVENTS",
    "MOST_SLOWDOWN",
    "TIME",
    "Alternative",
    "Annotation",
    "Breakpoint",
    "Change",
    "CheckVerdict",
    "Clock",
    "Component",
    "Curve",
    "DiffVerdict",
    "Evidence",
    "Forecast",
    "Law",
    "Losses",
    "Metric",
    "Noise",
    "Outcome",
    "Points",
    "Prediction",
    "Run",
    "RunCost",
    "Scope",
    "Stated",
    "Verdict",
]
