"""Configurations that could come next: all of a small space; of a large one a sample, and the neighbours of the best."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from perflaw.types.studies import Configuration

if TYPE_CHECKING:
    from perflaw.explore.space import Space

Array = NDArray[np.float64]

ALL = 2048
"""Largest space that is enumerated."""
DRAWN = 400
"""Configurations drawn from a larger one."""
LEVELS = 8
"""Settings of a range that are tried beside a good one."""
PAIRS = 200
"""Changes of two knobs at once beside the best."""


class Candidates:
    """The space as a policy looks through it."""

    def __init__(self, space: Space, seed: int) -> None:
        self.space, self.seed = space, seed
        size = space.size
        self.whole: dict[str, Configuration] | None = None
        if size is not None and size <= ALL:
            self.whole = {space.key(each): each for each in space.all()}
            self.places = {key: space.unit(each) for key, each in self.whole.items()}

    def untried(
        self, tried: Collection[str], best: Sequence[Configuration], number: int
    ) -> tuple[list[Configuration], Array]:
        """Return candidates whose key is not in ``tried``, and their places in the unit cube, (m, d).

        ``best``: good ones to look around, ``number``: of the proposal.
        """
        if self.whole is not None:
            left = [key for key in self.whole if key not in tried]
            return [self.whole[key] for key in left], np.array([self.places[key] for key in left])
        generator = np.random.default_rng([self.seed, number, 1])
        found: dict[str, Configuration] = {}
        for each in self._some(best, generator):
            key = self.space.key(each)
            if key not in tried and key not in found and not self.space.broken(each):
                found[key] = each
        return list(found.values()), np.array([self.space.unit(each) for each in found.values()])

    def _some(self, best: Sequence[Configuration], generator: np.random.Generator) -> Iterator[Configuration]:
        yield from self._around(best)
        yield from self._pairs(best, generator)
        for _ in range(DRAWN):
            yield self.space.sample(generator)

    def _around(self, best: Sequence[Configuration]) -> Iterator[Configuration]:
        for base in best:
            for knob in self.space.knobs:
                yield from ({**base, knob.name: value} for value in self.space.levels(knob, LEVELS))

    def _pairs(self, best: Sequence[Configuration], generator: np.random.Generator) -> Iterator[Configuration]:
        """Good ones with two knobs drawn anew, and crossed with each other."""
        names = [knob.name for knob in self.space.knobs]
        for _ in range(PAIRS if best else 0):
            base, other = (best[int(i)] for i in generator.integers(len(best), size=2))
            source = other if generator.uniform() < 0.5 else self.space.sample(generator)
            chosen = generator.choice(names, size=min(2, len(names)), replace=False)
            yield {**base, **{str(name): source[str(name)] for name in chosen}}
