"""Asks a service for pages until standard input ends: service_rate.py PORT SEED [turns].

Prints the moment (ns since 1970) and the number of answers now and then. Pages are drawn at random, or asked for in turns,
so that any few requests are as dear as any others. A page that is asked for again has to have the same text as before.
"""

import random
import sys
import threading
import time
from itertools import count

from service_load import PAGES, ask, connected

EVERY_NS = 5_000_000
NUMBERS = 2_000


def main(port, seed, *more):
    draw, connection, over = random.Random(int(seed)), connected(int(port)), threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    told, texts = 0, {}
    for answers in count(1):
        page = PAGES[answers % len(PAGES)] if "turns" in more else draw.choice(PAGES)
        path = f"{page}?n={draw.randrange(NUMBERS)}"
        text = ask(connection, path)
        assert texts.setdefault(path, text) == text, (path, texts[path], text)
        now = time.time_ns()
        if now > told + EVERY_NS:
            told = now
            print(now, answers, flush=True)
        if over.is_set():
            break
    ask(connection, "/stop")


if __name__ == "__main__":
    main(*sys.argv[1:])
