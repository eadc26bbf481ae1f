"""A running program held against its specification in sequence: recent rounds raise a suspicion, fresh ones confirm it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from perflaw.api.mining import CALLED, FunctionMetric, recorded_program, specified_functions
from perflaw.check.spec_calls import KnownCalls
from perflaw.check.spec_judge import judge_specs
from perflaw.check.spec_location import MIN_WITNESSES, OWN_RANGE
from perflaw.check.spec_power import smallest_slowdowns
from perflaw.check.spec_watching import OpenViolations, unknown_groups
from perflaw.mine.watching import DEEPER
from perflaw.store.columns import Table
from perflaw.store.experiment import Recording, discard
from perflaw.store.paths import PathsInRun, paths_in_run, put_together, with_durations
from perflaw.store.schema import PATHS
from perflaw.store.tables import has_table, read_table

if TYPE_CHECKING:
    from perflaw.check.spec_calls import SpecOptions
    from perflaw.mine.watching import SpecRounds
    from perflaw.store.experiment import Experiment
    from perflaw.types import Observed, SpecVerdict
    from perflaw.types.specifications import SpecFile

WINDOW_ROUNDS: Final = 6
"""Latest rounds that are judged together."""
LATEST_ROUNDS: Final = 2
"""Latest rounds that are judged alone as well, for what has just begun to show."""
LEAST_CONFIRM_ROUNDS, CONFIRM_ROUNDS, MOST_CONFIRM_ROUNDS = 3, 6, 20
"""Fresh rounds in which a suspected violation has to show again: from the first number on to the second one, and up to the last
one as long as they speak for it. E-values hold at any time of looking, so that looking longer raises no more false alarms."""
FUTILE: Final = 1.0
"""E-value from which on downwards fresh rounds do not speak for a violation."""
HOUR_S: Final = 3600.0
"""``SpecOptions.alpha`` is the number of false alarms to be expected in this time."""
SOON_S: Final = 120.0
"""Time in which a slowdown is to be told."""


def observed_nowhere(observed: Mapping[FunctionMetric, Observed], runs: Sequence[str]) -> None:
    """Nobody wants what was observed."""


@dataclass(frozen=True, slots=True, eq=False)
class _ReadRecording:
    """What was read of a recording."""

    recording: Recording
    """The recording."""
    called: Table
    """The columns ``CALLED`` of its components."""
    paths: Mapping[str, PathsInRun]
    """Metric → the durations by call path of specified functions."""


class RecordingJudge:
    """Holds recordings of an experiment against specifications."""

    def __init__(
        self,
        file: SpecFile,
        experiment: Experiment,
        options: SpecOptions,
        idle: Callable[[], set[str]],
        tell_observed: Callable[[Mapping[FunctionMetric, Observed], Sequence[str]], None] = observed_nowhere,
    ) -> None:
        """``idle`` gives functions that are not judged; ``tell_observed`` gets what new recordings have observed."""
        self.file, self.experiment, self.options, self.idle = file, experiment, options, idle
        self.tell_observed = tell_observed
        self.called: set[str] = set()
        """Functions of which calls were recorded."""
        self._read: dict[str, _ReadRecording] = {}
        """By run, what was read of the recordings that are judged: each one is judged again and again."""
        self._known_calls = KnownCalls()

    def verdicts(self, runs: Sequence[str], new: Sequence[str] = (), alpha: float | None = None) -> list[SpecVerdict]:
        """The verdicts of these recordings, at the level ``alpha`` or that of the options.

        What those recordings have observed that are ``new`` is told.
        """
        options = self.options if alpha is None else replace(self.options, alpha=alpha)
        idle = self.idle()
        judged = replace(self.file, specs=tuple(one for one in self.file.specs if one.spec.component not in idle))
        if not runs:  # no call of any function began and ended
            return judge_specs(judged.specs, {}, options)
        read = [self._recording(run) for run in runs]
        observed: dict[FunctionMetric, Observed] = {}
        for metric in specified_functions(judged):
            able = {one.run.id for one in with_durations([one.recording for one in read], metric)}
            together = put_together([one.paths[metric] for one in read if one.recording.run.id in able], metric)
            observed.update({(one.component, metric): one for one in together if one.component not in idle})
        program = recorded_program([one.recording.run for one in read], [one.called for one in read])
        verdicts = judge_specs(judged.specs, observed, options, program, self._known_calls)
        self.called.update(name for name, _ in observed)
        if new:
            self.tell_observed(observed, new)
        return verdicts

    def _recording(self, run: str) -> _ReadRecording:
        if run not in self._read:
            recording = self.experiment.recording(run)
            names = ["components", *(PATHS if has_table(recording.folder, "path_about") else ())]
            tables = {name: read_table(recording.folder, name) for name in names}
            called = Table({name: tables["components"].columns[name] for name in CALLED})
            functions = specified_functions(self.file).items() if len(names) > 1 else ()
            paths = {metric: paths_in_run(recording.run, tables, some, metric) for metric, some in functions}
            self._read[run] = _ReadRecording(recording, called, paths)
        return self._read[run]

    def forget(self, runs: Sequence[str]) -> None:
        """Keep in memory no longer what was read of these recordings."""
        self._known_calls.forget(runs)
        for run in runs:
            self._read.pop(run, None)

    def discard(self, runs: Sequence[str]) -> None:
        """Remove recordings that are evidence of nothing."""
        self.forget(runs)
        for run in runs:
            discard(self.experiment.runs_folder / run)


@dataclass(frozen=True, slots=True)
class Detectable:
    """Which slowdowns of all calls a watch tells in ``SOON_S``."""

    slowdowns: tuple[float, ...]
    """The smallest one of each group, as a factor; infinite where none suffices."""
    calls: tuple[float, ...]
    """Calls of each group in a round."""


class SpecWatch:
    """The rounds over one running program, and what they show."""

    def __init__(self, judge: RecordingJudge, rounds: SpecRounds) -> None:
        self.judge, self.rounds = judge, rounds
        self.open = OpenViolations(unknown_groups(judge.file))
        self.number = 0
        """Rounds so far, without those that confirm."""
        self._window: deque[list[str]] = deque()
        """Recordings of the latest rounds."""
        self._begun = time.monotonic()

    @property
    def round_s(self) -> float:
        """Time from one round to the next."""
        return (time.monotonic() - self._begun) / self.number

    def next_round(self) -> tuple[list[SpecVerdict], list[SpecVerdict]]:
        """Make a round; gives the verdicts of the latest rounds, and the violations that these suspect."""
        newest = self.rounds.round(levels=0, reserving=True)
        self._window.append(newest)
        self.number += 1
        if len(self._window) > WINDOW_ROUNDS:
            self.judge.discard(self._window.popleft())
        verdicts = self.judge.verdicts([run for runs in self._window for run in runs])
        latest = list(self._window)[-LATEST_ROUNDS:]
        suspected = self.open.new([*verdicts, *self.judge.verdicts([run for runs in latest for run in runs], newest)])
        self.open.close(verdicts)
        return verdicts, suspected

    def confirm(self, suspected: Sequence[SpecVerdict]) -> tuple[list[SpecVerdict], list[str]]:
        """Look again, with more callers, as suspected functions ask for it; gives the violations, and their recordings.

        Their e-value is compared with a level at which the number of false alarms in an hour is that of the options.
        """
        looks = max(HOUR_S / max(self.round_s, 0.1), 1.0)
        names = {one.component.name for one in suspected}
        runs: list[str] = []
        found: list[SpecVerdict] = []
        for count in range(1, MOST_CONFIRM_ROUNDS + 1):
            newest = self.rounds.round(levels=DEEPER)
            runs += newest
            verdicts = self.judge.verdicts(runs, newest, self.judge.options.alpha / looks)
            if count < LEAST_CONFIRM_ROUNDS and not self.rounds.ends():
                continue
            # Fresh rounds are evidence of any function, also of one that was not suspected yet.
            found = self.open.new(verdicts)
            is_futile = all((one.e_value or 0.0) <= FUTILE for one in verdicts if one.component.name in names)
            if found or self.rounds.ends() or (count >= CONFIRM_ROUNDS and is_futile):
                break
        self.open.add(found)
        if not found:  # what is told keeps its evidence
            self.judge.discard(runs)
        return found, runs

    def detectable(self, verdicts: Sequence[SpecVerdict]) -> Detectable | None:
        """How much slower calls have to become to be told soon, at the rate at which they were made so far; None if unknown."""
        judge, a_round_s = self.judge, self.round_s
        judged = {one.group: one for one in verdicts if one.worth and one.group not in self.open.unknown}
        groups = [group for mined in judge.file.specs for group in mined.spec.groups if group.id in judged]
        if not groups:
            return None
        rounds = min(max(round(SOON_S / a_round_s), LEAST_CONFIRM_ROUNDS), MOST_CONFIRM_ROUNDS)
        enough = len(judged) * max(HOUR_S / a_round_s, 1.0) / judge.options.alpha
        machine = OWN_RANGE if len(judge.file.specs) < MIN_WITNESSES else 0.0
        worth = [judged[group.id].worth / max(judged[group.id].runs, 1) for group in groups]
        slowdowns = smallest_slowdowns(groups, rounds, worth, enough, judge.options, machine)
        return Detectable(tuple(slowdowns), tuple(one.calls / max(one.runs, 1) for one in judged.values()))

    def uncalled(self) -> list[str]:
        """Functions of which no call was recorded, without those that are not watched because they wait for others."""
        return sorted(self.rounds.callers.keys() - self.judge.called - self.rounds.idle)
