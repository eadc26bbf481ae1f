"""Reading and learning in parts, which may run in other processes or on other machines.

What is learnt together can depend on each other in the last bit, because sums over several series are vectorised. So the
parts have a fixed size, however many workers there are: wherever they are processed, the result is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Mapper(Protocol):
    """Applies a function to parts, anywhere, and returns the results in the order of the parts."""

    def __call__(
        self, function: Callable[[Sequence[Item]], list[Result]], parts: list[Sequence[Item]]
    ) -> list[list[Result]]:
        """The function and the parts can be pickled."""


def _here(function: Callable[[Sequence[Item]], list[Result]], parts: list[Sequence[Item]]) -> list[list[Result]]:
    return [function(part) for part in parts]


_mapper: ContextVar[Mapper] = ContextVar("mapper", default=_here)


@contextmanager
def mapped_by(mapper: Mapper) -> Iterator[None]:
    """While entered, parts are processed by this mapper."""
    previous = _mapper.set(mapper)
    try:
        yield
    finally:
        _mapper.reset(previous)


def in_parts(function: Callable[[Sequence[Item]], list[Result]], items: Sequence[Item], size: int) -> list[Result]:
    """The results of all items, processed ``size`` at a time.

    >>> in_parts(sorted, [3, 1, 2, 0], size=2)
    [1, 3, 0, 2]
    """
    if len(items) <= size:
        return function(items)
    parts = [items[first : first + size] for first in range(0, len(items), size)]
    return [result for results in _mapper.get()(function, parts) for result in results]
