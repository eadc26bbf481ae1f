"""``perflaw check SPEC --attach PID``: a running program held against specifications, once or continuously."""

from __future__ import annotations

import statistics
import sys
import time
import urllib.request
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from perflaw.api.mining import judge_recordings, read_specs
from perflaw.cli.live_mining import spent_words
from perflaw.cli.options import print_document
from perflaw.cli.progress import note
from perflaw.cli.record_messages import print_build
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from perflaw.check.spec_calls import SpecOptions
    from perflaw.mine.budget import BudgetOf
    from perflaw.mine.watching import SpecRounds
    from perflaw.store.experiment import Experiment
    from perflaw.types import Histogram, Observed, SpecVerdict
    from perflaw.types.specifications import SpecFile

ONCE_ROUNDS: Final = 4
"""Rounds of a single check."""
WINDOW_ROUNDS: Final = 6
"""Latest rounds that are judged together while watching."""
LATEST_ROUNDS: Final = 2
"""Latest rounds that are judged alone as well, for what has just begun to show."""
LEAST_CONFIRM_ROUNDS, CONFIRM_ROUNDS, MOST_CONFIRM_ROUNDS = 3, 6, 20
"""Fresh rounds in which a suspected violation has to show again: from the first number on to the second one, and up to the last
one as long as they speak for it. E-values hold at any time of looking, so that looking longer raises no more false alarms."""
FUTILE: Final = 1.0
"""E-value from which on downwards fresh rounds do not speak for a violation."""
LEAST_MINED_RUNS: Final = 3
"""Recordings that a watched group has to be mined from; with fewer, it is not known how much it varies."""
UNKNOWN_SPREAD: Final = f"mined from fewer than {LEAST_MINED_RUNS} recordings, so it is not known how much it varies"
SOON_S: Final = 120.0
"""Time in which a slowdown is to be told."""
HOUR_S: Final = 3600.0
"""``--alpha`` is the number of false alarms to be expected in this time."""


@dataclass(frozen=True, slots=True)
class LiveOutputs:
    """Where and how verdicts are told."""

    json: bool
    """Print JSON documents instead of text."""
    all: bool
    """Also list what holds."""
    metrics: str | None
    """File in Prometheus' text format that is kept up to date."""
    otlp: str | None
    """File or URL that gets the durations by group."""


def check_running(
    source: str,
    experiment: str,
    pid: int,
    options: SpecOptions,
    budget: tuple[float, BudgetOf],
    outputs: LiveOutputs,
    *,
    watch: bool,
) -> int:
    """Measure the process within the ``budget``, a part of what it names, and judge it.

    Exit status 1 if a specification is violated, or was while it was watched.
    """
    from perflaw.mine.attached import AttachedProcess
    from perflaw.mine.budget import Budget
    from perflaw.mine.watching import SpecCallers, SpecRounds
    from perflaw.record.process import SignalRelay
    from perflaw.store.experiment import open_experiment

    file = read_specs(source)
    callers = {mined.spec.component: SpecCallers.of(mined.spec) for mined in file.specs}
    if not callers:
        raise UsageError(
            f"{source} specifies nothing", "it names no function", "perflaw mine --export yaml > SPEC.yaml"
        )
    watched = watched_functions(file) if watch else set(callers)
    if not watched:
        raise UsageError(
            f"{source} has nothing to watch",
            f"each group of call paths was {UNKNOWN_SPREAD}",
            f"perflaw mine --attach {pid} --seconds 300, and export it again",
        )
    target = open_experiment(experiment)
    target.make()
    share, of = budget
    process = AttachedProcess(target, pid, print_build, samples_on=of == "throughput")  # signals end it as usual so far
    with SignalRelay() as relay:
        account = Budget(pid, share, process.presumed, of=of)

        def ends() -> bool:
            return relay.received is not None or not process.alive

        def rest(seconds: float) -> None:
            deadline = time.monotonic() + seconds
            while not ends() and (left := deadline - time.monotonic()) > 0:
                time.sleep(min(left, 0.05))

        rounds = SpecRounds(process, account, callers, rest, ends)
        with process:
            rounds.sample()
            if watch:
                if not outputs.otlp:  # who receives the durations has rules for all functions
                    rounds.restrict(watched)
                _note_unwatched(file, len(rounds.callers))
                file = replace(file, specs=tuple(one for one in file.specs if one.spec.component in rounds.callers))
            check = _LiveCheck(file, target, rounds, options, outputs)
            status = check.watch() if watch else check.once()
        if not process.alive:
            note(f"process {pid} {'runs another program now' if process.is_replaced else 'ended'}")
        account.settle_window({}, at_end=True)
        note(spent_words(account))
        return status


