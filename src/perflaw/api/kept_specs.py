"""Specifications that were mined, kept for whoever mines the same functions of an experiment again.

Each is kept under a digest of all that was observed of its function, so a recording that is added or changed only has the
functions in it mined anew. They are in one file of the cache for each experiment (see ``kept.py``).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from perflaw.api import kept

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perflaw.learn.paths.selection import Pool
    from perflaw.learn.paths.stable import Span
    from perflaw.types import Observed, PathSpec


@dataclass(frozen=True, slots=True)
class KeptSpec:
    """What mining a function took most of its time for."""

    pool: Pool[str] | None
    """The recorded callers that compare, as ``of_pool`` takes them."""
    spec: PathSpec
    """The specification; its share and utility are those of another time."""
    span: Span | None
    """What ``utility_after`` takes."""


class KeptSpecs:
    """What is kept of the functions of an experiment, and what is mined of the others now."""

    def __init__(self, settings: Sequence[object], observed: Sequence[Observed]) -> None:
        """``settings``: the experiment, and everything else but what was ``observed`` that specifications depend on."""
        self._file = kept.Kept((), ("specifications", *settings))
        self._digests = {one.component: _digest(one) for one in observed}
        known: Mapping[bytes, KeptSpec] = self._file.read() or {}
        self._specs = {name: known[digest] for name, digest in self._digests.items() if digest in known}
        self._pools: dict[str, Pool[str] | None] = {}
        self._seconds = 0.0

    def __contains__(self, component: str) -> bool:
        return component in self._specs

    def __getitem__(self, component: str) -> KeptSpec:
        return self._specs[component]

    @contextmanager
    def mining(self) -> Iterator[None]:
        """While entered, functions are mined that are not known: what this takes decides whether it is worth keeping."""
        begun = time.monotonic()
        yield
        self._seconds += time.monotonic() - begun

    def add_pool(self, component: str, pool: Pool[str] | None) -> None:
        """The pool of a function that is not known."""
        self._pools[component] = pool

    def add(self, spec: PathSpec, span: Span | None) -> None:
        """The specification of a function that is not known; its pool was added before."""
        self._specs[spec.component] = KeptSpec(self._pools[spec.component], spec, span)

    def keep(self) -> None:
        """Keep the specifications for the next time, if mining them took long."""
        if self._seconds >= kept.MIN_LEARNING_S:
            self._file.keep({self._digests[name]: spec for name, spec in self._specs.items()})


def _digest(observed: Observed) -> bytes:
    """Digest of everything that was observed of a function but its share, which no specification depends on."""
    digest = blake2b(digest_size=16)

    def add(value: Any) -> None:
        if isinstance(value, np.ndarray):
            digest.update(f"{value.dtype.str}{value.shape}".encode() + value.tobytes())
        elif isinstance(value, Mapping):
            digest.update(f"{{{len(value)}".encode())
            for key, item in value.items():
                add(key)
                add(item)
        elif is_dataclass(value):
            digest.update(type(value).__name__.encode())
            for field in fields(value):
                if field.name != "share":
                    add(getattr(value, field.name))
        elif isinstance(value, tuple) and value and is_dataclass(value[0]):
            digest.update(f"({len(value)}".encode())
            for item in value:
                add(item)
        else:
            digest.update(f"{value!r};".encode())

    add(observed)
    return digest.digest()
