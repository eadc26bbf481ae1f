"""The record that a tracer appends for each event; a test compares it with the tracer's own packing."""

from __future__ import annotations

from typing import Final

import numpy as np

ENTER, EXIT, YIELD, RESUME, FEATURE, DEAD = 1, 2, 3, 4, 5, 6
"""Kinds of records. DEAD: every invocation above this frame's has died without an event."""

RECORD: Final = np.dtype(
    [("value", "<i8"), ("frame", "<i8"), ("code", "<i4"), ("site", "<i4"), ("key", "<i4"), ("kind", "<i4")]
)
"""32 bytes: value, frame, code, site, key, kind; ``kind`` is written last and 0 where nothing is written yet."""
