"""Asks a service for pages until standard input ends: service_rate.py PORT SEED. Prints the number of answers now and then."""

import random
import sys
import threading
import time

from service_load import PAGES, ask, connected

EVERY_S = 0.05


def main(port, seed):
    draw, connection, over = random.Random(seed), connected(port), threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    answers, told = 0, 0.0
    while not over.is_set():
        ask(connection, f"{draw.choice(PAGES)}?n={draw.randrange(10_000)}")
        answers += 1
        if time.monotonic() > told + EVERY_S:
            told = time.monotonic()
            print(answers, flush=True)
    ask(connection, "/stop")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
