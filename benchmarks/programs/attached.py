"""A service under load, for benchmarks/attach.py: one thread computes without pause, others wait most of the time.

For each line of its standard input it prints the units of work done so far and the CPU time that they took, ns.
"""

import sys
import threading
import time

done = (0, 0)
"""Units of work done, and their CPU time: one object, so that both are of the same moment."""


def leaf(number):
    return number * 2 + 1


def unit():
    total = 0
    for number in range(2000):
        total += leaf(number)
    return total


def wait_and_answer():
    while True:
        time.sleep(0.01)
        leaf(1)


def work():
    global done
    while True:
        unit()
        done = (done[0] + 1, time.thread_time_ns())


for body in (work, wait_and_answer, wait_and_answer):
    threading.Thread(target=body, daemon=True).start()
print("ready", flush=True)
for _ in sys.stdin:
    print(*done, flush=True)
