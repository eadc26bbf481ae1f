"""Studies of configurations: knobs, what a target is, what is measured, and the trials made of them (SPEX, §3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from perflaw.types.documents import OMITTED, stated

Value = bool | int | float | str
"""A setting of a knob; quantities with units (``4KiB``) are numbers in the base unit (4096)."""
Configuration = Mapping[str, Value]
"""Knob → setting."""
KnobKind = Literal["int", "float", "ordinal", "categorical", "bool"]
Goal = Literal["max", "min"]


@dataclass(frozen=True, slots=True)
class Knob:
    """A parameter of the target (or of its workload) that a study varies."""

    name: str
    """Its name in configurations, constraints and laws."""
    kind: KnobKind
    """``ordinal``: the listed numbers, in order; ``categorical``: the listed texts, in none."""
    values: tuple[Value, ...] = ()
    """Settings of an ordinal, categorical or bool knob; empty for ranges."""
    low: float | None = None
    """Least setting of an int or float knob."""
    high: float | None = None
    """Greatest one."""
    scale: Literal["linear", "log2", "log10"] = "linear"
    """Along which the settings of a range are even."""
    unit: str = ""
    """Unit of its numbers."""
    default: Value | None = None
    """What the target has without being told; None where the study does not say."""
    apply: tuple[Mapping[str, Any], ...] = ()
    """Injections in order, each a mapping with the injector's name among its keys: ``{"pragma": "page_size"}``."""
    verify: Mapping[str, Any] | None = None
    """How to read the setting back. None only where the injector itself verifies (arguments, environment)."""
    switch_cost: Literal["none", "restart", "rebuild"] = "restart"
    """What a change of it costs: used to order trials."""
    workload: bool = False
    """Whether it describes the workload and not the target: a feature of the law, never part of the best configuration."""


@dataclass(frozen=True, slots=True)
class StudyMetric:
    """A number that each trial gives."""

    name: str = field(metadata=stated(metric=""))
    """Its name."""
    source: Mapping[str, Any] = field(metadata=OMITTED)
    """Where it is from: ``{"probe": "query", "rate": "count"}``, ``{"path": "a.b"}``, ``{"regex": …}``, ``{"wall": True}`` …"""
    unit: str = field(default="", metadata=OMITTED)
    """Unit of it."""
    goal: Goal | None = None
    """Which way is better; None: only recorded."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is configured and run: a server with a workload, or a one-shot program."""

    run: str = ""
    """One-shot command, empty for servers; ``{args}`` holds what injectors of arguments made, ``{knob}`` a setting."""
    start: str = ""
    """Command of the server, empty for one-shot targets."""
    workload: str = ""
    """Command that loads the server; its output is the result."""
    ready: Mapping[str, Any] = field(default_factory=dict)
    """``{"tcp": 7000}``, ``{"http": url}``, ``{"file": path}``, ``{"output": regex}``; empty: at once."""
    stop: str = "SIGTERM"
    """Signal or command that ends the server."""
    result: Mapping[str, Any] = field(default_factory=dict)
    """How the result is read: ``{"json": "stdout"}``, ``{"json": path}``, ``{"lines": "stdout"}``."""
    prepare: str = ""
    """Command before the first trial, run once; empty: none."""
    folder: str = "."
    """Working directory, relative to the study file."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables set for it."""
    timeout_s: float = 60.0
    """Longest time a trial may take before it is told as hanging."""
    ready_s: float = 20.0
    """Longest time until it is ready."""
    disk_bytes: int = 0
    """Most that its folder may grow by in a trial; 0: a share of what is free."""
    remote: str = ""
    """``host:port`` of a ``perflaw agent`` that runs it; empty: this machine."""
    sql: str = ""
    """Where SQL goes: an SQLite file, or a command with ``{}`` for the statement (``psql -At -c {}``); empty: nowhere."""


@dataclass(frozen=True, slots=True)
class Budget:
    """When a study is over: whichever comes first."""

    trials: int | None = None
    """Trials in all, repetitions included."""
    minutes: float | None = None
    """Wall time."""
    margin: float | None = None
    """Share (0.05: 5 %): stop when no untried configuration can be better by more."""


@dataclass(frozen=True, slots=True)
class Study:
    """A study file, understood and checked."""

    name: str
    """Name of the file without its suffix, or as it says."""
    target: Target
    """What is run."""
    knobs: tuple[Knob, ...]
    """What is varied, in the file's order."""
    metrics: tuple[StudyMetric, ...]
    """What is measured; the first with a goal is the objective."""
    constraints: tuple[str, ...] = ()
    """Expressions over knobs and ``host.mem``, ``host.cpus``; all must hold."""
    restore: Mapping[str, Any] = field(default_factory=dict)
    """``{"snapshot": ["db"], "on": ["exit", "crash"]}``: files put back after trials, or at the end."""
    policy: str = "law"
    """Name of a policy, an entry point of ``perflaw.policies``, or ``file.py:Class``."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the policy."""
    budget: Budget = field(default_factory=Budget)
    """When it is over."""
    repetitions: int = 1
    """Trials of each configuration, interleaved with those of others."""
    early_stop: bool = True
    """Whether trials that cannot win any more are ended early."""
    load: Mapping[str, Any] = field(default_factory=dict)
    """Colocated load in every trial: ``{"cpu": 1, "memory": "1GiB", "disk": "50MB/s"}``; numbers or names of knobs."""
    digest: str = ""
    """SHA-256 of the file's text: a study that is resumed must be the same."""
    folder: str = "."
    """Folder of the file, where relative paths begin."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What else went on while a trial ran: for telling contaminated trials and hidden locks."""

    other_cpu: float = 0.0
    """CPU that others used, in cores (mean over the trial)."""
    run_delay: float = 0.0
    """Time that runnable threads of the target waited for a CPU, as a share of its CPU time."""
    voluntary: float = 0.0
    """Voluntary context switches a second of the target's processes."""
    involuntary: float = 0.0
    """Involuntary ones a second."""
    cpu_s: float = 0.0
    """CPU time of the target and its workload."""
    memory_bytes: int = 0
    """Peak resident memory of the target's processes."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of the target under one configuration."""

    number: int
    """1, 2, …: in the order they were planned."""
    configuration: Configuration
    """The settings asked for."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Metric → value; empty where the trial is invalid."""
    scatter: Mapping[str, float] = field(default_factory=dict)
    """Metric → standard error of the value within the trial, where its records tell."""
    n: int = 0
    """Records (or results) its values are of."""
    valid: bool = False
    """Whether it is a data point."""
    reason: str = ""
    """Why it is not, or what is to be said of it."""
    stopped: str = ""
    """Why it was ended early; empty if it was not."""
    contaminated: str = ""
    """What others did to it; empty if nothing."""
    repetition: int = 0
    """0 for the first trial of a configuration, 1 for the second, …"""
    why: str = ""
    """Why the policy proposed it, in words."""
    run: str = ""
    """Id of its run in the experiment."""
    started: str = ""
    """Start, UTC, ISO 8601; empty while it is planned only."""
    seconds: float = 0.0
    """How long it took, set-up included."""
    measured_s: float = 0.0
    """How long of that was measured."""
    verified: Configuration = field(default_factory=dict)
    """The settings read back."""
    conditions: Conditions = field(default_factory=Conditions)
    """What else went on."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A value of a metric over a short time within a trial: what early stopping and live views see."""

    metric: str
    """Which metric."""
    at_s: float
    """End of the time it is of, seconds after the trial became ready."""
    value: float
    """The metric over that time alone."""
    n: int = 1
    """Records it is of."""
