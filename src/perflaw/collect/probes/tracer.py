"""The tracer: takes batches, hands columns downstream, counts what each probe gave (SPEX, §3.1).

Downstream components are whatever takes :class:`Decoded`: the store, call trees, a live view, a callback of the explorer.
One that fails is left out from then on, with its reason; the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from perflaw.collect.probes import layout
from perflaw.collect.probes.batches import Batch, Source
from perflaw.collect.probes.decoding import Decoded, decode
from perflaw.collect.probes.rings import Tally

Downstream = Callable[[Decoded], Any]
"""Takes the records of one ring, in order; must not keep more than it bounds."""


class Tracer:
    """Batches in, columns out."""

    def __init__(self, downstream: Sequence[Downstream] = ()) -> None:
        self.downstream = list(downstream)
        self.sources: Mapping[int, Source] = {}
        """Every process met so far, as last told."""
        self.received: dict[int, Any] = {}
        """Process → (1024,) records of each probe."""
        self.failures: list[str] = []
        """Why components downstream were left out."""

    def take(self, batch: Batch) -> None:
        """Process one batch."""
        self.sources = {**self.sources, **batch.sources}
        for piece in batch.pieces:
            records = decode(piece, batch.sources[piece.source])
            counts = self.received.setdefault(piece.source, np.zeros(layout.PROBES, np.int64))
            counts += np.bincount(records.probe % layout.PROBES, minlength=layout.PROBES)
            for component in list(self.downstream):
                self._hand(component, records)

    def _hand(self, component: Downstream, records: Decoded) -> None:
        try:
            component(records)
        except (OSError, MemoryError, ValueError, ArithmeticError) as error:
            self.downstream.remove(component)
            self.failures.append(f"{getattr(component, '__qualname__', component)}: {error}")

    @property
    def tally(self) -> Tally:
        """The account over all processes."""
        return sum((source.tally for source in self.sources.values()), Tally())

    def conflicts(self) -> list[str]:
        """Probes whose id is used twice, in words."""
        found = {
            (probe.id, probe.name) for source in self.sources.values() for probe in source.probes if probe.conflict
        }
        return [f"probe id {number} is used twice: by {name} and another" for number, name in sorted(found)]
