"""Counts its own calls in a shared page, for whoever kills it: counting.py PAGE THREADS.

The page holds the process's number, then two counters a thread: calls begun and calls finished of that thread's
function. A counter is one aligned store, so after SIGKILL they say which calls had ended but for one in flight.
"""

import mmap
import os
import sys
import threading


def leaf(n):
    return n + 1


def numbers(n):
    yield leaf(n)
    yield n


def work_0(n):
    return sum(numbers(n)) + leaf(n)


def work_1(n):
    return leaf(n) if n % 3 else 0


def count(work, page, at):
    n = 0
    while True:
        n += 1
        page[at] = n
        work(n)
        page[at + 1] = n


def main(path, threads):
    with open(path, "r+b") as file:
        page = memoryview(mmap.mmap(file.fileno(), 4096)).cast("Q")
    page[0] = os.getpid()
    if int(threads) > 1:
        threading.Thread(target=count, args=(work_1, page, 3), daemon=True).start()
    count(work_0, page, 1)


main(*sys.argv[1:])
