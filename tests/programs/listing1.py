"""Listing 1 of the paper as a full factorial of 16 invocations, on the fake clock. Usage: listing1.py A|B|C."""

import sys
from itertools import product

from fake_clock import advance

VARIANT = sys.argv[1]


def f(slow, called, r, t):
    advance(4)
    g1(slow)
    if called:
        g2()
    for _ in range(r):
        g3()
        advance(1)
        if t >= 0:
            g4()
        else:
            g5()


def g1(slow):
    a1(27 if slow else 7)
    advance(1)
    a2()


def a1(ns):
    advance(ns)


def a2():
    advance(2)


def g2():
    advance(24)


def g3():
    advance(5)


def g4():
    advance(12 if VARIANT == "C" else 6)


def g5():
    advance(6)


for slow, called, r, t in product((0, 1), (0, 1), (3, 3) if VARIANT == "A" else (2, 4), (1, -1)):
    f(slow, called, r, t)
