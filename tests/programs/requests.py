"""A server on the fake clock; one request in a hundred is slow to parse: requests.py slow|alike|sized."""

import random
import sys

from fake_clock import advance

noise = random.Random(7)
KIND = sys.argv[1]


def work(ns):
    advance(round(ns * noise.uniform(0.9, 1.1)))


def token(ns):
    work(ns)


def parse(tokens):
    for _ in range(tokens):
        token(500)


def size(number):
    if KIND == "sized":
        return number % 60
    return 150 if KIND == "slow" and number % 100 == 37 else 3


def look_up():
    work(3000)


def render():
    work(4000)


def wait():
    """Another process has the CPU, now and then."""
    if noise.random() < 0.02:
        advance(400_000, busy=False)


def handle(number):
    wait()
    parse(size(number))
    look_up()
    render()


for number in range(600):
    handle(number)
