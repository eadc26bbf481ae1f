"""The readings of a target with probes: a collector beside the agent drains the probes, and their records become readings."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from perflaw.errors import TargetError
from perflaw.types.studies import Reading, StudyMetric

_WINDOW_S: Final = 0.02
"""Time behind a reading; trials of a second then have enough readings to be judged while they run."""


class CollectorLost(Exception):
    """The collector has gone, and the trial has to be made again."""


@contextmanager
def lost_if_it_fails() -> Iterator[None]:
    """Raise CollectorLost for whatever goes wrong with a process in the block: the collector was killed, or never started."""
    try:
        yield
    except TargetError as error:
        raise CollectorLost(str(error)) from error


class ProbeReadings:
    """Readings of the probes of one agent's targets. CollectorLost from any method but ``close``."""

    def __init__(self, folder: Path, metrics: Sequence[StudyMetric]) -> None:
        """Start the collector of the probes that write to ``folder``."""
        from perflaw.record.probes.client import start_collector  # NumPy takes its time; few studies have probes
        from perflaw.record.probes.metrics import ProbeMetrics

        folder.mkdir(mode=0o700, exist_ok=True)
        self._folder = folder
        self._new_metrics = partial(ProbeMetrics, metrics, _WINDOW_S)
        self._metrics = self._new_metrics()
        with lost_if_it_fails():
            self._collecting = start_collector(folder)

    @property
    def pid(self) -> int:
        """The collector's process; 0 where there is none."""
        return self._collecting.process.pid if self._collecting.process else 0

    def begin_trial(self) -> None:
        """Forget the processes of the previous trial, which have ended."""
        for path in self._folder.iterdir():
            path.unlink(missing_ok=True)
        with lost_if_it_fails():
            self._collecting.ask("collect", {"remove": True})
            self._collecting.poll_waiting()
        self._metrics = self._new_metrics()

    def begin(self) -> None:
        """Begin the measurement."""
        self.readings()
        self._metrics.begin(time.monotonic_ns())

    def readings(self) -> list[Reading]:
        """Return the readings that are complete."""
        with lost_if_it_fails():
            batches = list(self._collecting.poll())
        return [reading for batch in batches for reading in self._metrics.take(batch)]

    def finish(self) -> list[Reading]:
        """Return the last readings, when the target has ended."""
        with lost_if_it_fails():
            batches = list(self._collecting.finish())
        found = [reading for batch in batches for reading in self._metrics.take(batch)]
        return found + self._metrics.flush(time.monotonic_ns())

    def missing(self) -> dict[str, str]:
        """Return why metrics have no reading, by metric."""
        return dict(self._metrics.missing)

    def close(self) -> None:
        """End the collector."""
        self._collecting.close()
        shutil.rmtree(self._folder, ignore_errors=True)
