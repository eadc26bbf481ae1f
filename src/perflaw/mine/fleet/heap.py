"""Gives memory that is free within the process back to the machine, which the C library does on its own only at a heap's end.

What a stub and a controller read and learn at one time takes several times as much as what they keep of it, and what they
keep lies among it.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress


def give_back() -> None:
    """Give free pages of all heaps back; nothing on a C library that cannot."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(ctypes.c_size_t(0))
