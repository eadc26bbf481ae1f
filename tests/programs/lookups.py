"""Look-ups on the fake clock, quick or slow by how they are reached: lookups.py CALLS SEED [planted] [SPEED]."""

import math
import random
import sys

from fake_clock import advance

calls, noise = int(sys.argv[1]), random.Random(sys.argv[2])
planted = "planted" in sys.argv
speed = math.exp(noise.gauss(0, 0.02)) * float(sys.argv[-1] if len(sys.argv) > 3 and not sys.argv[-1].isalpha() else 1)


def load(slow):
    typical = 900_000 if noise.random() < slow else 40_000
    advance(round(typical * math.exp(noise.gauss(0, 0.25)) * speed))


def item():
    load(0.05)


def overview():
    load(0.5 if planted else 0.05)


def search():
    load(0.6)


def steady():
    advance(round(100_000 * math.exp(noise.gauss(0, 0.2)) * speed))


def serve(number):
    steady()
    (item, overview, search)[number % 3]()


for number in range(calls):
    serve(number)
