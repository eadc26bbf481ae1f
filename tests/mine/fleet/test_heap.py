"""Memory that is free within the process goes back to the machine."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np

from perflaw.mine.fleet.heap import give_back

BLOCKS, BLOCK_BYTES = 2000, 16_000


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def test_free_memory_among_what_is_kept_goes_back():
    blocks = [np.ones(BLOCK_BYTES, np.uint8) for _ in range(BLOCKS)]
    kept = blocks[::100]
    before = resident()
    del blocks
    give_back()
    assert before - resident() > BLOCKS * BLOCK_BYTES / 2
    assert all(block.all() for block in kept)
