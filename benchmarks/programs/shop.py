"""A small shop on SQLite: some functions reach the database, some do not. Usage: shop.py WORKLOAD SEED.

Every statement goes through ``Database.fetch`` or ``write``, where ``PERFLAW_DELAY_MS`` puts a delay in front of the
database as a network between would. Workloads: ``browse`` reads much, ``order`` writes more and has other sizes of baskets.
"""

import os
import random
import sqlite3
import sys
import time

DELAY = float(os.environ.get("PERFLAW_DELAY_MS", "0")) / 1000


class Database:
    """A connection in memory."""

    def __init__(self, items):
        self.connection = sqlite3.connect(":memory:")
        self.connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price INTEGER, stock INTEGER)")
        self.connection.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY, item INTEGER, pieces INTEGER)")
        rows = [(number, f"item {number % 97} of {number}", number % 50 + 1, 10**6) for number in range(items)]
        self.connection.executemany("INSERT INTO item VALUES (?, ?, ?, ?)", rows)

    def fetch(self, sql, values=()):
        """The rows of a query."""
        if DELAY:
            time.sleep(DELAY)
        return self.connection.execute(sql, values).fetchall()

    def write(self, sql, values=()):
        """Change something."""
        if DELAY:
            time.sleep(DELAY)
        self.connection.execute(sql, values)


def price_of(db, item):
    return db.fetch("SELECT price FROM item WHERE id = ?", (item,))[0][0]


def search(db, word, limit):
    return db.fetch("SELECT id, name FROM item WHERE name LIKE ? LIMIT ?", (f"%{word}%", limit))


def take(db, item, pieces):
    db.write("UPDATE item SET stock = stock - ? WHERE id = ?", (pieces, item))
    db.write("INSERT INTO sale (item, pieces) VALUES (?, ?)", (item, pieces))


def sum_up(db, basket):
    return sum(price_of(db, item) * pieces for item, pieces in basket)


def order(db, basket):
    for item, pieces in basket:
        take(db, item, pieces)
    return receipt(basket, sum_up(db, basket))


def browse(db, words):
    return page([row for word in words for row in search(db, word, 20)])


def page(rows):
    return "\n".join(markup(str(name)) for _, name in rows)


def markup(text):
    return "<li>" + "".join("&amp;" if c == "&" else c for c in text * 5) + "</li>"


def receipt(basket, total):
    lines = [line(item, pieces) for item, pieces in basket]
    return "\n".join([*lines, f"total {total}", checksum("".join(lines))])


def line(item, pieces):
    return f"{item:>8} x {pieces:>3}".ljust(60, ".")


def checksum(text):
    value = 0
    for _ in range(5):
        for c in text:
            value = (value * 31 + ord(c)) % 1_000_003
    return str(value)


def recommend(items):
    scores = [(item * 2_654_435_761 % 1_000, item) for item in items]
    return [item for _, item in sorted(scores)[:5]]


def main(workload, seed):
    rng = random.Random(seed)
    db = Database(2_000)
    longest, share = (8, 0.3) if workload == "browse" else (6, 0.6)
    for _ in range(60):
        size = rng.randint(1, longest)
        if rng.random() < share:
            order(db, [(rng.randrange(2_000), rng.randint(1, 5)) for _ in range(size)])
        else:
            browse(db, [f"item {rng.randrange(97)} " for _ in range(size)])
        recommend([rng.randrange(2_000) for _ in range(size * 40)])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
