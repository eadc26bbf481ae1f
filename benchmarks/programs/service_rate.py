"""Asks services for pages until standard input ends: service_rate.py PORT[,PORT...] SEED.

Prints the moment (ns since 1970) and the number of answers of each now and then. Each request goes to all services, to one
after the other, by turns in this order and in the opposite one. A page that is asked for again has to have the same text as
before.
"""

import random
import sys
import threading
import time
from itertools import count

from service_load import PAGES, ask, connected

EVERY_NS = 5_000_000
NUMBERS = 2_000


def main(ports, seed):
    draw, over, pauses = random.Random(int(seed)), threading.Event(), [0.0]
    connections = [connected(int(port)) for port in ports.split(",")]
    threading.Thread(target=lambda: (pauses.extend(map(float, sys.stdin)), over.set()), daemon=True).start()
    told, texts = 0, {}
    for answers in count(1):
        path = f"{draw.choice(PAGES)}?n={draw.randrange(NUMBERS)}"
        for connection in connections[:: 1 if answers % 2 else -1]:
            text = ask(connection, path)
            assert texts.setdefault(path, text) == text, (path, texts[path], text)
        now = time.time_ns()
        if now > told + EVERY_NS:
            told = now
            print(now, answers, flush=True)
        if over.wait(pauses[-1]):
            break
    for connection in connections:
        ask(connection, "/stop")


if __name__ == "__main__":
    main(*sys.argv[1:])
