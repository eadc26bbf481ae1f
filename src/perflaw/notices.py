"""Remarks and progress of long work, for whoever asked for it: the command line, a notebook, or a program.

The default for remarks is a warning of Python's; progress is shown to nobody.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

Show = Callable[[float], None]
"""Is called with the part of the work that is done, 0 to 1."""


class PerflawWarning(UserWarning):
    """A remark on recordings that changes what an answer means."""


def _warn(text: str) -> None:
    warnings.warn(text, PerflawWarning, stacklevel=3)


@contextmanager
def _silently(label: str) -> Iterator[Show]:
    yield lambda part: None


_notice: ContextVar[Callable[[str], None]] = ContextVar("notice", default=_warn)
_progress: ContextVar[Callable[[str], AbstractContextManager[Show]]] = ContextVar("progress", default=_silently)


def notice(text: str) -> None:
    """Make a remark."""
    _notice.get()(text)


def progress(label: str) -> AbstractContextManager[Show]:
    """A context that shows how far the work in it is, and gives the function to tell it."""
    return _progress.get()(label)


@contextmanager
def shown_by(
    notice: Callable[[str], None], progress: Callable[[str], AbstractContextManager[Show]] = _silently
) -> Iterator[None]:
    """Within, remarks go to ``notice`` and progress to ``progress``."""
    tokens = _notice.set(notice), _progress.set(progress)
    try:
        yield
    finally:
        _notice.reset(tokens[0])
        _progress.reset(tokens[1])
