"""A server one of whose steps is slow in one request of a hundred: which step is drawn at random, or none does.

Usage: one_in_hundred.py REQUESTS planted|null FILE. The name of the slow step is written to FILE when all is done.
"""

import os
import random
import sys
from pathlib import Path


def unit(x):
    return x * 2 + 1


def work(n):
    total = 0
    for i in range(n):
        total += unit(i)
    return total


def step_0(n):
    return work(n)


def step_1(n):
    return work(n)


def step_2(n):
    return work(n)


def step_3(n):
    return work(n)


def step_4(n):
    return work(n)


def step_5(n):
    return work(n)


def step_6(n):
    return work(n)


def step_7(n):
    return work(n)


STEPS = (step_0, step_1, step_2, step_3, step_4, step_5, step_6, step_7)


def handle(slow):
    for step in STEPS:
        step(2000 if step is slow else 20)


draw = random.Random(os.urandom(8))
planted = draw.choice(STEPS) if sys.argv[2] == "planted" else None
for number in range(int(sys.argv[1])):
    handle(planted if number % 100 == 37 else None)
Path(sys.argv[3]).write_text(planted.__name__ if planted else "")
