"""Asks a service for pages from a process of its own: service_load.py PORT REQUESTS SEED. Ends the service at last."""

import http.client
import random
import sys
import time

PAGES = ("/item", "/item", "/search", "/basket")
PATIENCE_S = 240  # the recorder may have to compile its tracer first


def connected(port):
    """A connection, when the service answers."""
    until = time.monotonic() + PATIENCE_S
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        try:
            connection.connect()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return connection


def ask(connection, path):
    """The text of a page."""
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status == 200, (path, answer.status)
    return text


def main(port, requests, seed):
    draw, connection = random.Random(seed), connected(port)
    for _ in range(requests):
        ask(connection, f"{draw.choice(PAGES)}?n={draw.randrange(10_000)}")
    ask(connection, "/stop")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
