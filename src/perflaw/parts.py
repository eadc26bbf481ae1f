"""Reading and learning in parts, which may run in other processes or on other machines.

What is learnt together can depend on each other in the last bit, because sums over several series are vectorised. So the
parts have a fixed size, however many workers there are: wherever they are processed, the result is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Mapper(Protocol):
    """Applies a function to parts, anywhere, and gives the results in the order of the parts."""

    def __call__(
        self, function: Callable[[Sequence[Item]], list[Result]], parts: list[Sequence[Item]]
    ) -> Iterable[list[Result]]:
        """The function and the parts can be pickled."""


def _here(function: Callable[[Sequence[Item]], list[Result]], parts: list[Sequence[Item]]) -> Iterable[list[Result]]:
    return map(function, parts)


def untold(done: float) -> None:
    """Nobody asks how far it is."""


_mapper: ContextVar[Mapper] = ContextVar("mapper", default=_here)


@contextmanager
def mapped_by(mapper: Mapper) -> Iterator[None]:
    """While entered, parts are processed by this mapper."""
    previous = _mapper.set(mapper)
    try:
        yield
    finally:
        _mapper.reset(previous)


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
    parts = [items[first : first + size] for first in range(0, len(items), size)]
    results: list[Result] = []
    for some in _mapper.get()(function, parts) if len(parts) > 1 else [function(items)]:
        results += some
        tell(len(results))
    return results
