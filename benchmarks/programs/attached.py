"""A service under load, for benchmarks/attach.py: one thread computes without pause, others wait most of the time.

Prints the units of work done and the CPU time that they took, four times a second, until its standard input ends.
"""

import sys
import threading
import time


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
    done, printed = 0, time.monotonic()
    while True:
        begun = time.thread_time_ns()
        while time.monotonic() < printed + 0.25:
            unit()
            done += 1
        printed = time.monotonic()
        print(done, time.thread_time_ns() - begun, flush=True)
        done = 0


for body in (work, wait_and_answer, wait_and_answer):
    threading.Thread(target=body, daemon=True).start()
sys.stdin.read()
