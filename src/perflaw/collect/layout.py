"""The record that a tracer appends for each event, and the numbers that builders share.

A test compares the record with the tracer's own packing; the C core (``native/record.h``, ``layout.h``) has the same.
"""

from __future__ import annotations

from typing import Final

import numpy as np

ENTER, EXIT, YIELD, RESUME, FEATURE, DEAD, CHANGE, SWITCH, THREAD, END, TURN = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
ASIDE = 12
"""Kinds of records.

DEAD: every invocation above this frame's has died without an event; frame 0: all of the stack's. CHANGE: the thread's
counter of metric ``code`` rose by ``value`` since the last record. SWITCH: what follows belongs to the thread's stack of
serial number ``frame``, 0 being its first. THREAD: thread ``value`` writes from here on. END: the thread has ended. TURN:
what follows happened in turn ``frame`` of all threads, one thread at a time; ``value`` ns were taken out of the thread's
clock so far. ASIDE: as ENTER, of work that the interpreter does aside: no call, so it is no event and has no sample.
"""

RECORD: Final = np.dtype(
    [("value", "<i8"), ("frame", "<i8"), ("code", "<i4"), ("site", "<i4"), ("key", "<i4"), ("kind", "<i4")]
)
"""32 bytes: value, frame, code, site, key, kind; ``kind`` is written last and 0 where nothing is written yet."""

TIME_LANE, CPU_LANE, EVENTS_LANE = 0, 1, 2
"""Lanes are numbers of metrics.

A CHANGE of the second one says how long the thread was off the CPU; the third is counted by the builder.
"""

ROOT = 0
ELSEWHERE = -2
"""Call site of the nodes that take the calls from contexts beyond the limit of them."""
MAX_DISTANCE = 16
"""Ancestor–descendant moments are kept for the nearest ancestors up to this distance."""
MAX_KIDS_APART = 64
"""Parts of one invocation's cost kept apart in the pair moments; the least beyond fold into OTHER."""
MAX_CODE = 1 << 20
"""Numbers of functions are below."""
