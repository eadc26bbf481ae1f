"""Gives memory that is free within the process back to the machine.

Python keeps up to 2,000 tuples of each length that are free, until it collects all garbage, and the C library gives back
what is free at a heap's end alone.

What a stub and a controller read and learn at one time takes several times as much as what they keep of it, and what they
keep lies among it.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress


def give_back() -> None:
    """Empty Python's lists of free objects, and give free pages of all heaps back where the C library can."""
    gc.collect()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(ctypes.c_size_t(0))
