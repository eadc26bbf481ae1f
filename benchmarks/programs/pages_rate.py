"""Asks a server for pages until standard input ends: pages_rate.py PORT SEED PATH... A connection serves some requests."""

import http.client
import random
import sys
import threading

REQUESTS = 50


def main(port, seed, *paths):
    draw, over = random.Random(int(seed)), threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    while not over.is_set():
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
        for _ in range(REQUESTS):
            connection.request("GET", draw.choice(paths).replace("{n}", str(draw.randrange(10_000))))
            answer = connection.getresponse()
            assert answer.read() or answer.status == 200
            if answer.will_close or over.is_set():
                break
        connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
