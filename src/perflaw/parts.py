"""Reading and learning in parts, which may run in other processes or on other machines.

What is learnt together can depend on each other in the last bit, because sums over several series are vectorised. So the
parts have a fixed size, however many workers there are: wherever they are processed, the result is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import ceil
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def untold(done: float) -> None:
    """Nobody asks how far it is."""


def step_of(tell: Callable[[float], None], low: float, high: float) -> Callable[[float], None]:
    """Told the part of a step that is done, it tells that of the whole work, in which the step is from ``low`` to ``high``.

    >>> step_of(print, 0.5, 0.75)(0.5)
    0.625
    """
    return lambda part: tell(low + (high - low) * part)


class Mapper:
    """Where parts are processed: here, one after the other. Others process them elsewhere (`cluster.py`)."""

    def results(
        self, function: Callable[[Sequence[Item]], list[Result]], parts: list[Sequence[Item]]
    ) -> Iterable[list[Result]]:
        """The function's results in the order of the parts; functions, parts and results can be pickled."""
        return map(function, parts)

    def merged(
        self,
        read: Callable[[Sequence[Item]], Result],
        merge: Callable[[Sequence[Result]], Result],
        items: Sequence[Item],
        size: int,
        tell: Callable[[float], None],
    ) -> Result:
        """See :func:`merged_in_parts`."""
        steps, done = sum(merge_steps(len(items), size)), 0

        def told(result: Result) -> Result:
            nonlocal done
            done += 1
            tell(done / steps)
            return result

        results = [told(read(some)) for some in split(items, size)]
        while len(results) > 1:
            results = [told(merge(some)) for some in split(results, size)]
        return results[0]


_mapper: ContextVar[Mapper] = ContextVar("mapper", default=Mapper())  # noqa: B039 (it has no state)


@contextmanager
def mapped_by(mapper: Mapper) -> Iterator[None]:
    """While entered, parts are processed by this mapper."""
    previous = _mapper.set(mapper)
    try:
        yield
    finally:
        _mapper.reset(previous)


def are_here() -> bool:
    """Whether parts are processed in this process, one after the other, so that they can tell how far they are."""
    return type(_mapper.get()) is Mapper


def split(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Parts of ``size`` items; the last may have fewer."""
    return [items[first : first + size] for first in range(0, len(items), size)]


def in_parts(
    function: Callable[[Sequence[Item]], list[Result]],
    items: Sequence[Item],
    size: int,
    tell: Callable[[int], None] = untold,
) -> list[Result]:
    """The results of all items, processed ``size`` at a time; ``tell`` is told how many are done.

    >>> in_parts(sorted, [3, 1, 2, 0], size=2, tell=print)
    2
    4
    [1, 3, 0, 2]
    """
    parts = split(items, size)
    results: list[Result] = []
    for some in _mapper.get().results(function, parts) if len(parts) > 1 else [function(items)]:
        results += some
        tell(len(results))
    return results


def merged_in_parts(
    read: Callable[[Sequence[Item]], Result],
    merge: Callable[[Sequence[Result]], Result],
    items: Sequence[Item],
    size: int,
    tell: Callable[[float], None] = untold,
) -> Result:
    """One result of all items: ``size`` of them at a time are read, and so many of what came of that are merged, to the end.

    What is read stays where it was read, until it is merged there. ``tell`` is told the part that is done. There is an item.

    >>> merged_in_parts(sum, max, [3, 1, 2, 0, 7], size=2)
    7
    """
    return _mapper.get().merged(read, merge, items, size, tell)


def merge_steps(items: int, size: int) -> list[int]:
    """How often is read, then how often is merged at each level.

    >>> merge_steps(100, 8), merge_steps(8, 8)
    ([13, 2, 1], [1])
    """
    steps = [ceil(items / size)]
    while steps[-1] > 1:
        steps.append(ceil(steps[-1] / size))
    return steps
