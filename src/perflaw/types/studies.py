"""Studies of configurations: knobs, the target, the metrics, and the trials (SPEX, §3.2)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from perflaw.types.documents import OMITTED, stated

Value = bool | int | float | str
"""Setting of a knob; a quantity with a unit (``4KiB``) is a number in the base unit (4096)."""
Configuration = Mapping[str, Value]
"""Setting of each knob by its name."""
KnobKind = Literal["int", "float", "ordinal", "categorical", "bool"]
Goal = Literal["max", "min"]


def configuration_key(configuration: Configuration) -> str:
    """Return the canonical text of a configuration: equal for equal settings in any order, different for ``true`` and 1.

    >>> configuration_key({"b": 1, "a": True})
    'a=true b=1'
    """
    return " ".join(f"{name}={json.dumps(configuration[name], ensure_ascii=False)}" for name in sorted(configuration))


@dataclass(frozen=True, slots=True)
class Knob:
    """A parameter of the target (or of its workload) that a study varies."""

    name: str
    """Name in configurations, constraints and laws."""
    kind: KnobKind
    """``ordinal``: the listed numbers, in order; ``categorical``: the listed texts, without an order."""
    values: tuple[Value, ...] = ()
    """Settings of an ordinal, categorical or bool knob; empty for ranges."""
    low: float | None = None
    """Smallest setting of an int or float knob."""
    high: float | None = None
    """Largest setting of an int or float knob."""
    scale: Literal["linear", "log2", "log10"] = "linear"
    """Scale along which the settings of a range are spaced evenly."""
    step: float | None = None
    """Distance of the settings of a range, which begin at its low end; None: every whole number, every float."""
    tolerance: float = 0.0
    """Share by which the target may report another number than was requested; the number that it reports is the setting."""
    unit: str = ""
    """Unit of its numbers."""
    default: Value | None = None
    """Setting that the target has by itself; None where the study does not say."""
    apply: tuple[Mapping[str, Any], ...] = ()
    """Injections in order, each a mapping with the injector's name among its keys: ``{"pragma": "page_size"}``."""
    verify: Mapping[str, Any] | None = None
    """How the setting is read back. None only where the injector reads it, or where processes are started with it."""
    switch_cost: Literal["none", "restart", "rebuild"] = "restart"
    """Cost of changing the setting, by which trials are ordered."""
    workload: bool = False
    """Whether it describes the workload and not the target: a feature of the law, never part of the best configuration."""

    @property
    def ordered(self) -> bool:
        """Whether near settings behave similarly: false for categorical and bool knobs."""
        return self.kind in ("int", "float", "ordinal")

    @property
    def ranged(self) -> bool:
        """Whether its settings are those of a range."""
        return self.kind in ("int", "float")


@dataclass(frozen=True, slots=True)
class StudyMetric:
    """A number that each trial gives."""

    name: str = field(metadata=stated(metric=""))
    """Name of the metric."""
    source: Mapping[str, Any] = field(metadata=OMITTED)
    """Where it is read: ``{"probe": "query", "rate": "count"}``, ``{"path": "a.b"}``, ``{"regex": …}``, ``{"wall": True}`` …"""
    unit: str = field(default="", metadata=OMITTED)
    """Unit of the number."""
    goal: Goal | None = None
    """Whether more or less is better; None where the metric is only recorded."""

    @property
    def sign(self) -> float:
        """−1 where less is better, else 1."""
        return -1.0 if self.goal == "min" else 1.0


@dataclass(frozen=True, slots=True)
class Target:
    """The system that is configured and run: a server with a workload, or a program that ends by itself."""

    run: str = ""
    """Command of a program that ends by itself, empty for servers; ``{args}`` are arguments, ``{knob}`` is a setting."""
    start: str = ""
    """Command of the server; empty where the program ends by itself."""
    workload: str = ""
    """Command that loads the server; its output is the result."""
    ready: Mapping[str, Any] = field(default_factory=dict)
    """Sign that the server is ready: ``{"tcp": 7000}``, ``{"http": url}``, ``{"file": path}``, ``{"output": regex}``."""
    stop: str = "SIGTERM"
    """Signal or command that ends the server."""
    result: Mapping[str, Any] = field(default_factory=dict)
    """How the result is read: ``{"json": "stdout"}``, ``{"json": path}``, ``{"lines": "stdout"}``."""
    prepare: str = ""
    """Command that is run once before the first trial; empty: none."""
    folder: str = "."
    """Working directory, relative to the study file."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that are set for the target."""
    timeout_s: float = 60.0
    """Time after which a trial counts as hanging and is invalid."""
    ready_s: float = 20.0
    """Longest time until the server is ready."""
    disk_bytes: int = 0
    """Bytes by which its folder may grow in a trial; 0: half of the free disk."""
    remote: str = ""
    """``host:port`` of the ``perflaw agent`` that runs it; empty: this machine."""
    sql: str = ""
    """Where SQL goes: an SQLite file, or a command with ``{}`` for the statement (``psql -At -c {}``); empty: nowhere."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a study; it ends at the first one that is reached."""

    trials: int | None = None
    """Number of trials, repetitions included."""
    minutes: float | None = None
    """Wall time, minutes."""
    margin: float | None = None
    """Share (0.05: 5 %): the study ends when no untried configuration is likely to be better by more."""


