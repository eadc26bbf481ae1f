"""New functions, threads, generators and exceptions without end: churn.py SECONDS.

Prints one line a second: seconds, resident kB of this process, work done.
"""

import asyncio
import contextlib
import gc
import sys
import threading
import time

SOURCE = """
def made_{n}(items):
    total = sum(kept for kept in items if kept > {n} % 7)
    return total + len([lambda: {n} for _ in items])
"""


def new_function(n):
    names = {}
    exec(compile(SOURCE.format(n=n % 100), f"made_{n % 5}.py", "exec"), names)  # the same names come again
    return names[f"made_{n % 100}"]


def countdown(n):
    while n:
        n -= 1
        yield n


def fail(depth):
    if not depth:
        raise ValueError(depth)
    fail(depth - 1)


def in_thread(n):
    return sum(countdown(n % 20)) + len(str(n))


async def pause(n):
    await asyncio.sleep(0)
    return n


async def tasks(n):
    return sum(await asyncio.gather(*[pause(k) for k in range(n)]))


def turn(n):
    new_function(n)(range(10))
    half = countdown(5)
    next(half)  # suspended for ever, and thrown away
    with contextlib.suppress(ValueError):
        fail(n % 10)
    threads = [threading.Thread(target=in_thread, args=(n + k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    if n % 20 == 0:
        asyncio.run(tasks(10))
    for thread in threads:
        thread.join()


def memory():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def main(seconds):
    begin, told, n = time.monotonic(), 0, 0
    while (passed := time.monotonic() - begin) < seconds:
        if passed >= told:
            gc.collect()
            print(told, memory(), n, flush=True)
            told += 1
        turn(n)
        n += 1


main(float(sys.argv[1]))
