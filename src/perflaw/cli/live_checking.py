"""``perflaw check SPEC --attach PID``: a running program held against specifications, once or continuously."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from perflaw.api.mining import read_specs
from perflaw.cli.live_mining import SiblingRemark, spent_words
from perflaw.cli.live_outputs import DurationExport, LiveOutputs, WatchMetrics, print_verdicts
from perflaw.cli.progress import note
from perflaw.cli.record_messages import print_build
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from perflaw.api.watching import RecordingJudge, SpecWatch
    from perflaw.check.spec_calls import SpecOptions
    from perflaw.mine.budget import BudgetOf
    from perflaw.mine.watching import SpecRounds
    from perflaw.types import SpecVerdict
    from perflaw.types.specifications import SpecFile

ONCE_ROUNDS: Final = 4
"""Rounds of a single check."""


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
    from perflaw.api.watching import RecordingJudge, SpecWatch, observed_nowhere
    from perflaw.check.spec_watching import UNKNOWN_SPREAD, watched_functions
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

        again = f"perflaw check {source} -e {experiment} --attach {{}}{' --watch' if watch else ''}"
        siblings = SiblingRemark(account, again)
        rounds = SpecRounds(process, account, callers, rest, ends, siblings.tell)
        with process:
            rounds.sample()
            if watch:
                if not outputs.otlp:  # who receives the durations has rules for all functions
                    rounds.restrict(watched)
                _note_unwatched(file, len(rounds.callers))
                file = replace(file, specs=tuple(one for one in file.specs if one.spec.component in rounds.callers))
                options = replace(options, plan=False)  # what is uncertain is not told
            export = DurationExport(file, outputs.otlp).update if outputs.otlp else observed_nowhere
            judge = RecordingJudge(file, target, options, lambda: rounds.idle, export)
            status = watch_until_end(SpecWatch(judge, rounds), outputs) if watch else check_once(judge, rounds, outputs)
        if not process.alive:
            note(f"process {pid} {'runs another program now' if process.is_replaced else 'ended'}")
        account.settle_window({}, at_end=True)
        note(spent_words(account))
        return status


def _note_unwatched(file: SpecFile, recorded: int) -> None:
    """Say which part of the specifications is not watched, and why."""
    from perflaw.check.spec_watching import UNKNOWN_SPREAD, unknown_groups

    if not (unknown := len(unknown_groups(file))):
        return
    groups, functions = sum(len(mined.spec.groups) for mined in file.specs), len(file.specs)
    fewer = f" ({functions - recorded} of {functions} functions are not recorded)" if recorded < functions else ""
    note(f"{unknown} of {groups} groups of call paths are not watched{fewer}: {UNKNOWN_SPREAD}; mine for longer")


def check_once(judge: RecordingJudge, rounds: SpecRounds, outputs: LiveOutputs) -> int:
    """Print the verdicts of some rounds together; gives the exit status."""
    from perflaw.check.spec_watching import unknown_groups, without_doubt

    runs = [run for _ in range(ONCE_ROUNDS) for run in rounds.round()]
    _note_idle(rounds.idle)
    unknown = unknown_groups(judge.file)
    verdicts = [without_doubt(one, unknown) for one in judge.verdicts(runs)]
    print_verdicts(verdicts, runs, as_json=outputs.json, every=outputs.all)
    return int(any(one.verdict == "violated" for one in verdicts))


def watch_until_end(watch: SpecWatch, outputs: LiveOutputs) -> int:
    """Rounds until the program or a signal ends them; prints what is violated, and gives the exit status."""
    from perflaw.mine.budget import own_cpu_ns

    remarks, violations = WatchRemarks(watch), 0
    while not watch.rounds.ends():
        verdicts, suspected = watch.next_round()
        remarks.tell(verdicts)
        if suspected and not watch.rounds.ends():
            found, runs = watch.confirm(suspected)
            violations += len(found)
            if found:
                print_verdicts(found, runs, as_json=outputs.json, heading=time.strftime("%H:%M:%S"))
        if outputs.metrics:
            violated = {
                mined.spec.component: mined.spec.component in watch.open.groups for mined in watch.judge.file.specs
            }
            overhead, own_s = watch.rounds.budget.share, own_cpu_ns() / 1e9
            WatchMetrics(violated, watch.number, overhead, own_s, len(verdicts)).write(outputs.metrics)
    return int(violations > 0)


def _note_idle(functions: set[str]) -> None:
    """Say which functions are not judged because they wait for others."""
    for name in sorted(functions):
        note(f"{name} is not watched: it waits until somebody asks for something, who decides how long")


class WatchRemarks:
    """What a watch says of itself beside the violations, each thing once."""

    def __init__(self, watch: SpecWatch) -> None:
        self.watch = watch
        self._idle: set[str] = set()
        """Functions of which it was said that they are not watched."""
        self._says_detectable = False

    def tell(self, verdicts: Sequence[SpecVerdict]) -> None:
        """Say what is known after a round with these verdicts."""
        from perflaw.api.watching import WINDOW_ROUNDS

        idle = self.watch.rounds.idle
        _note_idle(idle - self._idle)
        self._idle |= idle
        if not self._says_detectable:
            self._says_detectable = self._tell_detectable(verdicts)
        if self.watch.number == WINDOW_ROUNDS:
            self._tell_uncalled()

    def _tell_detectable(self, verdicts: Sequence[SpecVerdict]) -> bool:
        """Say how much slower calls have to become to be told soon; gives whether that is known."""
        from perflaw.api.watching import SOON_S
        from perflaw.report.quantity import count, counted

        if not (known := self.watch.detectable(verdicts)):
            return False
        ends = min(known.slowdowns), statistics.median_low(known.slowdowns), max(known.slowdowns)
        least, middle, most = (f"{one:.2g}" if one < float("inf") else "∞" for one in ends)
        groups = f"median of {counted(len(known.slowdowns), 'group')}; {least} to {most}"
        calls = count(statistics.median(known.calls))
        rate = f"at {calls} calls of a group in a round, every {self.watch.round_s:.0f} s"
        soon = f"{SOON_S / 60:g} minutes"
        note(f"calls that all get slower are told within {soon} from a factor of {middle} on ({groups}), {rate}")
        return True

    def _tell_uncalled(self) -> None:
        """Say of which functions no call was recorded: a watch that sees none of them would be silent as if all held."""
        from perflaw.api.watching import WINDOW_ROUNDS
        from perflaw.report.verdicts import MAX_LISTED

        if not (names := self.watch.uncalled()):
            return
        listed = ", ".join(names[:MAX_LISTED]) + (f" and {len(names) - MAX_LISTED} more" if names[MAX_LISTED:] else "")
        is_all = "" if self.watch.judge.called else ": is this the program that was specified?"
        note(f"no call of {listed} began and ended in the first {WINDOW_ROUNDS} rounds{is_all}")
