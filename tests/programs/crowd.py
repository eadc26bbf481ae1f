"""Threads that take turns, so that every number is known: of threading, of pools, and many short ones."""

import concurrent.futures
import threading

from fake_clock import advance

turn = threading.Lock()


def step(n):
    advance(n)
    return n


def work(n):
    with turn:
        advance(1)
        for i in range(n):
            step(i)


def generate(n):
    for i in range(n):
        step(i)
        yield i


def consume(turns):
    with turn:
        for _ in turns:
            advance(2)


def one_by_one(target, *arguments):
    thread = threading.Thread(target=target, args=arguments)
    thread.start()
    thread.join()


for number in range(20):
    one_by_one(work, number % 4)
with concurrent.futures.ThreadPoolExecutor(1) as pool:
    list(pool.map(work, range(5)))
started_here = generate(4)  # a generator goes on in another thread
next(started_here)
one_by_one(consume, started_here)
print("joined")
