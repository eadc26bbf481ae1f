"""Records of a process to its call tree: by the C core, by its Python twin where that cannot be built."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

import numpy as np

from perflaw.collect.build import BuildError, Tell, build, core
from perflaw.collect.core_library import Core
from perflaw.collect.core_tables import CoreTree
from perflaw.collect.imports.events import ProcessEvents
from perflaw.collect.imports.ring import RingWriter
from perflaw.collect.layout import ENTER, RECORD, THREAD
from perflaw.collect.reservoir import scramble
from perflaw.collect.tree_builder import Event, TreeBuilder
from perflaw.collect.tree_objects import columns
from perflaw.store.columns import Array

CAPACITY: Final = 1 << 14
"""Records that a ring holds."""
_KEYS: Final = (1 << 31) - 1


def core_file(tell: Tell) -> Path | None:
    """The library of the core, built now if it was not; None where it cannot be."""
    try:
        return build(core(), tell)
    except BuildError:
        return None


def tree_of(process: ProcessEvents, library: Path | None, seed: int) -> CoreTree:
    """The call tree of all tracks; each is a thread of its own. ``seed`` says which calls are sampled."""
    lanes, tracks = process.definitions.lanes(), process.ordered()
    if library is None:
        builder = TreeBuilder(seed, lanes)
        for number, track in enumerate(tracks, 1):
            builder.feed(number, _rows(track, seed).tolist())
        return columns(builder.finish())
    reader = Core(library, seed, lanes)
    with tempfile.TemporaryDirectory(prefix="perflaw-") as folder:
        ring = RingWriter(Path(folder) / "import.ring", CAPACITY)
        reader.attach(ring.path)
        for number, track in enumerate(tracks, 1):
            _feed(reader, ring, _rows([(number, 0, 0, -1, -1, THREAD)], 0))
            _feed(reader, ring, _rows(track, seed))
        reader.leave()
        return reader.finish()


def _rows(track: list[Event], seed: int) -> Array:
    """The records, the priorities of their calls mixed with the seed: runs draw their samples independently."""
    rows = np.array(track, RECORD)
    entered = rows["kind"] == ENTER
    rows["key"][entered] ^= scramble(seed) & _KEYS
    return rows


def _feed(reader: Core, ring: RingWriter, rows: Array) -> None:
    for start in range(0, len(rows), CAPACITY):
        ring.append(rows[start : start + CAPACITY])
        while reader.step():
            pass
