"""Questions to the law learner, answered together: it is made for thousands of series a call, and one leaf has a few.

What a leaf asks for next depends on the laws that it was answered with. So its search is a generator: it yields series
and is sent their laws. All searches go on in rounds, and what they ask for in a round is learnt in one call.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from perflaw.learn.annotations.call_laws import learn_relevant
from perflaw.learn.annotations.options import AnnotationOptions
from perflaw.learn.series import Learnt, Series
from perflaw.parts import untold

Result = TypeVar("Result")
LawSearch = Generator[Sequence[Series], list[Learnt], Result]
"""A search that yields series and is sent a law for each of them, until it returns its result."""


def search_together(
    searches: Sequence[LawSearch[Result]], options: AnnotationOptions, tell: Callable[[float], None] = untold
) -> list[Result]:
    """The results of searches; ``tell`` is told the part of them that has ended."""
    results: dict[int, Result] = {}
    answers: dict[int, list[Learnt] | None] = dict.fromkeys(range(len(searches)))
    while answers:
        asked: dict[int, Sequence[Series]] = {}
        for number, laws in answers.items():
            try:
                # A generator that has not begun is sent None.
                asked[number] = searches[number].send(laws) if laws is not None else next(searches[number])
            except StopIteration as end:
                results[number] = end.value
        tell(len(results) / len(searches))
        learnt, _ = learn_relevant([one for series in asked.values() for one in series], options)
        laws_of_all = iter(learnt)
        answers = {number: [next(laws_of_all) for _ in series] for number, series in asked.items()}
    return [results[number] for number in range(len(searches))]
