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


def one_by_one(target, *arguments):
    thread = threading.Thread(target=target, args=arguments)
    thread.start()
    thread.join()


for number in range(20):
    one_by_one(work, number % 4)
with concurrent.futures.ThreadPoolExecutor(1) as pool:
    list(pool.map(work, range(5)))
print("joined")
