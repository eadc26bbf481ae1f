"""Probes for Python programs: the names of ``perflaw.h`` (SPEX, Table 1), written into the same kind of area.

    from perflaw.probes import LAT_PROBE, PERFLAW_PROBE

    PERFLAW_PROBE(7, "query")
    with LAT_PROBE(7):
        answer = query(text)

or ``LAT_PROBE_BEGIN(7, 1)`` … ``LAT_PROBE_END(7)`` in one thread. ``with`` also suits coroutines, and makes a record where
the code ends by an exception. All probes are disabled until they are enabled from outside. Times are in ns.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic_ns

from perflaw.probes.kinds import (
    CNT_PROBE,
    CTXSW_PROBE,
    FLT_PROBE,
    LAT_PROBE,
    LLC_PROBE,
    PERFCNTR_PROBE,
    TPT_PROBE,
    Probe,
    in_turn,
)
from perflaw.probes.writer import SNAPSHOT, this_process

__all__ = [
    *("CNT_PROBE", "CNT_PROBE_BEGIN", "CNT_PROBE_END", "CTXSW_PROBE", "CTXSW_PROBE_BEGIN", "CTXSW_PROBE_END"),
    *("FLT_PROBE", "FLT_PROBE_BEGIN", "FLT_PROBE_END", "LAT_PROBE", "LAT_PROBE_BEGIN", "LAT_PROBE_END"),
    *("LLC_PROBE", "LLC_PROBE_BEGIN", "LLC_PROBE_END", "PERFCNTR_PROBE", "PERFCNTR_PROBE_BEGIN", "PERFCNTR_PROBE_END"),
    *("TPT_PROBE", "TPT_PROBE_BEGIN", "TPT_PROBE_END", "SNAPSHOT_PROBE"),
    *("PERFLAW_FIELDS", "PERFLAW_PROBE", "SET_PERFCNTR"),
]

_DEPTH = 64
"""Open executions of one probe in a thread; older ones were left by exceptions and are dropped."""
_writer = this_process()


def PERFLAW_PROBE(probe: int, name: str, unit: str = "") -> None:
    """Name a probe, and the unit of its values; ValueError if the id is not from 0 to 1023."""
    _writer.register(probe, 0, name, unit)


def PERFLAW_FIELDS(probe: int, names: str) -> None:
    """Name the values of a SNAPSHOT probe, separated by commas."""
    _writer.register(probe, 0, "", "", names)


def SET_PERFCNTR(pcid: int, event: int, mask: int) -> None:
    """Set the event of counter ``pcid``, by the processor's numbers; ValueError if pcid is not from 0 to 7."""
    if not 0 <= pcid < 8:
        raise ValueError(f"numbers of counters are 0 to 7, not {pcid}")
    _writer.counters[pcid] = event | mask << 8


def SNAPSHOT_PROBE(probe: int, sc: int = 1, *values: int) -> None:
    """Record up to 6 whole numbers of 64 bits; ValueError if there are more."""
    if len(values) > 6:
        raise ValueError(f"a SNAPSHOT_PROBE has at most 6 values, not {len(values)}")
    every = _writer.every(probe, SNAPSHOT, sc)
    if every and in_turn(probe, every):
        fields = tuple(int(value) & 0xFFFFFFFFFFFFFFFF for value in values)
        _writer.write(probe, SNAPSHOT, monotonic_ns(), fields)


def _begin(made: type[Probe]) -> Callable[..., None]:
    """The BEGIN function of a type of probe."""

    def begin(probe: int, sc: int = 1, pcid: int = 0) -> None:
        """Begin an execution of the enclosed code."""
        one = made(probe, sc, pcid)
        waiting = _writer.here.state.open.setdefault((made.kind, probe), [])
        if one.begin() or waiting:  # the end of an inner execution that is not measured must not end an outer one
            waiting.append(one)
            del waiting[:-_DEPTH]

    return begin


def _end(made: type[Probe]) -> Callable[[int], None]:
    """The END function of a type of probe."""

    def end(probe: int) -> None:
        """End the execution that this thread began last, if it is measured."""
        waiting = _writer.here.state.open.get((made.kind, probe))
        if waiting:
            waiting.pop().__exit__(None, None, None)

    return end


CNT_PROBE_BEGIN, CNT_PROBE_END = _begin(CNT_PROBE), _end(CNT_PROBE)
LAT_PROBE_BEGIN, LAT_PROBE_END = _begin(LAT_PROBE), _end(LAT_PROBE)
TPT_PROBE_BEGIN, TPT_PROBE_END = _begin(TPT_PROBE), _end(TPT_PROBE)
LLC_PROBE_BEGIN, LLC_PROBE_END = _begin(LLC_PROBE), _end(LLC_PROBE)
FLT_PROBE_BEGIN, FLT_PROBE_END = _begin(FLT_PROBE), _end(FLT_PROBE)
CTXSW_PROBE_BEGIN, CTXSW_PROBE_END = _begin(CTXSW_PROBE), _end(CTXSW_PROBE)
PERFCNTR_PROBE_BEGIN, PERFCNTR_PROBE_END = _begin(PERFCNTR_PROBE), _end(PERFCNTR_PROBE)
