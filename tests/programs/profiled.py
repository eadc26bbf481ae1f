"""A call tree of known costs, one large allocation, and a recursion. Usage: profiled.py N."""

import sys

from fake_clock import advance


def leaf():
    advance(10)


def twice():
    leaf()
    leaf()


def down(n):
    advance(1)
    if n:
        down(n - 1)


def main(n):
    for _ in range(n):
        twice()
    down(5)
    return bytes(50_000_000)


main(int(sys.argv[1]))
