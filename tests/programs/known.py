"""Functions of known cost: they advance the recorder's fake clock themselves. Usage: known.py N [RELATIVE_NOISE] [SEED]."""

import math
import random
import sys
from pathlib import Path

from fake_clock import advance

noise = random.Random()
relative = 0.0


def spend(ns):
    advance(max(1, round(ns * math.exp(relative * noise.gauss(0, 1)))))


def constant(items):
    spend(5000)


def linear(items):
    spend(250 * len(items))


def with_intercept(items):
    spend(100_000 + 250 * len(items))


def nlogn(items):
    spend(90 * len(items) * math.log(len(items)))


def quadratic(items):
    spend(3 * len(items) ** 2)


def power(n):
    spend(20 * n**1.5)


def null(items):
    spend(5000 * math.exp(noise.gauss(0, 0.4)))


def outer(items):
    for _ in range(3):
        linear(items)
    spend(1000)


FUNCTIONS = (constant, linear, with_intercept, nlogn, quadratic, null, outer)


def main(n, calls=4):
    items = list(range(n))
    for _ in range(calls):
        for function in FUNCTIONS:
            function(items)
        power(n)


if __name__ == "__main__":
    relative = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    # Repeated runs differ: each adds a line to a file in its folder and seeds by their number.
    if relative:
        with Path("seeds").open("a+") as file:
            file.write("run\n")
            file.seek(0)
            noise.seed(f"{sys.argv[3]} {len(file.readlines())}")
    main(int(sys.argv[1]))
