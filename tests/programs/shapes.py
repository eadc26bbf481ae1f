"""Every way a Python call can begin and end, on the fake clock: recursion, generators, coroutines, exceptions, threads."""

import asyncio
import threading

from fake_clock import advance


def fib(n):
    advance(1)
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def even(n):
    advance(3)
    return n == 0 or odd(n - 1)


def odd(n):
    advance(5)
    return n != 0 and even(n - 1)


def numbers(n):
    try:
        for i in range(n):
            advance(10)
            yield i
    finally:
        advance(2)


def delegating(n):
    yield from numbers(n)


def consume():
    total = 0
    for value in delegating(4):
        advance(100)  # not the generator's time
        total += value
    for value in numbers(9):
        if value == 3:
            break  # closes the generator
    return total


def fails(depth):
    advance(7)
    if depth == 0:
        raise ValueError("down here")
    fails(depth - 1)


def catches():
    try:
        fails(4)
    except ValueError:
        advance(1)


async def step(i):
    advance(20)
    await asyncio.sleep(0)
    advance(30)
    return i


async def gathered():
    return sum(await asyncio.gather(*(step(i) for i in range(5))))


def work(lock):
    with lock:
        advance(50)
        fib(5)


def threads():
    lock = threading.Lock()
    pool = [threading.Thread(target=work, args=(lock,)) for _ in range(3)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()


def main():
    fib(10)
    even(7)
    consume()
    catches()
    asyncio.run(gathered())
    threads()
    sorted([3, 1, 2], key=lambda x: advance(4) or x)
    [advance(1) for _ in range(3)]
    print("done")


main()
