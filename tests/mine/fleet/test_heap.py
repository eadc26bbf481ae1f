"""Memory that is free within the process goes back to the machine."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import numpy as np

from perflaw.mine.fleet.heap import give_back

BLOCKS, BLOCK_BYTES = 2000, 16_000


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def test_tuples_that_python_keeps_for_later_go_back():
    """As those of a thousand call paths of all lengths."""
    give_back()
    before = sys.getallocatedblocks()
    many = [tuple(range(300, 300 + length)) for length in range(1, 20) for _ in range(1000)]
    del many
    assert sys.getallocatedblocks() - before > 10_000
    give_back()
    assert sys.getallocatedblocks() - before < 1000


def test_free_memory_among_what_is_kept_goes_back():
    blocks = [np.ones(BLOCK_BYTES, np.uint8) for _ in range(BLOCKS)]
    kept = blocks[::100]
    before = resident()
    del blocks
    give_back()
    assert before - resident() > BLOCKS * BLOCK_BYTES / 2
    assert all(block.all() for block in kept)
