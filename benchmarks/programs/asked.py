"""Small functions of known growth, one of which is called: asked.py NAME N [--time].

With --time nothing but the CPU time of the function in ns is printed.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Callable


def linear(n: int) -> int:
    total = 0
    for i in range(40 * n):
        total += i & 7
    return total


def quadratic(n: int) -> int:
    total = 0
    for i in range(n):
        for j in range(n):
            total += i ^ j
    return total


def power_three_halves(n: int) -> int:
    total = 0
    for i in range(n):
        for j in range(4 * math.isqrt(n)):
            total += i ^ j
    return total


def sort(n: int) -> float:
    return sorted([random.random() for _ in range(100 * n)])[0]


def large_start(n: int) -> int:
    total = sum(range(100000))
    for i in range(40 * n):
        total += i & 7
    return total


def late_quadratic(n: int) -> int:
    total = 0
    for i in range(200 * n):
        total += i & 7
    for i in range(n):
        for j in range(n // 2):
            total += i ^ j
    return total


def threshold(n: int) -> int:
    total = 0
    for i in range(20 * n if n < 400 else 200 * n):
        total += i & 7
    return total


def constant(n: int) -> int:
    total = 0
    for i in range(20000):
        total += i & n
    return total


def search(n: int) -> int:
    values = list(range(n))
    return sum(-i in values for i in range(n))


def texts(n: int) -> int:
    return len(",".join(str(i) for i in range(40 * n)))


FUNCTIONS: dict[str, Callable[[int], float]] = {
    one.__name__: one
    for one in (
        linear, quadratic, power_three_halves, sort, large_start, late_quadratic, threshold, constant, search, texts,
    )
}  # fmt: skip


def main(name: str, size: str, *words: str) -> None:
    """Call the function."""
    random.seed(1)
    start = time.process_time_ns()
    FUNCTIONS[name](int(size))
    if "--time" in words:
        print(time.process_time_ns() - start)


if __name__ == "__main__":
    main(*sys.argv[1:])