def unknown_groups(file: SpecFile) -> set[str]:
    """Groups that were mined from too few recordings to know how much they vary; what a person wrote is taken at its word."""
    groups = [group for mined in file.specs for group in mined.spec.groups]
    return {group.id for group in groups if 0 < group.runs < LEAST_MINED_RUNS}


def watched_functions(file: SpecFile) -> set[str]:
    """Functions with a group of call paths that can be violated."""
    unknown = unknown_groups(file)
    return {
        mined.spec.component
        for mined in file.specs
        if any(
            group.id not in unknown and group.standing != "quarantined" and (mined.spec.borders or group.durations)
            for group in mined.spec.groups
        )
    }


def _note_unwatched(file: SpecFile, recorded: int) -> None:
    """Say which part of the specifications is not watched, and why."""
    if not (unknown := len(unknown_groups(file))):
        return
    groups, functions = sum(len(mined.spec.groups) for mined in file.specs), len(file.specs)
    fewer = f" ({functions - recorded} of {functions} functions are not recorded)" if recorded < functions else ""
    note(f"{unknown} of {groups} groups of call paths are not watched{fewer}: {UNKNOWN_SPREAD}; mine for longer")


class _LiveCheck:
    """The checks of one process."""

    def __init__(
        self, file: SpecFile, experiment: Experiment, rounds: SpecRounds, options: SpecOptions, outputs: LiveOutputs
    ) -> None:
        self.file, self.experiment, self.rounds, self.options, self.outputs = file, experiment, rounds, options, outputs
        self._violated: dict[str, set[str]] = {}
        """Functions of which a violation was told, and the groups of call paths that it was told of."""
        self._since_ns = time.time_ns()
        self._durations: dict[tuple[str, str], tuple[Histogram, ...]] = {}
        """By function and clock, durations of each group's calls since the check began."""
        self._idle: set[str] = set()
        self._called: set[str] = set()
        """Functions of which calls were recorded since the check began."""
        self._unknown = unknown_groups(file)
        self._rounds = 0

    def once(self) -> int:
        """Some rounds, judged together."""
        from perflaw.report.documents import check_document
        from perflaw.report.verdicts import spec_verdicts_text

        runs = [run for _ in range(ONCE_ROUNDS) for run in self.rounds.round()]
        verdicts = [without_doubt(one, self._unknown) for one in self._judge(runs, self.options)]
        document = check_document(verdicts, runs, [])
        if self.outputs.json:
            print_document(document)
        else:
            click.echo(spec_verdicts_text(document, sys.stdout.isatty(), self.outputs.all), nl=False)
        return int(any(one.verdict == "violated" for one in verdicts))

    def watch(self) -> int:
        """Rounds until it ends. A violation of the latest rounds has to show again in fresh ones to be told.

        The e-value of fresh rounds is compared with a level that lets expect ``alpha`` false alarms an hour.
        """
        from perflaw.store.experiment import discard

        self.options = replace(self.options, plan=False)  # what is uncertain is not told
        window: deque[list[str]] = deque()
        is_told = False
        begun, alarms = time.monotonic(), 0
        while not self.rounds.ends():
            newest_runs = self.rounds.round(levels=0, reserving=True)
            window.append(newest_runs)
            self._rounds += 1
            for run in window.popleft() if len(window) > WINDOW_ROUNDS else []:
                discard(self.experiment.runs_folder / run)
            verdicts = self._judge([run for runs in window for run in runs], self.options)
            is_told = is_told or self._note_power(verdicts, time.monotonic() - begun)
            if self._rounds == WINDOW_ROUNDS:
                self._note_uncalled()
            latest = list(window)[-LATEST_ROUNDS:]
            newest = self._judge([run for runs in latest for run in runs], self.options, newest_runs)
            suspected = [one for one in (*verdicts, *newest) if self._is_news(one)]
            self._forget_holding(verdicts)
            if suspected and not self.rounds.ends():
                looks = max(HOUR_S / max((time.monotonic() - begun) / self._rounds, 0.1), 1.0)
                alarms += self._confirm(suspected, replace(self.options, alpha=self.options.alpha / looks))
            self._write_metrics(verdicts)
        return int(alarms > 0)

    def _note_power(self, verdicts: Sequence[SpecVerdict], seconds: float) -> bool:
        """Say how much slower calls have to become to be told in ``SOON_S``, at the rate at which they were made so far.

        Gives whether it could be said.
        """
        from perflaw.check.spec_location import MIN_WITNESSES, OWN_RANGE
        from perflaw.check.spec_power import smallest_slowdown
        from perflaw.report.quantity import count, counted

        a_round = seconds / self._rounds
        rounds = min(max(round(SOON_S / a_round), LEAST_CONFIRM_ROUNDS), MOST_CONFIRM_ROUNDS)
        judged = {one.group: one for one in verdicts if one.worth and one.group not in self._unknown}
        enough = len(judged) * max(HOUR_S / a_round, 1.0) / self.options.alpha
        machine = OWN_RANGE if len(self.file.specs) < MIN_WITNESSES else 0.0
        smallest = [
            smallest_slowdown(group, rounds, one.worth / max(one.runs, 1), enough, self.options, machine)
            for mined in self.file.specs
            for group in mined.spec.groups
            if (one := judged.get(group.id))
        ]
        if smallest:
            calls = statistics.median(one.calls / max(one.runs, 1) for one in judged.values())
            least, middle, most = (
                f"{one:.2g}" if one < float("inf") else "∞"
                for one in (min(smallest), statistics.median_low(smallest), max(smallest))
            )
            groups = f"median of {counted(len(smallest), 'group')}; {least} to {most}"
            rate = f"at {count(calls)} calls of a group in a round, every {a_round:.0f} s"
            soon = f"{SOON_S / 60:g} minutes"
            note(f"a slowdown of all calls is told within {soon} from a factor of {middle} on ({groups}), {rate}")
        return bool(smallest)

    def _note_uncalled(self) -> None:
        """Say of which functions no call was recorded: a watch that sees none of them would be silent as if all held."""
        from perflaw.report.verdicts import MAX_LISTED

        names = sorted(self.rounds.callers.keys() - self._called - self.rounds.idle)
        if not names:
            return
        listed = ", ".join(names[:MAX_LISTED]) + (f" and {len(names) - MAX_LISTED} more" if names[MAX_LISTED:] else "")
        is_all = "" if self._called else ": is this the program that was specified?"
        note(f"no call of {listed} began and ended in the first {WINDOW_ROUNDS} rounds{is_all}")

    def _confirm(self, suspected: Sequence[SpecVerdict], options: SpecOptions) -> int:
        """Look again, with more callers, as suspected functions ask for it; tells what is violated, and gives their number."""
        from perflaw.mine.watching import DEEPER
        from perflaw.report.documents import check_document
        from perflaw.report.verdicts import spec_verdicts_text
        from perflaw.store.experiment import discard

        runs: list[str] = []
        found: list[SpecVerdict] = []
        for count in range(1, MOST_CONFIRM_ROUNDS + 1):
            newest = self.rounds.round(levels=DEEPER)
            runs += newest
            verdicts = self._judge(runs, options, newest)
            if count < LEAST_CONFIRM_ROUNDS and not self.rounds.ends():
                continue
            # Fresh rounds are evidence of any function, also of one that was not suspected yet.
            found = [one for one in verdicts if self._is_news(one)]
            names = {one.component.name for one in suspected}
            is_futile = all((one.e_value or 0.0) <= FUTILE for one in verdicts if one.component.name in names)
            if found or self.rounds.ends() or (count >= CONFIRM_ROUNDS and is_futile):
                break
        for one in found:
            self._violated.setdefault(one.component.name, set()).add(one.group)
        for run in [] if found else runs:  # what is told keeps its evidence
            discard(self.experiment.runs_folder / run)
        if found:
            document = check_document([one for one in verdicts if one in found], runs, [])
            if self.outputs.json:
                print_document(document)
            else:
                click.echo(f"{time.strftime('%H:%M:%S')}\n{spec_verdicts_text(document, sys.stdout.isatty(), False)}")
            sys.stdout.flush()
        return len(found)

    def _is_news(self, verdict: SpecVerdict) -> bool:
        """Whether a function is slower than specified, and was not told of yet. What is quicker needs no alarm."""
        no_change = 0.0 if verdict.border is not None else 1.0
        is_slower = verdict.effect is not None and verdict.effect > no_change
        if verdict.group in self._unknown:
            return False
        return verdict.verdict == "violated" and is_slower and verdict.component.name not in self._violated

    def _forget_holding(self, verdicts: Sequence[SpecVerdict]) -> None:
        """Forget violations of functions that hold again.

        All of their groups do that were told of; other groups may have held all the time.
        """
        holding = {one.group for one in verdicts if one.verdict == "holds"}
        self._violated = {name: groups for name, groups in self._violated.items() if not groups <= holding}

    def _judge(self, runs: Sequence[str], options: SpecOptions, new: Sequence[str] = ()) -> list[SpecVerdict]:
        """The verdicts of these recordings. The durations in those that are ``new`` are sent."""
        if not runs:  # no call of any function began and ended
            from perflaw.check.spec_judge import judge_specs

            return judge_specs(self._watched().specs, {}, options)
        recordings = [self.experiment.recording(run) for run in runs]
        verdicts, observed = judge_recordings(self._watched(), recordings, options)
        self._called.update(name for name, _ in observed)
        if self.outputs.otlp and new:
            self._add(observed, new)
            self._send()
        return verdicts

    def _watched(self) -> SpecFile:
        """The specifications without those of functions that wait until somebody asks, which is told once of each."""
        for name in sorted(self.rounds.idle - self._idle):
            note(f"{name} is not watched: it waits until somebody asks for something, who decides how long")
        self._idle |= self.rounds.idle
        return replace(self.file, specs=tuple(one for one in self.file.specs if one.spec.component not in self._idle))

    def _add(self, observed: Mapping[tuple[str, str], Observed], runs: Sequence[str]) -> None:
        """Add the durations in these recordings, each of which is added once: sums that only grow are what receivers expect."""
        from perflaw.check.spec_calls import histograms_of
        from perflaw.learn.paths.durations import merged

        for mined in self.file.specs:
            key = (mined.spec.component, mined.spec.metric)
            if (one := observed.get(key)) is None:
                continue
            part = replace(one, observations=tuple(each for each in one.observations if each.run in runs))
            added = histograms_of(mined.spec, part)
            before = self._durations.get(key)
            self._durations[key] = tuple(map(merged, zip(before, added, strict=True))) if before else added

    def _send(self) -> None:
        """Write or send the durations of each group since the check began."""
        from perflaw.report.mine.exports import mine_otlp
        from perflaw.types.documents import dumps

        span = (self._since_ns, time.time_ns())
        keyed = [(mined, self._durations.get((mined.spec.component, mined.spec.metric))) for mined in self.file.specs]
        specs = [replace(mined, histograms=known, span_ns=span) for mined, known in keyed if known]
        text = dumps(mine_otlp(replace(self.file, specs=tuple(specs)))) + "\n"
        place = self.outputs.otlp or ""
        try:
            if place.startswith(("http://", "https://")):
                head = {"Content-Type": "application/json"}
                request = urllib.request.Request(place, text.encode(), head, method="POST")
                with urllib.request.urlopen(request, timeout=5):
                    pass
            else:
                _replace(Path(place), text)
        except OSError as error:
            note(f"--otlp {place}: {error}; the watch goes on")

    def _write_metrics(self, verdicts: Sequence[SpecVerdict]) -> None:
        """Keep the file for Prometheus' node exporter up to date."""
        from perflaw.mine.budget import own_cpu_ns

        if not self.outputs.metrics:
            return
        samples = []
        for mined in self.file.specs:
            name = mined.spec.component.replace("\\", r"\\").replace('"', r"\"")
            samples.append((f'{{function="{name}"}}', f"{int(mined.spec.component in self._violated)}"))
        metrics = (
            ("spec_violated", "gauge", "Whether its calls violate its specification.", samples),
            ("check_rounds_total", "counter", "Rounds of the check so far.", f"{self._rounds}"),
            (
                "overhead_ratio",
                "gauge",
                "Part of the budget's base that measuring took.",
                f"{self.rounds.budget.share:.6f}",
            ),
            ("own_cpu_seconds_total", "counter", "CPU time of perflaw itself.", f"{own_cpu_ns() / 1e9:.3f}"),
            ("check_last_round_timestamp_seconds", "gauge", "When the latest round ended.", f"{time.time():.0f}"),
            ("specs_judged", "gauge", "Verdicts of the latest rounds.", f"{len(verdicts)}"),
        )
        rows = []
        for name, kind, about, values in metrics:
            rows += [f"# HELP perflaw_{name} {about}", f"# TYPE perflaw_{name} {kind}"]
            rows += [
                f"perflaw_{name}{labels} {value}"
                for labels, value in ([("", values)] if isinstance(values, str) else values)
            ]
        try:
            _replace(Path(self.outputs.metrics), "\n".join(rows) + "\n")
        except OSError as error:
            note(f"--metrics {self.outputs.metrics}: {error}; the watch goes on")


def without_doubt(verdict: SpecVerdict, unknown: Collection[str]) -> SpecVerdict:
    """The verdict; inconclusive where a violated group was mined from too few recordings to know how much it varies."""
    if verdict.verdict != "violated" or verdict.group not in unknown:
        return verdict
    return replace(verdict, verdict="inconclusive", message=UNKNOWN_SPREAD)


def _replace(path: Path, text: str) -> None:
    """Write a file as a whole: whoever reads it meanwhile finds the old one or the new one."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.replace(path)
