"""Functions that are made while the program runs: exec, eval, reload, decorators, metaclasses, dataclasses, closures."""

import contextlib
import dataclasses
import enum
import functools
import importlib
import sys
from pathlib import Path

from fake_clock import advance

MODULE = "from fake_clock import advance\ndef reloaded(n):\n    advance(n)\n    return lambda: advance(1)\n"


def timed(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        advance(1)
        return function(*arguments)

    return wrapper


def parametrised(ns):
    def decorate(function):
        advance(ns)
        return timed(function)

    return decorate


@timed
@parametrised(2)
def decorated(n):
    advance(3)
    return n


class Meta(type):
    def __new__(meta, name, bases, space):
        advance(4)
        return super().__new__(meta, name, bases, space)

    def __call__(cls, *arguments):
        advance(5)
        return super().__call__(*arguments)


class Base(metaclass=Meta):
    def __init_subclass__(cls):
        advance(6)

    def method(self):
        advance(7)


class Derived(Base):
    def method(self):
        advance(8)
        return super().method()


@dataclasses.dataclass(order=True)
class Point:
    x: int
    y: int = dataclasses.field(default_factory=lambda: advance(9) or 0)

    def __post_init__(self):
        advance(10)


class Colour(enum.Enum):
    RED = 1

    @classmethod
    def _missing_(cls, value):
        advance(11)
        return cls.RED


@contextlib.contextmanager
def scope():
    advance(12)
    yield
    advance(13)


@functools.singledispatch
def dispatched(value):
    advance(14)


@dispatched.register
def _(value: int):
    advance(15)


def counter():
    count = 0

    def increment():
        nonlocal count
        count += 1
        advance(count)
        return count

    return increment


def comprehensions(n):
    return (
        [advance(1) for _ in range(n)],
        {advance(1) for _ in range(n)},
        {i: advance(1) for i in range(n)},
        list(advance(1) for _ in range(n)),  # noqa: C400 (a generator is wanted)
        [[advance(1) for _ in range(i)] for i in range(n)],
        [(lambda k=i: advance(k))() for i in range(n)],
    )


def executes():
    space = {"advance": advance}
    for _ in range(3):
        exec("def made(n):\n    advance(n)\n    return n\nmade(4)\nfor i in range(2): made(i)", space)
        eval("made(5) + (lambda q: made(q))(6)", space)
        exec(compile("made(7)", "elsewhere.py", "exec"), space)
        exec("def bare(): pass\nbare()", {})


def reloads():
    path = Path("made_module.py")
    path.write_text(MODULE)
    sys.path.insert(0, "")
    module = importlib.import_module("made_module")
    for n in range(3):
        module.reloaded(n)()
        path.write_text(MODULE + "#" * n)
        importlib.invalidate_caches()
        importlib.reload(module)
    path.unlink()


for turn in range(5):
    decorated(turn)
    Derived().method()
    sorted([Point(2), Point(1, 5), Point(1)])
    Point(1) == Point(1), repr(Point(3)), dataclasses.replace(Point(4), x=5)
    Colour(9)
    with scope():
        advance(16)
    dispatched(1), dispatched("")
    counted = counter()
    counted(), counted()
    comprehensions(3)
executes()
reloads()
print("made")
