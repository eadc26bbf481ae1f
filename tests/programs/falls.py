"""Exceptions through several frames, finally, with, generators and C; deep and mutual recursion."""

import contextlib
import functools

from fake_clock import advance


class Guard:
    def __init__(self, swallows):
        self.swallows = swallows

    def __enter__(self):
        advance(1)

    def __exit__(self, kind, value, trace):
        advance(2)
        return self.swallows


def fall(depth):
    advance(3)
    with Guard(swallows=False):
        try:
            if depth == 0:
                raise ArithmeticError(depth)
            return fall(depth - 1)
        finally:
            advance(5)


def catch(depth):
    with Guard(swallows=True):
        fall(depth)
    advance(7)


def again(depth):
    try:
        fall(depth)
    except ArithmeticError as error:
        advance(11)
        raise LookupError from error


def through_c(values):
    def failing(value):
        advance(13)
        return 1 // (value - 2)

    try:
        return sorted(values, key=failing)
    except ZeroDivisionError:
        advance(17)
        return list(map(failing, values[:1]))


def stops():
    raise StopIteration


class Rows:
    """Ends an iteration by exceptions."""

    def __init__(self, n):
        self.n = n

    def __getitem__(self, at):
        advance(1)
        if at == self.n:
            raise IndexError
        return at

    def __getattr__(self, name):
        advance(2)
        raise AttributeError(name)


@contextlib.contextmanager
def managed():
    advance(19)
    try:
        yield
    finally:
        advance(23)


def down(n):
    advance(1)
    return n and left(n - 1)


def left(n):
    advance(2)
    return n and (right(n - 1) if n % 2 else down(n - 1))


def right(n):
    advance(4)
    return n and down(n - 1)


@functools.lru_cache
def cached(n):
    advance(29)
    return 0 if n < 2 else cached(n - 1) + cached(n - 2)


for level in (0, 1, 4):
    catch(level)
    with contextlib.suppress(LookupError):
        again(level)
through_c([3, 2, 1])
with contextlib.suppress(StopIteration):
    stops()
list(Rows(3))
hasattr(Rows(0), "absent")
for _ in range(2):
    with contextlib.suppress(KeyError), managed():
        raise KeyError
down(30)
cached(6)
print("landed")
