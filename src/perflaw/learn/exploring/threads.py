"""One thread for small matrices: the linear algebra libraries' own threads cost ten times what they save at this size."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function, run with one thread in BLAS; how many there were before is restored after it."""

    @wraps(function)
    def limited(*arguments: P.args, **named: P.kwargs) -> R:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*arguments, **named)

    return limited


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
