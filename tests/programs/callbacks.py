"""Python called by the interpreter itself and by C, often enough that its call sites are specialised."""

import functools
import itertools
import operator
import re

from fake_clock import advance


class Descriptor:
    def __get__(self, instance, owner):
        advance(1)
        return 7

    def __set__(self, instance, value):
        advance(2)


class Everything:
    field = Descriptor()

    def __new__(cls, *arguments):
        advance(3)
        return super().__new__(cls)

    def __init__(self, value=1):
        advance(4)
        self._value = value

    @property
    def value(self):
        advance(5)
        return self._value

    @value.setter
    def value(self, new):
        advance(6)
        self._value = new

    def __getitem__(self, at):
        advance(7)
        return at

    def __setitem__(self, at, value):
        advance(8)

    def __call__(self, value):
        advance(9)
        return value

    def __iter__(self):
        advance(10)
        yield from (1, 2)

    def __len__(self):
        advance(11)
        return 3

    def __contains__(self, value):
        advance(12)
        return True

    def __eq__(self, other):
        advance(13)
        return self is other

    def __hash__(self):
        advance(14)
        return 5

    def __lt__(self, other):
        advance(15)
        return self._value < other._value

    def __add__(self, other):
        advance(16)
        return other

    def __iadd__(self, other):
        advance(17)
        return self

    def __bool__(self):
        advance(18)
        return True

    def __repr__(self):
        advance(19)
        return "everything"

    def __format__(self, spec):
        advance(20)
        return spec

    def __enter__(self):
        advance(21)
        return self

    def __exit__(self, *failure):
        advance(22)

    def __del__(self):
        advance(23)

    @classmethod
    def of_class(cls):
        advance(24)
        return cls

    @staticmethod
    def of_nobody():
        advance(25)

    def method(self, *arguments, key=None):
        advance(26)
        return key


class Dynamic:
    def __getattribute__(self, name):
        advance(27)
        return object.__getattribute__(self, name)

    def __getattr__(self, name):
        advance(28)
        return name

    def __setattr__(self, name, value):
        advance(29)

    def __class_getitem__(cls, item):
        advance(30)
        return cls


def warm(thing, other):
    thing.value = thing.value
    thing.field = thing.field
    thing[0] = thing[1]
    thing(2)
    first, second = thing
    len(thing), 1 in thing, thing == other, thing != other, hash(thing), thing < other
    thing + 1
    thing += 1
    bool(thing), not thing
    repr(thing), f"{thing:x}", f"{thing!r}"
    with thing:
        pass
    thing.of_class(), thing.of_nobody(), thing.method(1, key=2), thing.method(*(1, 2), **{"key": 3})
    bound = thing.method
    bound(3)
    return first + second


def dynamic(thing):
    thing.name = thing.absent
    Dynamic[int]


def key(value):
    advance(31)
    return -value


def add(a, b):
    advance(32)
    return a + b


def from_c():
    numbers = list(range(8))
    sorted(numbers, key=key)
    max(numbers, key=key)
    list(map(key, numbers))
    list(filter(lambda value: advance(33) or value, numbers))
    functools.reduce(add, numbers)
    list(itertools.accumulate(numbers, add))
    functools.partial(add, 1)(2)
    re.sub(r"\d", lambda match: str(key(int(match[0]))), "1 2 3")
    {Everything(): 1, Everything(): 2}
    sorted([Everything(3), Everything(1), Everything(2)])
    operator.attrgetter("value")(Everything())
    list(iter(functools.partial(next, iter(numbers)), 3))
    sorted(numbers, key=functools.cmp_to_key(lambda a, b: advance(34) or b - a))


these = Everything(), Everything(2)
for _ in range(60):
    warm(*these)
    dynamic(Dynamic.__new__(Dynamic))
for _ in range(20):
    from_c()
print("called back")
