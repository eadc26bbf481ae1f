"""Call trees of events, by the C core where it can be had, else by its readable twin."""

from __future__ import annotations

import mmap
import tempfile
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from perflaw.collect.build import BuildError, build, core
from perflaw.collect.core_library import Core
from perflaw.collect.core_tables import CoreTree
from perflaw.collect.layout import RECORD, THREAD
from perflaw.collect.tree_builder import ALWAYS, TreeBuilder
from perflaw.collect.tree_objects import columns

CAPACITY: Final = 1 << 13
"""Events of a ring of ours: 256 kB."""
_START: Final = 4096
_HEAD: Final = np.dtype(
    {"names": ["magic", "version", "capacity", "written"], "formats": ["<u8", "<u4", "<u4", "<u8"], "offsets": [0, 8, 12, 64]}
)  # fmt: skip
"""The head of a ring as native/ring.h has it."""
_MAGIC: Final = int.from_bytes(b"PRFRING1"[::-1], "big")


class Builder(Protocol):
    """Takes events of several threads, each in order; gives their call tree."""

    def feed(self, ring: int, events: NDArray[Any]) -> None:
        """The next events (n,) of a thread."""

    def finish(self) -> CoreTree:
        """The tree; nothing can be fed from now on."""


class CoreBuilder:
    """The C core reads rings that we write: each has its file in a folder of its own, removed in the end."""

    def __init__(self, library: Path, seed: int) -> None:
        self._core = Core(library, seed, ALWAYS)
        self._folder = tempfile.TemporaryDirectory(prefix="perflaw-")
        self._rings: dict[int, tuple[NDArray[Any], NDArray[Any]]] = {}

    def feed(self, ring: int, events: NDArray[Any]) -> None:
        """See :class:`Builder`."""
        head, records = self._rings.get(ring) or self._new(ring)
        for at in range(0, len(events), CAPACITY):
            some = events[at : at + CAPACITY]
            position = int(head["written"][0])
            records[(position + np.arange(len(some))) & (CAPACITY - 1)] = some
            head["written"][0] = position + len(some)
            while self._core.step():
                pass

    def finish(self) -> CoreTree:
        """See :class:`Builder`."""
        tree = self._core.finish()
        self._rings.clear()
        self._folder.cleanup()
        return tree

    def _new(self, ring: int) -> tuple[NDArray[Any], NDArray[Any]]:
        path = Path(self._folder.name, f"{ring}.ring")
        with path.open("w+b") as file:
            file.write(bytes(_START + CAPACITY * RECORD.itemsize))
            file.flush()
            shared = mmap.mmap(file.fileno(), 0)
        head = np.frombuffer(shared, _HEAD, 1)
        head["magic"], head["version"], head["capacity"] = _MAGIC, 1, CAPACITY
        self._core.attach(path)
        made = self._rings[ring] = head, np.frombuffer(shared, RECORD, CAPACITY, _START)
        begun = np.zeros(1, RECORD)
        begun["kind"], begun["value"] = THREAD, ring
        self.feed(ring, begun)
        return made


class TwinBuilder:
    """The readable builder: some microseconds an event."""

    def __init__(self, seed: int) -> None:
        self._builder = TreeBuilder(seed)

    def feed(self, ring: int, events: NDArray[Any]) -> None:
        """See :class:`Builder`."""
        names = ("value", "frame", "code", "site", "key", "kind")
        self._builder.feed(ring, zip(*(events[name].tolist() for name in names), strict=True))

    def finish(self) -> CoreTree:
        """See :class:`Builder`."""
        return columns(self._builder.finish())


def builder(seed: int) -> Builder:
    """The best that can be had here."""
    try:
        return CoreBuilder(build(core()), seed)
    except (BuildError, OSError, MemoryError):
        return TwinBuilder(seed)
