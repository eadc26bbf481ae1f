"""Functions whose law is known: those of Freud's validation (§5) and its kin. Usage: truth.py SEED [CALLS [NS [NOISE]]].

Costs are in units of NS nanoseconds. They move the recorder's fake clock, or with ``spin`` in the environment's TRUTH
they are CPU time spent spinning.
"""

import enum
import math
import os
import random
import sys
import time
from dataclasses import dataclass

from fake_clock import advance

chance = random.Random()
unit = 1000.0
noise = 0.0
size = 0  # what `of_global` depends on


def spin(ns):
    end = time.thread_time_ns() + ns
    while time.thread_time_ns() < end:
        pass


def spend(cost):
    if DOUBLED:
        logged(cost)
    ns = max(1, round(cost * unit * math.exp(noise * chance.gauss(0, 1))))
    spin(ns) if SPINNING else advance(ns)


SPINNING = os.environ.get("TRUTH") == "spin"
LARGE = 200 if SPINNING else 2000  # sizes whose squares are costs: spinning takes real time
DOUBLED = os.environ.get("TRUTH_DOUBLED") == "1"


def logged(cost):
    """What is recorded once more of every call where instrumentation is doubled."""
    return cost


class Mode(enum.Enum):
    FLAT, LINEAR, SQUARE = range(3)


class Box:
    def __init__(self, value):
        self.value = value


@dataclass(frozen=True)
class Pair:
    useless: int
    used: int


class Private:
    def __init__(self, amount):
        self.__amount = amount

    def private_field(self):
        spend(150 * self.__amount)


class This:
    def __init__(self, amount):
        self.amount = amount

    def field_of_this(self):
        spend(87 * self.amount)


class Rising:
    def __init__(self, width):
        self.width = width

    def getter(self):
        return self.width

    def cost(self, f):
        return f


class Falling(Rising):
    def cost(self, f):
        return 2000 - f


def linear_int(t):
    spend(250 * t)


def linear_pointer(box):
    spend(250 * box.value)


def linear_float(x):
    spend(250 * x)


def quadratic(t):
    spend(t * t)


def n_log_n(n):
    spend(n * math.ceil(math.log2(n)))


def quadratic_noisy(t):
    spend(t * t + 100 * t * chance.random())


def string_length(s):
    spend(100 * len(s))


def struct_field(pair):
    spend(150 * pair.used)


def struct_by_value(width, height):
    spend(150 * width)


def two_branches(a, b, c):
    if a > 10:
        spend(b * b)
    else:
        spend(450 * c)


def one_feature(a):
    if a < 10:
        spend(400 * (10 - a))
    else:
        spend(4000 + 400 * (a - 10))


def of_enum(mode, a):
    spend({Mode.FLAT: 100_000, Mode.LINEAR: 100 * a, Mode.SQUARE: a * a}[mode])


def of_global():
    spend(70 * size)


def few_elements(values):
    few = 0
    for value in values:
        if value < 7:
            few += 1
    spend(100 * few)


def three_modes(a):
    spend(chance.choices((900, 600, 300), (0.3, 0.4, 0.3))[0])


def product(a, b):
    spend(a * b * b)


def mixed(a):
    kind = chance.random()
    if kind < 0.25:
        spend(10_000 + 1500 * chance.random())
    elif kind < 0.5:
        spend(100 * chance.random())
    else:
        spend(1000 * a)


def vector_size(vector):
    spend(250 * len(vector))


def array_sum(array):
    spend(sum(array))


def virtual_method(shape, f):
    spend(shape.cost(f))


def virtual_getter(shape):
    spend(250 * shape.getter())


def call_all():
    global size
    t, a, b, c = (chance.randint(1, 200) for _ in range(4))
    linear_int(t)
    linear_pointer(Box(a))
    linear_float(chance.uniform(1, 100))
    quadratic(t)
    n_log_n(chance.randint(2, 2000))
    quadratic_noisy(chance.randint(1, LARGE))
    string_length("s" * b)
    struct_field(Pair(a, b))
    Private(c).private_field()
    This(a).field_of_this()
    struct_by_value(b, c)
    two_branches(chance.randint(0, 30), b, c)
    one_feature(chance.randint(0, 20))
    of_enum(chance.choice(list(Mode)), chance.randint(1, LARGE // 2))
    size = c
    of_global()
    few_elements([chance.randint(0, 20) for _ in range(chance.randint(0, 40))])
    three_modes(a)
    product(*((a % 20 + 1, b % 20 + 1) if SPINNING else (a, b)))
    mixed(chance.randint(1, LARGE // 2))
    vector_size([0] * c)
    array_sum([chance.randint(0, 1000) for _ in range(20)])
    virtual_method(chance.choice((Rising, Falling))(a), chance.randint(1, 1999))
    virtual_getter(chance.choice((Rising, Falling))(b))


def main(calls):
    for _ in range(calls):
        call_all()


if __name__ == "__main__":
    chance.seed(int(sys.argv[1]))
    calls = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    unit = float(sys.argv[3]) if len(sys.argv) > 3 else 1000.0
    noise = float(sys.argv[4]) if len(sys.argv) > 4 else 0.0
    main(calls)
