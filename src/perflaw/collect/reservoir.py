"""The stratified reservoir: a uniform sample of a function's invocations, and some of every order of magnitude.

Both are bottom-k samples: every invocation has a random priority and the smallest are kept. So samples of several runs
merge in any order to the same result. A stratum is a power of two of the duration.
"""

from __future__ import annotations

from perflaw.collect.invocation import Invocation
from perflaw.store.schema import PER_STRATUM, UNIFORM


class Sample:
    """One kept invocation."""

    __slots__ = ("callees", "features", "node", "sequence", "started", "stratum_key", "uniform_key", "x")

    def __init__(self, sequence: int, invocation: Invocation, stratum_key: int) -> None:
        self.sequence, self.node, self.started, self.x = sequence, invocation.node, invocation.started, invocation.x
        self.uniform_key, self.stratum_key = invocation.key, stratum_key
        self.features = tuple(invocation.features)
        self.callees = tuple((node, calls, cost) for node, (cost, calls) in invocation.kids.items())


class Bottom:
    """Keeps the ``size`` samples of smallest priority; amortised constant cost an offer."""

    __slots__ = ("bound", "kept", "size")

    def __init__(self, size: int) -> None:
        self.size, self.bound = size, 1 << 62
        self.kept: list[tuple[int, int, Sample]] = []

    def add(self, key: int, sample: Sample) -> None:
        """Keep a sample whose priority is below ``bound``, for now."""
        self.kept.append((key, sample.sequence, sample))
        if len(self.kept) >= 2 * self.size:
            self.trim()

    def trim(self) -> list[Sample]:
        """The ``size`` samples of smallest priority, and nothing else, from now on."""
        self.kept.sort(key=lambda entry: entry[:2])
        del self.kept[self.size :]
        if len(self.kept) == self.size:
            self.bound = self.kept[-1][0]
        return [sample for _, _, sample in self.kept]


class Reservoir:
    """The samples of one function in one run."""

    __slots__ = ("counts", "seed", "strata", "uniform")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.uniform = Bottom(UNIFORM)
        self.strata: dict[int, Bottom] = {}
        self.counts: dict[int, int] = {}
        """Stratum → completed invocations in it."""

    def offer(self, sequence: int, invocation: Invocation) -> None:
        """Consider a completed invocation. Its uniform priority was drawn at entry, where its features were read."""
        stratum = invocation.x.bit_length()
        bottom = self.strata.get(stratum)
        if bottom is None:
            bottom = self.strata[stratum] = Bottom(PER_STRATUM)
            self.counts[stratum] = 0
        self.counts[stratum] += 1
        stratum_key = scramble(sequence ^ self.seed)
        uniform = 0 <= invocation.key < self.uniform.bound
        if uniform or stratum_key < bottom.bound:
            sample = Sample(sequence, invocation, stratum_key)
            if uniform:
                self.uniform.add(invocation.key, sample)
            if stratum_key < bottom.bound:
                bottom.add(stratum_key, sample)

    def samples(self) -> list[tuple[Sample, bool]]:
        """Every kept sample once, in order of completion, and whether it belongs to the uniform part."""
        uniform = {sample.sequence: sample for sample in self.uniform.trim()}
        kept = dict(uniform)
        for bottom in self.strata.values():
            kept.update({sample.sequence: sample for sample in bottom.trim()})
        return [(kept[sequence], sequence in uniform) for sequence in sorted(kept)]


def scramble(number: int) -> int:
    """A well-mixed 62-bit priority of a sequence number (SplitMix64's finaliser; Steele et al., OOPSLA'14)."""
    mixed = (number * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return (mixed ^ (mixed >> 31)) >> 2
