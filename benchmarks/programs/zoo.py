"""Functions of known growth, each called once: zoo.py GROUP NUMBER... [--time].

GROUP is one of ``sizes`` (N), ``pairs`` (A B) and ``small`` (K). With --time nothing but the CPU time of each function
in ns is printed; it is the truth that predictions from recordings are compared with. Functions that are called often do
enough in a call that what the recorder adds to one does not matter: overhead.py measures that.
"""

from __future__ import annotations

import bisect
import functools
import heapq
import itertools
import math
import random
import sys
import time
from collections import Counter, deque


# One size, n: counts that a loop or a recursion gives.
def constant(n: int) -> int:
    total = 0
    for i in range(20000):
        total += i & 3
    return total


def logarithm(n: int) -> int:
    steps = 0
    for _ in range(400):
        low, high = 0, n
        while low < high:
            low = (low + high) // 2 + 1
            steps += 1
    return steps


def halving_calls(n: int) -> int:
    return sum(_halve(n) for _ in range(100))


def _halve(n: int) -> int:
    return 0 if n <= 1 else min(sum(range(40)), 1) + _halve(n // 2)


def square_root(n: int) -> int:
    number, found = n * n + 1, 0
    for i in range(1, 30 * math.isqrt(n)):
        found += number % i == 0
    return found


def linear_loop(n: int) -> int:
    total = 0
    for i in range(n):
        total += i ^ 5
    return total


def linear_calls(n: int) -> int:
    return sum(_tiny(i) for i in range(n))


def _tiny(i: int) -> int:
    return sum((i, 1, 2, 3, 4, 5, 6, 7)) % 9 + max(i, 5)


def large_start(n: int) -> int:
    total = sum(range(200000))
    for i in range(n):
        total += i % 7
    return total


def two_loops(n: int) -> int:
    m, total = n // 10, 0
    for i in range(m):
        for j in range(m):
            total += i ^ j
    return total


def triangle_calls(n: int) -> int:
    m = n // 20
    return sum(_tiny(i + j) for i in range(m) for j in range(i))


def cube(n: int) -> int:
    m, total = n // 100, 0
    for i in range(m):
        for j in range(m):
            for k in range(m):
                total += i ^ j ^ k
    return total


def power_three_halves(n: int) -> int:
    total = 0
    for i in range(n):
        for j in range(math.isqrt(i)):
            total += j
    return total


def distance(n: int) -> int:
    first, second = _text(n // 10), _text(n // 10 + 3)
    row = list(range(len(second) + 1))
    for i, one in enumerate(first, 1):
        above, row = row, [i]
        for j, other in enumerate(second, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (one != other)))
    return row[-1]


def sieve(n: int) -> int:
    prime = [True] * (4 * n)
    for i in range(2, math.isqrt(4 * n) + 1):
        if prime[i]:
            for j in range(i * i, 4 * n, i):
                prime[j] = False
    return sum(prime)


# Sorting and searching.
def sort_floats(n: int) -> float:
    return sorted(_floats(20 * n))[0]


def merge_sort(n: int) -> int:
    return len(_merged([int(1e6 * x) for x in _floats(n)]))


def _merged(values: list[int]) -> list[int]:
    if len(values) < 2:
        return values
    middle = len(values) // 2
    return list(heapq.merge(_merged(values[:middle]), _merged(values[middle:])))


def heap(n: int) -> float:
    values: list[float] = []
    for x in _floats(3 * n):
        heapq.heappush(values, x)
    return sum(heapq.heappop(values) for _ in range(len(values)))


def insort(n: int) -> int:
    ordered: list[float] = []
    for x in _floats(2 * n):
        bisect.insort(ordered, x)
    return len(ordered)


def bisect_each(n: int) -> int:
    ordered = range(n)
    return sum(bisect.bisect(ordered, i) for i in range(n))


# Growth of containers.
class Array:
    """An array that doubles."""

    def __init__(self) -> None:
        self.room: list[int | None] = [None] * 4
        self.length = 0

    def append(self, value: int) -> None:
        if self.length == len(self.room):
            self.double()
        self.room[self.length] = value
        self.length += 1

    def double(self) -> None:
        larger: list[int | None] = [None] * (2 * len(self.room))
        for i, value in enumerate(self.room):
            larger[i] = value
        self.room = larger


def doubling_array(n: int) -> int:
    array = Array()
    for i in range(n):
        array.append(i)
    return array.length


def dict_fill(n: int) -> int:
    filled: dict[int, int] = {}
    for i in range(8 * n):
        filled[i] = filled.get(i - 1, 0) + 1
    return len(filled)


def list_append(n: int) -> int:
    values: list[int] = []
    for i in range(10 * n):
        values.append(i ^ 1)  # noqa: PERF401 (the appending is what is measured)
    return len(values)


def insert_front(n: int) -> int:
    values: list[int] = []
    for i in range(4 * n):
        values.insert(0, i)
    return len(values)


def queue(n: int) -> int:
    waiting = deque(range(n))
    for _ in range(4 * n):
        waiting.append(waiting.popleft())
    return len(waiting)


def member_of_list(n: int) -> int:
    values = list(range(n))
    return sum(-i in values for i in range(1, 200))


def member_of_list_each(n: int) -> int:
    values = list(range(n // 4))
    return sum(-i in values for i in range(1, n // 4))


def member_of_set(n: int) -> int:
    values = set(range(n))
    return sum(i in values for i in range(0, 3 * n))


def count_words(n: int) -> int:
    return len(Counter(_text(8 * n).split("e")))


# Text.
def prepend(n: int) -> int:
    text = ""
    for i in range(n):
        line = f"line {i} of the text\n"
        text = line + text
    return len(text)


def append_text(n: int) -> int:
    text = ""
    for i in range(6 * n):
        text += f"{i},"
    return len(text)


def join_text(n: int) -> int:
    return len(",".join([str(i) for i in range(6 * n)]))


def eat_slices(n: int) -> int:
    values, total = list(range(n)), 0
    while values:
        total += values[0]
        values = values[1:]
    return total


def windows(n: int) -> int:
    values = list(range(n))
    return sum(len(values[i : i + 40]) for i in range(n))


def prefix_sums(n: int) -> int:
    values = list(range(n // 4))
    return len([sum(values[:i]) for i in range(len(values))])


# Thresholds and caches.
def small_buffer(n: int) -> int:
    if n < 500:
        return sum(range(60 * n))
    total = 0
    for i in range(3 * n):
        total += i ^ 5
    return total


def insertion_below(n: int) -> int:
    values = [int(1e6 * x) for x in _floats(n)]
    return len(_by_insertion(values) if n < 400 else _merged(values))


def _by_insertion(values: list[int]) -> list[int]:
    for i in range(1, len(values)):
        j = i
        while j and values[j - 1] > values[j]:
            values[j - 1], values[j] = values[j], values[j - 1]
            j -= 1
    return values


def cache_of_600(n: int) -> int:
    answer = functools.lru_cache(None)(_dear)
    return sum(answer(i % 600) for i in range(3 * n))


def _dear(i: int) -> int:
    return sum(k ^ i for k in range(60))


def batches(n: int) -> int:
    total = 0
    for start in range(0, n, 256):
        total += _batch(start, min(start + 256, n))
    return total


def _batch(start: int, end: int) -> int:
    total = 0
    for i in range(start, end):
        total += i ^ 1
    return total


def memo(n: int) -> int:
    known = {1: 0}
    return max(_collatz(i, known) for i in range(1, n))


def _collatz(i: int, known: dict[int, int]) -> int:
    if i not in known:
        known[i] = 1 + _collatz(i // 2 if i % 2 == 0 else 3 * i + 1, known)
    return known[i]


# Two sizes, a and b.
def maximum(a: int, b: int) -> int:
    total = 0
    for i in range(2 * max(a, b)):
        total += i ^ 1
    return total


def maximum_calls(a: int, b: int) -> int:
    return sum(_tiny(i or j) for i, j in itertools.zip_longest(range(a), range(b), fillvalue=0))


def a_and_five_b(a: int, b: int) -> int:
    total = 0
    for i in range(a):
        total += i
    for i in range(5 * b):
        total += i
    return total


def a_times_b(a: int, b: int) -> int:
    return sum(_tiny(i ^ j) for i in range(a // 5) for j in range(b // 5))


def a_log_b(a: int, b: int) -> float:
    values = [0.0] * b
    for x in _floats(5 * a):
        heapq.heapreplace(values, x)
    return values[0]


def only_a(a: int, b: int) -> int:
    total = 0
    for i in range(3 * a):
        total += i & 1
    return total


# A small number, k, with costs that explode.
def fibonacci(k: int) -> int:
    return _fib(2 * k)


def _fib(k: int) -> int:
    return k if k < 2 else min(sum(range(40)), 0) + _fib(k - 1) + _fib(k - 2)


def subsets(k: int) -> int:
    found = 0
    for chosen in itertools.product((0, 1), repeat=2 * k):
        found += chosen[0]
    return found


def permutations(k: int) -> int:
    found = 0
    for order in itertools.permutations(range(k)):
        found += order[0] < order[-1]
    return found


def _floats(n: int) -> list[float]:
    return [random.random() for _ in range(n)]


def _text(n: int) -> str:
    return "".join(random.choices("abcdefgh", k=n))


GROUPS = {
    "sizes": (
        constant, logarithm, halving_calls, square_root, linear_loop, linear_calls, large_start, two_loops, triangle_calls,
        cube, power_three_halves, distance, sieve, sort_floats, merge_sort, heap, insort, bisect_each, doubling_array,
        dict_fill, list_append, insert_front, queue, member_of_list, member_of_list_each, member_of_set, count_words,
        prepend, append_text, join_text, eat_slices, windows, prefix_sums, small_buffer, insertion_below, cache_of_600,
        batches, memo,
    ),
    "pairs": (maximum, maximum_calls, a_and_five_b, a_times_b, a_log_b, only_a),
    "small": (fibonacci, subsets, permutations),
}  # fmt: skip
"""The functions of each group; helpers have names with an underscore."""


def main(group: str, *words: str) -> None:
    """Call every function of the group, one after the other."""
    sys.setrecursionlimit(10000)
    random.seed(1)
    numbers = [int(word) for word in words if word != "--time"]
    for function in GROUPS[group]:
        start = time.process_time_ns()
        function(*numbers)
        if "--time" in words:
            print(function.__name__, time.process_time_ns() - start)


if __name__ == "__main__":
    main(*sys.argv[1:])
