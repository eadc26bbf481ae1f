"""A trial made with an agent: its verbs in order, the record stream watched, all that came of it put together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate, zip_longest
from typing import Any, Protocol

from perflaw.explore.agent.client import Agent, Invalid
from perflaw.explore.target.scoring import Raw, score
from perflaw.types.studies import Conditions, Reading, Study, Trial
from perflaw.wire.channel import Message


class Judge(Protocol):
    """Looks at the record stream of a trial."""

    def take(self, reading: Reading) -> str:
        """Take a reading; why the trial is to be ended, empty if it is to go on."""


@dataclass(frozen=True, slots=True)
class Made:
    """A trial that is over."""

    trial: Trial
    """What is to be written down."""
    raw: Mapping[str, Any]
    """What it printed and used; empty where it is no data point."""
    readings: tuple[Reading, ...] = ()
    """Its record stream."""


def make(agent: Agent, study: Study, trial: Trial, judge: Judge, tell: Callable[[Reading], None]) -> Made:
    """Make a trial. WireError where the agent is lost: it is to be made again, under its number."""
    began = time.monotonic()
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    stream = _Stream(agent, judge, tell)
    trial = Trial(trial.number, trial.configuration, repetition=trial.repetition, why=trial.why, started=started)
    try:
        raw = _measured(agent, study, trial, stream)
    except Invalid as error:
        agent.ask("stop", timeout_s=study.target.ready_s)
        over = replace(trial, reason=str(error), seconds=time.monotonic() - began)
        return Made(over, {}, tuple(stream.readings))
    agent.ask("stop", timeout_s=study.target.ready_s)
    if "trial" in study.restore.get("on", ()):
        agent.ask("restore", timeout_s=study.target.timeout_s)
    return Made(_scored(study, trial, raw, stream, time.monotonic() - began), raw, tuple(stream.readings))


class _Stream:
    """The readings of the trial that runs; says ``enough`` once when it is to be ended."""

    def __init__(self, agent: Agent, judge: Judge, tell: Callable[[Reading], None]) -> None:
        self.readings: list[Reading] = []
        self._agent, self._judge, self._tell, self._told = agent, judge, tell, False

    def take(self, message: Message) -> None:
        """A message that came while the trial ran."""
        if message.kind != "reading":
            return
        reading = Reading(**message.document)
        self.readings.append(reading)
        self._tell(reading)
        why = self._judge.take(reading)
        if why and not self._told:
            self._told = True
            self._agent.channel.send("enough", {"why": why})


def _measured(agent: Agent, study: Study, trial: Trial, stream: _Stream) -> dict[str, Any]:
    target = study.target
    agent.ask("apply", {"configuration": dict(trial.configuration)}, target.timeout_s)
    agent.ask("start", timeout_s=target.ready_s)
    agent.ask("verify", timeout_s=target.timeout_s)
    answer = agent.ask("measure", {"load": _load(study, trial)}, target.timeout_s, stream.take)
    return {**answer.document, **_texts(answer.document["texts"], answer.payload)}


def _texts(lengths: list[int], payload: bytes) -> dict[str, str | None]:
    """Standard output, standard error, and the result where it is a file."""
    ends = list(accumulate(lengths))
    parts = [payload[end - length : end].decode("utf-8", "replace") for end, length in zip(ends, lengths, strict=True)]
    return dict(zip_longest(("stdout", "stderr", "result"), parts))


def _load(study: Study, trial: Trial) -> dict[str, float]:
    """The load beside this trial: numbers, or settings of knobs."""
    values = {**trial.configuration}
    return {kind: float(values[size] if isinstance(size, str) else size) for kind, size in study.load.items()}


def _scored(study: Study, trial: Trial, raw: Mapping[str, Any], stream: _Stream, seconds: float) -> Trial:
    conditions = Conditions(**raw["conditions"])
    scored = score(study.metrics, study.target.result, raw_of(raw, tuple(stream.readings)))
    valid = not scored.missing or bool(raw["stopped"] and scored.metrics)
    return replace(
        trial,
        metrics=scored.metrics if valid else {},
        scatter=scored.scatter if valid else {},
        n=scored.n if valid else 0,
        valid=valid,
        reason=scored.said if valid else scored.missing,
        stopped=raw["stopped"],
        seconds=seconds,
        measured_s=raw["wall_s"],
        verified=raw["verified"],
        conditions=conditions,
    )


def raw_of(raw: Mapping[str, Any], readings: tuple[Reading, ...]) -> Raw:
    """What an agent answered, for scoring."""
    conditions = raw["conditions"]
    result = raw["stdout"] if raw.get("result") is None else raw["result"]
    used = conditions["cpu_s"], conditions["memory_bytes"]
    return Raw(raw["stdout"], raw["stderr"], result, raw["wall_s"], *used, readings, raw.get("missing", {}))
