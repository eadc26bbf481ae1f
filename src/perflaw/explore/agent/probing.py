"""The record stream of a target with probes: a collector beside the agent drains them, its records become readings."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from perflaw.record.probes.client import start_collector
from perflaw.record.probes.metrics import ProbeMetrics
from perflaw.types.studies import Reading, StudyMetric

_WINDOW_S: Final = 0.02
"""Time that a reading is of: trials of a second have enough of them to be judged while they run."""


class ProbeStream:
    """Probes of one agent's targets. WireError from any method: the collector is gone, the trial is to be made again."""

    def __init__(self, folder: Path, metrics: Sequence[StudyMetric]) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self._folder, self._asked = folder, metrics
        self._collecting = start_collector(folder)
        self._metrics = ProbeMetrics(metrics, _WINDOW_S)

    @property
    def pid(self) -> int:
        """The collector's process."""
        return self._collecting.process.pid if self._collecting.process else 0

    def begin_trial(self) -> None:
        """Forget the processes of the trial before; to be called when they have gone."""
        for path in self._folder.iterdir():
            path.unlink(missing_ok=True)
        self._collecting.ask("collect", {"remove": True})
        self._collecting.poll_waiting()
        self._metrics = ProbeMetrics(self._asked, _WINDOW_S)

    def begin(self) -> None:
        """What is measured begins now."""
        self.readings()
        self._metrics.begin(time.monotonic_ns())

    def readings(self) -> list[Reading]:
        """What is due of the records that came."""
        return [reading for batch in self._collecting.poll() for reading in self._metrics.take(batch)]

    def finish(self) -> list[Reading]:
        """The last readings, when the target has ended or does not count any more."""
        found = [reading for batch in self._collecting.finish() for reading in self._metrics.take(batch)]
        return found + self._metrics.flush(time.monotonic_ns())

    def missing(self) -> dict[str, str]:
        """Metric → why it has no reading."""
        return dict(self._metrics.missing)

    def close(self) -> None:
        """End the collector."""
        self._collecting.close()
        shutil.rmtree(self._folder, ignore_errors=True)
