"""``@law("Norm(50*src.len, 0.2)")``: a law written beside the function it is of, at no cost when that runs.

This is all of perflaw that a program imports in production: the standard library alone, and little of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

ATTRIBUTE = "__perflaw_laws__"
"""Attribute of a decorated function: a tuple of its written laws, in the order they stand in the source."""

Decorated = TypeVar("Decorated")


class WrittenLaw(NamedTuple):
    """A law as a person wrote it; ``perflaw laws`` reads and checks it."""

    text: str
    """Distribution, or several with conditions and probabilities, in the annotation language."""
    metric: str
    """What it is of."""
    unit: str
    """Unit of its numbers, empty for the metric's own."""


def law(text: str, metric: str = "time", unit: str = "") -> Callable[[Decorated], Decorated]:
    """Attach a law to a function: the same function is given back, one attribute richer.

    Several laws may stand above one another. The text is not read here: ``perflaw laws MODULE`` does, and says what is
    wrong with it. Raises TypeError on what takes no attributes, such as built-in functions.

    >>> @law("Norm(50*src.len, 0.2*src.len)", unit="us")
    ... def parse(src): ...
    >>> parse.__perflaw_laws__
    (WrittenLaw(text='Norm(50*src.len, 0.2*src.len)', metric='time', unit='us'),)
    """
    if not isinstance(text, str):
        raise TypeError(f"a law is a text such as @law('Norm(50*n, 3)'), not {type(text).__name__}")

    def attach(function: Decorated) -> Decorated:
        below: tuple[WrittenLaw, ...] = getattr(function, "__dict__", {}).get(ATTRIBUTE, ())
        try:
            setattr(function, ATTRIBUTE, (WrittenLaw(text, metric, unit), *below))
        except AttributeError:
            raise TypeError(f"a law cannot be attached to {function!r}: it takes no attributes") from None
        return function

    return attach
