"""Asks memcached until standard input ends: cache_rate.py PORT SEED. Values are small and large, and some keys are unknown."""

import random
import socket
import sys
import threading
import time

KEYS, LARGE = 2_000, 60_000


def connected(port):
    end = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 60)
        except OSError:  # it does not listen yet
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def main(port, seed):
    draw, over = random.Random(int(seed)), threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    with connected(int(port)) as connection, connection.makefile("rwb") as stream:
        while not over.is_set():
            kind, key = draw.random(), f"key{draw.randrange(KEYS)}"
            if kind < 0.2:
                value = b"v" * (LARGE if draw.random() < 0.1 else draw.randrange(1, 500))
                stream.write(f"set {key} 0 60 {len(value)}\r\n".encode() + value + b"\r\n")
                end = b"STORED\r\n"
            elif kind < 0.3:
                stream.write(b"get " + " ".join(f"key{draw.randrange(KEYS)}" for _ in range(20)).encode() + b"\r\n")
                end = b"END\r\n"
            elif kind < 0.31:
                stream.write(b"stats\r\n")
                end = b"END\r\n"
            else:
                stream.write(f"get {key}\r\n".encode())
                end = b"END\r\n"
            stream.flush()
            while (line := stream.readline()) != end:
                if not line or line.startswith((b"ERROR", b"CLIENT_ERROR")):
                    raise SystemExit(f"memcached says {line!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
