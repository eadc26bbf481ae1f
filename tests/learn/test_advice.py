"""Advice that a person can follow: doing what the first line of advice says settles the question."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from perflaw.learn.annotations import annotate
from perflaw.report.annotations import annotations_table
from perflaw.report.documents import annotate_document
from perflaw.types import Annotation, RunCost
from tests.check.made import run
from tests.learn.annotation_data import evidence

ADVICE = re.compile(r"add (?:--vary (\w+)=…( over a wider range| in between)?|--repeat)")
"""What a line of advice says to type; where it names two things, the first."""
MAX_RATIO = 1.5
"""Largest ratio of a prediction to the truth, either way, that is right."""


@dataclass(frozen=True)
class Situation:
    """A program, and how it was recorded."""

    cost: Callable[[np.ndarray], np.ndarray]
    """Cost of a run at sizes n."""
    sizes: tuple[float, ...]
    """Values of ``--vary n=``."""
    repeat: int = 1
    """Runs of each size."""
    noise: float = 0.03
    """Standard deviation of the logarithm of a run's cost."""

    def followed(self, advice: str) -> Situation:
        """Recorded as the advice says."""
        found = ADVICE.search(advice)
        assert found, advice
        low, high = min(self.sizes), max(self.sizes)
        if not found[1]:
            return replace(self, repeat=max(3, 3 * self.repeat))
        assert found[1] == "n", advice
        if found[2] == " over a wider range":
            more = np.geomspace(low, 10 * high, 2 * len(self.sizes))
        elif found[2]:
            more = np.geomspace(low, high, 3 * len(self.sizes))
        else:
            more = np.geomspace(low, max(high, 30 * low), 8)
        return replace(self, sizes=tuple(sorted({*self.sizes, *np.round(more).tolist()})))


SITUATIONS = {
    "one run": Situation(lambda n: 100 * n, (100,)),
    "three sizes": Situation(lambda n: 5 * n**2, (100, 300, 1000)),
    "two sizes": Situation(lambda n: 100 * n, (100, 1000), repeat=5),
    "four sizes": Situation(lambda n: 100 * n * np.log(n), (100, 300, 1000, 3000)),
    "a narrow range": Situation(lambda n: 5e4 + n**2, (100, 110, 120, 130, 140, 150), repeat=2, noise=0.1),
    "noise": Situation(lambda n: 10 * n**1.5, (100, 150, 200, 250, 300), repeat=2, noise=0.3),
    "a large start": Situation(lambda n: 1e5 + 100 * n, (100, 150, 200, 250, 300), repeat=2, noise=0.2),
    "a quadratic part that begins late": Situation(
        lambda n: 1e4 * n + 0.5 * n**2, (100, 200, 300, 400), repeat=2, noise=0.35
    ),
    "a constant": Situation(lambda n: 5e5 + 0 * n, (100, 130, 170, 200, 240), repeat=2, noise=0.3),
    "a threshold": Situation(lambda n: np.where(n < 400, 50 * n, 900 * n), (100, 300, 500, 800, 1000), noise=0.1),
}


def learnt(situation: Situation, seed: int) -> Annotation:
    """What is learnt of the recording of a situation."""
    rng = np.random.default_rng(seed)
    sizes = np.repeat(situation.sizes, situation.repeat)
    costs = np.round(1e3 * situation.cost(sizes) * np.exp(situation.noise * rng.normal(size=sizes.size)))
    runs = [replace(run(i + 1, {"n": n}), configuration={"n": f"{n:g}"}) for i, n in enumerate(sizes.tolist())]
    made = evidence(costs, {"self.depth": np.full(sizes.size, 3.0)}, run=[one.id for one in runs])
    each = (RunCost(one, 1, int(cost), 0, int(cost)) for one, cost in zip(runs, costs.tolist(), strict=True))
    [annotation] = annotate([replace(made, runs=tuple(each))])
    return annotation


def advice_in(annotation: Annotation) -> str:
    """The first advice that the table prints of a question that is open; empty if there is none."""
    if all(scope.law.verdict != "inconclusive" for scope in annotation.scopes):
        return ""
    table = " ".join(annotations_table(annotate_document([annotation], [], None), False).split())
    found = ADVICE.search(table)
    return found[0] if found else "none"


def is_settled(situation: Situation, seed: int) -> bool:
    """Whether nothing is advised any more, and twice beyond the data the law is right."""
    annotation = learnt(situation, seed)
    law = annotation.scopes[0].law
    there = law.predictions[0]
    truth = 1e3 * float(situation.cost(np.array(there.features["n"])))
    return not advice_in(annotation) and 1 / MAX_RATIO <= there.mean / truth <= MAX_RATIO


@pytest.mark.slow
def test_following_the_first_advice_settles_eight_of_ten_questions() -> None:
    asked, settled = {}, []
    for name, situation in SITUATIONS.items():
        for seed in range(5):
            advice = advice_in(learnt(situation, seed))
            if advice:
                asked[name] = advice
                settled.append((name, is_settled(situation.followed(advice), 100 + seed)))
    assert len(asked) == len(SITUATIONS) == 10, asked
    failures = [name for name, was in settled if not was]
    assert len(failures) <= 0.2 * len(settled), failures
