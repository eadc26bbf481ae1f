"""A program whose index.build may become slower from 400 documents on. Usage: shifting.py N FACTOR SEED."""

import math
import random
import sys
from pathlib import Path

from fake_clock import advance

noise = random.Random()
factor = 1.0
run_speed = 1.0


def spend(ns):
    advance(max(1, round(ns * run_speed * math.exp(noise.gauss(0, 0.05)))))


def build(docs):
    spend(2_000 * len(docs) * (factor if len(docs) >= 400 else 1.0))


def tokens(text):
    spend(250 * len(text))


def lookup(key):
    spend(20_000)


def main(n):
    for size in (n, n // 2, n // 4):
        for _ in range(8):
            build(list(range(size)))
            tokens("x" * size)
            lookup(size)


if __name__ == "__main__":
    factor = float(sys.argv[2])
    # Repeated runs differ: each adds a line to a file in its folder and seeds by their number.
    with Path("seeds").open("a+") as file:
        file.write("run\n")
        file.seek(0)
        noise.seed(f"{sys.argv[3]} {len(file.readlines())}")
    run_speed = math.exp(noise.gauss(0, 0.03))
    main(int(sys.argv[1]))
