"""The stratified reservoir: a uniform sample of a function's invocations, and some of every order of magnitude.

Both are bottom-k samples: every invocation has a random priority, and those with the smallest are kept. So samples of
several runs merge in any order to the same result. A stratum is a power of two of the duration.
"""

from __future__ import annotations

from collections.abc import Collection

from perflaw.record.tree.call_tree import SampledCall
from perflaw.record.tree.records import CPU_LANE, TIME_LANE
from perflaw.record.tree.stacks import Invocation
from perflaw.store.schema import sample_sizes


class BottomSample:
    """Keeps the ``size`` samples of smallest priority, at amortised constant cost for each added one."""

    __slots__ = ("bound", "kept", "size")

    def __init__(self, size: int) -> None:
        self.size, self.bound = size, 1 << 62
        self.kept: list[tuple[int, int, SampledCall]] = []

    def add(self, key: int, sample: SampledCall) -> None:
        """Keep a sample, whose priority is below ``bound``, for now."""
        self.kept.append((key, sample.sequence, sample))
        if len(self.kept) >= 2 * self.size:
            self.trim()

    def trim(self) -> list[SampledCall]:
        """Keep only the ``size`` samples of smallest priority, and return them."""
        self.kept.sort(key=lambda entry: entry[:2])
        del self.kept[self.size :]
        if len(self.kept) == self.size:
            self.bound = self.kept[-1][0]
        return [sample for _, _, sample in self.kept]


class Reservoir:
    """The samples of one function in one run."""

    __slots__ = ("per_stratum", "seed", "strata", "uniform")

    def __init__(self, seed: int, sizes: tuple[int, int]) -> None:
        self.seed, self.per_stratum = seed, sizes[1]
        self.uniform = BottomSample(sizes[0])
        self.strata: dict[int, BottomSample] = {}

    def shrink(self, sizes: tuple[int, int]) -> None:
        """Keep fewer samples from now on. A bottom-k sample stays exact whenever it is cut."""
        self.uniform.size, self.per_stratum = sizes
        for bottom in self.strata.values():
            bottom.size = self.per_stratum
        for bottom in (self.uniform, *self.strata.values()):
            bottom.trim()

    def offer(self, sequence: int, invocation: Invocation) -> None:
        """Consider a completed invocation. Its uniform priority was drawn at entry, when its features were read."""
        stratum = invocation.costs[TIME_LANE].bit_length()
        bottom = self.strata.get(stratum)
        if bottom is None:
            bottom = self.strata[stratum] = BottomSample(self.per_stratum)
        stratum_key = scramble(sequence ^ self.seed)
        uniform = 0 <= invocation.key < self.uniform.bound
        if not uniform and stratum_key >= bottom.bound:
            return
        callees = (
            (node, work[0], work[1 + TIME_LANE], work[1 + CPU_LANE]) for node, work in invocation.callees.items()
        )
        sample = SampledCall(
            sequence,
            invocation.node,
            invocation.started,
            invocation.key,
            stratum_key,
            invocation.waited - invocation.consumed,
            invocation.resumes,
            tuple(invocation.costs),
            tuple(callees),
            tuple(invocation.features),
            tuple((node, work[0], work[1], work[2]) for node, work in invocation.parts.items()) if uniform else (),
        )
        if uniform:
            self.uniform.add(invocation.key, sample)
        if stratum_key < bottom.bound:
            bottom.add(stratum_key, sample)

    def finish(self) -> list[SampledCall]:
        """Every kept sample once, in order of completion; only those of the uniform sample have a uniform key."""
        uniform = {sample.sequence: sample for sample in self.uniform.trim()}
        kept = {sample.sequence: sample for bottom in self.strata.values() for sample in bottom.trim()}
        for sequence in kept.keys() - uniform.keys():
            kept[sequence].uniform_key, kept[sequence].parts = -1, ()
        kept.update(uniform)
        return [kept[sequence] for sequence in sorted(kept)]


class Reservoirs:
    """The samples of all functions: fewer of each if there are more than ``many`` functions."""

    def __init__(self, seed: int, many: int, observed: Collection[int] = ()) -> None:
        """``observed``: functions of which each outermost invocation is an observation."""
        self.seed, self.many, self.observed = seed, many, observed
        self.sizes = sample_sizes(0, many)
        self.of: dict[int, Reservoir] = {}
        """Function → its samples."""

    def offer(self, code: int, sequence: int, invocation: Invocation) -> None:
        """Consider a completed invocation of function ``code``. The uniform sample of observations stays as large as it is."""
        reservoir = self.of.get(code)
        if reservoir is None:
            sizes = sample_sizes(len(self.of) + 1, self.many)
            if sizes != self.sizes:
                self.sizes = sizes
                for number, each in self.of.items():
                    each.shrink((each.uniform.size if number in self.observed else sizes[0], sizes[1]))
            if code in self.observed:
                sizes = sample_sizes(0, self.many)[0], sizes[1]
            reservoir = self.of[code] = Reservoir(self.seed, sizes)
        reservoir.offer(sequence, invocation)


def scramble(number: int) -> int:
    """A well-mixed 62-bit priority of a sequence number (SplitMix64's finaliser; Steele et al., OOPSLA'14)."""
    mixed = (number * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return (mixed ^ (mixed >> 31)) >> 2