@dataclass(frozen=True, slots=True)
class Study:
    """A study as its file describes it, checked."""

    name: str
    """Name in the file, else the file's name without its suffix."""
    target: Target
    """The system under study."""
    knobs: tuple[Knob, ...]
    """Parameters that are varied, in the file's order."""
    metrics: tuple[StudyMetric, ...]
    """Metrics that are measured; the first one with a goal is the objective."""
    constraints: tuple[str, ...] = ()
    """Expressions over knobs and ``host.mem``, ``host.cpus``; all must hold."""
    restore: Mapping[str, Any] = field(default_factory=dict)
    """``{"snapshot": ["db"], "on": ["exit", "crash"]}``: files that are restored after each trial, or at the end."""
    policy: str = "law"
    """Name of a policy, an entry point of ``perflaw.policies``, or ``file.py:Class``."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the policy."""
    budget: Budget = field(default_factory=Budget)
    """When the study ends."""
    repetitions: int = 1
    """Trials of each configuration, interleaved with those of other configurations."""
    early_stop: bool = True
    """Whether a trial that cannot become the best any more is ended early."""
    load: Mapping[str, Any] = field(default_factory=dict)
    """Load beside the target in every trial: ``{"cpu": 1, "memory": "1GiB", "disk": "50MB/s"}``; numbers or names of knobs."""
    digest: str = ""
    """SHA-256 of the file's text, by which a resumed study is known to be the same."""
    folder: str = "."
    """Folder of the file, to which paths are relative."""

    @property
    def objective(self) -> StudyMetric | None:
        """The first metric with a goal, in which configurations compete; None where no metric has a goal."""
        return next((metric for metric in self.metrics if metric.goal), None)


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions under which a trial ran; they show contaminated trials and hidden locks."""

    other_cpu: float = 0.0
    """Mean number of cores that other programs used."""
    run_delay: float = 0.0
    """Time that runnable threads of the target waited for a processor, as a share of the target's CPU time."""
    voluntary: float = 0.0
    """Voluntary context switches of the target's processes, per second."""
    involuntary: float = 0.0
    """Involuntary context switches of the target's processes, per second."""
    cpu_s: float = 0.0
    """CPU time of the target and its workload, seconds."""
    memory_bytes: int = 0
    """Peak resident memory of the target's processes."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of the target under one configuration."""

    number: int
    """1, 2, …: the order in which trials were planned."""
    configuration: Configuration
    """Settings that were requested."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Value of each metric; empty where the trial is invalid."""
    scatter: Mapping[str, float] = field(default_factory=dict)
    """Standard error of a metric within the trial, for metrics whose readings show it."""
    n: int = 0
    """Number of readings or results behind the values."""
    valid: bool = False
    """Whether it is a data point."""
    reason: str = ""
    """Why the trial is no data point, or a remark on its values."""
    stopped: str = ""
    """Why the trial was ended early; empty if it was not."""
    contaminated: str = ""
    """How other programs disturbed the trial; empty if they did not."""
    repetition: int = 0
    """0 for the first trial of a configuration, 1 for the second, …"""
    why: str = ""
    """Why the policy proposed the configuration, in words."""
    run: str = ""
    """Id of the trial's run in the experiment."""
    started: str = ""
    """Start, UTC, ISO 8601; empty while the trial is only planned."""
    seconds: float = 0.0
    """Duration of the trial, set-up included."""
    measured_s: float = 0.0
    """Duration of the measured part."""
    requested: Configuration = field(default_factory=dict)
    """The configuration that was requested, where the target rounds and has another; empty elsewhere."""
    verified: Configuration = field(default_factory=dict)
    """Settings that were read back from the target; the others were set, and nothing tells whether they took effect."""
    conditions: Conditions = field(default_factory=Conditions)
    """Conditions under which the trial ran."""

    @property
    def wanted(self) -> Configuration:
        """The configuration that was requested."""
        return self.requested or self.configuration


@dataclass(frozen=True, slots=True)
class Reading:
    """A value of a metric over a short time within a trial, for early stopping and live views."""

    metric: str
    """Name of the metric."""
    at_s: float
    """End of that time, seconds after the trial became ready."""
    value: float
    """The metric over that time alone."""
    n: int = 1
    """Number of records behind the value."""
