"""Loads the service with clients that each ask one question after the other; a reading every tenth of a second."""

from __future__ import annotations

import argparse
import json
import socket
import threading
import time


class Clients:
    """What has been answered so far."""

    def __init__(self, port: int) -> None:
        self.port, self.seconds, self.stop = port, list[float](), False

    def ask(self) -> None:
        """One client: questions until told to stop. A list's append needs no lock."""
        while not self.stop:
            start = time.monotonic()
            with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
                connection.sendall(b"GET /quote HTTP/1.0\r\n\r\n")
                while connection.recv(4096):
                    pass
            self.seconds.append(time.monotonic() - start)


def p95_ms(seconds: list[float]) -> float:
    """In milliseconds; seconds holds at least one."""
    return 1000 * sorted(seconds)[int(0.95 * (len(seconds) - 1))]


def main() -> None:
    """Start the clients, tell what they see, stop them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=7485)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--clients", type=int, default=24)
    options = parser.parse_args()
    clients = Clients(options.port)
    threads = [threading.Thread(target=clients.ask) for _ in range(options.clients)]
    for thread in threads:
        thread.start()
    start = before = time.monotonic()
    told = 0
    while before - start < options.seconds:
        time.sleep(0.1)
        now, n = time.monotonic(), len(clients.seconds)
        if n > told:
            rate, slow = (n - told) / (now - before), p95_ms(clients.seconds[told:n])
            print(
                json.dumps({"at_s": round(now - start, 4), "requests_per_s": rate, "p95_ms": slow, "n": n - told}),
                flush=True,
            )
        before, told = now, n
    clients.stop = True
    took = time.monotonic() - start
    print(json.dumps({"result": {"requests_per_s": len(clients.seconds) / took, "p95_ms": p95_ms(clients.seconds)}}))
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
