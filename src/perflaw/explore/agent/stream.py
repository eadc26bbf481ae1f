"""The record stream of a trial as the agent sees it, whether its target has probes or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from perflaw.errors import TargetError
from perflaw.explore.agent.parts import Job
from perflaw.types.studies import Reading

if TYPE_CHECKING:
    from collections.abc import Sequence


class CollectorLost(Exception):  # noqa: N818 (an answer)
    """The collector has gone: the trial is to be made again."""


class ProbeStream(Protocol):
    """See :class:`perflaw.explore.agent.probing.ProbeStream`, which costs an import of NumPy."""

    @property
    def pid(self) -> int:
        """The collector's process."""

    def begin_trial(self) -> None:
        """Forget the trial before."""

    def begin(self) -> None:
        """What is measured begins now."""

    def readings(self) -> Sequence[Reading]:
        """What is due."""

    def finish(self) -> Sequence[Reading]:
        """The last readings."""

    def missing(self) -> dict[str, str]:
        """Metric → why it has no reading."""

    def close(self) -> None:
        """End the collector."""


def probe_stream(job: Job) -> ProbeStream:
    """The stream of a study whose metrics are of probes; its collector is started."""
    from perflaw.explore.agent.probing import ProbeStream as Probing

    with told_as_lost():
        return Probing(Path(job.probes()[0]), job.metrics)


@contextmanager
def told_as_lost() -> Iterator[None]:
    """While entered, whatever goes wrong with a process is the collector's: killed, or never come to life."""
    try:
        yield
    except TargetError as error:
        raise CollectorLost(str(error)) from error
