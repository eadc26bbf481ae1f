"""Where a stub's measurements come from, besides a running process: recordings that were made on its host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

from perflaw.mine.fleet.client import ControllerClient
from perflaw.mine.fleet.enrolment import Enrolment
from perflaw.mine.fleet.spool import Spool
from perflaw.mine.fleet.stub import ANSWER_S, BATCH_BYTES, Target, may_measure
from perflaw.mine.messages import Measurement
from perflaw.store.experiment import Recording
from perflaw.store.paths import read_observed
from perflaw.types import Observed


def recorded(recordings: Sequence[Recording], allow: Callable[[str], bool]) -> list[Measurement]:
    """A measurement for each run and function that may be measured; the same recordings always give the same ones."""
    measurements = []
    for one in read_observed(recordings):
        if not allow(one.component):
            continue
        for run in dict.fromkeys(each.run for each in one.observations):
            part = of_run(one, run)
            ends = (min(each.start_ns for each in part.observations), max(each.end_ns for each in part.observations))
            measurements.append(Measurement(0, "paths", *ends, observed=(part,)))
    return measurements


def of_run(observed: Observed, run: str) -> Observed:
    """What one run observed; its id says the host as well, because every host counts its runs from 1."""
    mine = [each for each in observed.observations if each.run == run]
    hosts = {observed.platforms[each.platform].host for each in mine}
    name = f"{min(hosts)}:{run}"
    queued = {name: observed.queued_ns[run]} if run in observed.queued_ns else {}
    return replace(observed, observations=tuple(replace(each, run=name) for each in mine), queued_ns=queued)


def deliver_recorded(
    enrolment: Enrolment, spool: Spool, recordings: Sequence[Recording], say: Callable[[str], None]
) -> int:
    """Deliver all that recordings observed of the functions that may be measured; returns the number of measurements.

    WireError if the controller cannot be reached: what is left stays in the spool, and delivering again counts nothing twice.
    """
    for measurement in recorded(recordings, lambda name: may_measure(name, enrolment.allow)):
        spool.add(measurement)
    client, delivered = ControllerClient(enrolment), 0
    first = recordings[0].run
    target = Target(first.host, first.target, 0)
    client.post("/v1/register", {"id": spool.id, **asdict(target)}, ANSWER_S)
    while batch := spool.oldest(BATCH_BYTES):
        answer = client.deliver(spool.id, batch, ANSWER_S)
        for name, why in dict(answer.get("refused", {})).items():
            say(f"the controller refused measurement {name}: {why}")
        spool.remove(name for name, _ in batch)
        delivered += len(batch)
    client.close()
    return delivered
