"""When a law may be called one, and in words why not."""

from __future__ import annotations

from dataclasses import dataclass

from perflaw.types import Verdict

FEWEST_UNITS = 5
"""Fewest runs (or rows of the only run) that can reject "no dependence": 1/120 is the smallest p of 5."""

FEWEST_SIZES = 3
"""Fewest distinct sizes a shape can be told from."""

RELEVANT_GROWTH = 0.5
"""A constant whose exponent may be as large as that is no finding."""

OPEN_SHAPE = 0.75
"""Local exponents of the laws not told apart may differ by so much."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the verdict rests on."""

    established: bool
    """The null control rejected "no dependence"."""
    constant: bool
    """The chosen law is the constant."""
    varies: bool
    """The response varies at all."""
    units: int
    """Runs, or rows of the only run."""
    runs: int
    """Distinct runs."""
    sizes: int
    """Distinct values of the feature (the most of any feature, for a constant)."""
    slopes: tuple[float, float]
    """Local exponents the data allow, lowest and highest."""
    feature: str
    """Feature to vary, for the advice."""


def judge(evidence: Evidence) -> tuple[Verdict, str]:
    """Verdict and its reason; the reason of a law is empty but for "one run"."""
    vary = f"--vary {evidence.feature or 'n'}=…"
    if evidence.sizes < 2:
        what = "no feature varies" if evidence.feature else "there is no feature"
        return ("none", f"{what}: add {vary}") if evidence.units > 1 else ("inconclusive", f"one point: add {vary}")
    if not evidence.varies and evidence.units >= FEWEST_UNITS:
        return "none", "the response does not vary"
    if evidence.sizes < FEWEST_SIZES:
        return "inconclusive", f"too few sizes ({evidence.sizes}): add {vary}"
    if evidence.units < FEWEST_UNITS:
        what = "sizes" if evidence.sizes >= evidence.units else "runs"
        advice = f"add {vary}" if what == "sizes" else "add --repeat"
        return "inconclusive", f"too few {what} ({evidence.units}): {advice}"
    if not evidence.established:
        return _not_established(evidence, vary)
    low, high = evidence.slopes
    if high - low > OPEN_SHAPE:
        return (
            "inconclusive",
            f"the shape is open, it grows as n^{low:.1f} to n^{high:.1f}: add {vary} over a wider range",
        )
    return "law", "one run: add --repeat" if evidence.runs == 1 and evidence.units > 1 else ""


def _not_established(evidence: Evidence, vary: str) -> tuple[Verdict, str]:
    """A constant is a finding only where the data would have shown a growth."""
    low, high = evidence.slopes
    if evidence.varies and max(high, -low) >= RELEVANT_GROWTH:
        return (
            "inconclusive",
            f"no dependence found, but n^{max(high, -low):.1f} fits too: add {vary} over a wider range or --repeat",
        )
    return "none", "no dependence on the features found"
