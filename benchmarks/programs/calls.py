"""Nothing but calls: calls.py WHICH CHUNKS prints, for each chunk of work, ns of wall clock/ns of CPU that it took a call.

WHICH is "calls" (small functions that call small functions) or "mix" (recursion, methods, generators, closures).
"""

import sys
import time


def leaf(n):
    return n + 1


def branch(n):
    return leaf(n) + leaf(n + 1)


def calls():
    for n in range(100_000):
        branch(n)
    return 300_000


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


class Counter:
    def __init__(self):
        self.count = 0

    def add(self, n):
        self.count += n
        return self

    @property
    def total(self):
        return self.count


def numbers(n):
    yield from range(n)


def adder(k):
    def add(n):
        return n + k

    return add


def mix():
    add = adder(1)
    for n in range(6_000):
        fibonacci(5)  # 15 calls
        Counter().add(n).add(1).total  # noqa: B018 (4 calls)
        sum(numbers(10))  # 11 segments of a generator
        add(n)
        add(n)
    return 6_000 * (15 + 4 + 11 + 2)


def chunk(work):
    begin, spent = time.perf_counter_ns(), time.thread_time_ns()
    count = work()
    spent = time.thread_time_ns() - spent
    return f"{(time.perf_counter_ns() - begin) / count}/{spent / count}"


def main(which, chunks):
    times = [chunk({"calls": calls, "mix": mix}[which]) for _ in range(int(chunks))]
    print(*times)


main(*sys.argv[1:])
