"""Where ``perflaw check SPEC --attach PID`` tells what it finds: the terminal or JSON, a file for Prometheus, OTLP."""

from __future__ import annotations

import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import print_document
from perflaw.cli.progress import note

if TYPE_CHECKING:
    from perflaw.types import Histogram, Observed, SpecVerdict
    from perflaw.types.specifications import SpecFile


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


def print_verdicts(
    verdicts: Sequence[SpecVerdict], runs: Sequence[str], *, as_json: bool, every: bool = False, heading: str = ""
) -> None:
    """Print the verdicts of these recordings as a document or as text, below a ``heading``; ``every``: also what holds."""
    from perflaw.report.documents import check_document
    from perflaw.report.verdicts import spec_verdicts_text

    document = check_document(verdicts, runs, [])
    if as_json:
        print_document(document)
    else:
        text = spec_verdicts_text(document, sys.stdout.isatty(), every)
        click.echo(f"{heading}\n{text}" if heading else text, nl=bool(heading))
    sys.stdout.flush()


class DurationExport:
    """Durations of each group's calls since a watch began, for receivers of OTLP.

    They are sums that only grow, in which each call counts once: that is what receivers expect.
    """

    def __init__(self, file: SpecFile, place: str) -> None:
        """``place``: a file that is written, or a URL that they are sent to."""
        self.file, self.place, self._since_ns = file, place, time.time_ns()
        self._durations: dict[tuple[str, str], tuple[Histogram, ...]] = {}
        """Function and metric → durations of each group."""

    def update(self, observed: Mapping[tuple[str, str], Observed], runs: Sequence[str]) -> None:
        """Add what these recordings have observed, each of which is added once, and write or send all of it."""
        self._add(observed, runs)
        self._send()

    def _add(self, observed: Mapping[tuple[str, str], Observed], runs: Sequence[str]) -> None:
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
        from perflaw.report.mine.exports import mine_otlp
        from perflaw.types.documents import dumps

        span = (self._since_ns, time.time_ns())
        keyed = [(mined, self._durations.get((mined.spec.component, mined.spec.metric))) for mined in self.file.specs]
        specs = [replace(mined, histograms=known, span_ns=span) for mined, known in keyed if known]
        text = dumps(mine_otlp(replace(self.file, specs=tuple(specs)))) + "\n"
        try:
            if self.place.startswith(("http://", "https://")):
                head = {"Content-Type": "application/json"}
                request = urllib.request.Request(self.place, text.encode(), head, method="POST")
                with urllib.request.urlopen(request, timeout=5):
                    pass
            else:
                _replace(Path(self.place), text)
        except OSError as error:
            note(f"--otlp {self.place}: {error}; the watch goes on")


@dataclass(frozen=True, slots=True)
class WatchMetrics:
    """What Prometheus gets of a watch."""

    violated: Mapping[str, bool]
    """Function → whether a violation of it was told and lasts."""
    rounds: int
    """Rounds so far."""
    overhead: float
    """Part of the budget's base that measuring took."""
    own_cpu_s: float
    """CPU time of perflaw itself."""
    judged: int
    """Verdicts of the latest rounds."""

    def write(self, path: str) -> None:
        """Replace the file for Prometheus' node exporter."""
        try:
            _replace(Path(path), self.text())
        except OSError as error:
            note(f"--metrics {path}: {error}; the watch goes on")

    def text(self) -> str:
        """The metrics in Prometheus' text format."""
        by_function = {name.replace("\\", r"\\").replace('"', r"\""): one for name, one in self.violated.items()}
        violated = {f'{{function="{name}"}}': f"{int(one)}" for name, one in by_function.items()}
        metrics = (
            ("spec_violated", "gauge", "Whether its calls violate its specification.", violated),
            ("check_rounds_total", "counter", "Rounds of the check so far.", {"": f"{self.rounds}"}),
            ("overhead_ratio", "gauge", "Part of the budget's base that measuring took.", {"": f"{self.overhead:.6f}"}),
            ("own_cpu_seconds_total", "counter", "CPU time of perflaw itself.", {"": f"{self.own_cpu_s:.3f}"}),
            ("check_last_round_timestamp_seconds", "gauge", "When the latest round ended.", {"": f"{time.time():.0f}"}),
            ("specs_judged", "gauge", "Verdicts of the latest rounds.", {"": f"{self.judged}"}),
        )
        lines = []
        for name, kind, about, samples in metrics:
            lines += [f"# HELP perflaw_{name} {about}", f"# TYPE perflaw_{name} {kind}"]
            lines += [f"perflaw_{name}{labels} {value}" for labels, value in samples.items()]
        return "\n".join(lines) + "\n"


def _replace(path: Path, text: str) -> None:
    """Write a file as a whole: whoever reads it meanwhile finds the old one or the new one."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.replace(path)
