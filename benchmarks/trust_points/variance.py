"""Points of variance."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trust_points import Answer, Point, cpu_s, perflaw, write_program

Document = dict[str, Any]
Judge = Callable[[Document], Answer]


def _ask(source: str, *arguments: str, judge: Judge) -> Callable[[Path, int], Answer]:
    """Record a program and judge the document of ``perflaw variance`` with these arguments."""

    def ask(folder: Path, number: int) -> Answer:
        return judge(_asked(folder, source.replace("SEED", str(number)), *arguments))

    return ask


def _asked(folder: Path, source: str, *arguments: str) -> Document:
    """The document of ``perflaw variance`` of a recording of the program."""
    program = write_program(folder, source)
    perflaw(folder, "record", "--", program.name)
    document: Document = json.loads(perflaw(folder, "variance", *arguments, "--json"))
    return document


# ---- 1. Rare slow calls are not noise.


def _varies(source: str = "", least_cov: float = 0.4) -> Judge:
    """The function varies highly; most of it comes from ``source`` (its own code where that is empty)."""

    def judge(document: Document) -> Answer:
        function = document["function"]
        first = document["budget"][0] if document["budget"] else {"component": "", "path": []}
        where = [step["component"] for step in first["path"]] or [first["component"]]
        told = f"high {function['high']}, mean {function['mean']:.0f}, CoV {function['cov']:.2g}, most in {where}"
        right = function["high"] and function["cov"] >= least_cov and function["mean"] > 0
        return Answer(told, bool(right and (not source or any(source in name for name in where))))

    return judge


def _steady(document: Document) -> Answer:
    tasks = [node for one in document["patterns"] for node in one["nodes"] if node["type"] == "Task"]
    return Answer(", ".join(f"{node['component']} CoV {node['cov']:.2g}" for node in tasks), not tasks)


SORTS = """
import random

draw = random.Random(SEED)
numbers = [draw.random() for _ in range(20_000)]


def handle(number):
    if number % 300 == 299:
        sorted(numbers)
    return sum(range(300))


for number in range(3000):
    handle(number)
"""
FLUSHES = """
import random

draw = random.Random(SEED)
lines = []


def log(number):
    lines.append(f"{number}: {draw.random()}")
    if len(lines) >= 200:
        "".join(sorted(lines * 5))
        lines.clear()


for number in range(6000):
    log(number)
"""
GROWS = """
words = {}


def put(number):
    words[number] = number


for number in range(60_000):
    put(number)
"""
CHECKPOINTS = """
import sqlite3

database = sqlite3.connect("data.db")
database.execute("pragma journal_mode=wal")
database.execute("pragma synchronous=off")
database.execute("create table item (id integer primary key, text text)")


def store(number):
    with database:
        database.execute("insert into item values (?, ?)", (number, "x" * 900))


for number in range(4000):
    store(number)
"""
PLANTED = """
import random

draw = random.Random(SEED)


def left(heavy):
    return sum(range(8000 if heavy else 300))


def right(number):
    return sum(range(300 + number % 7))


def handle(number, heavy):
    left(heavy)
    right(number)


for number in range(3000):
    handle(number, draw.random() < 0.01)
"""
ALIKE = """
def parse(number):
    return sum(range(300 + number % 7))


def render(number):
    return "".join(map(str, range(60)))


def handle(number):
    parse(number)
    render(number)


for number in range(4000):
    handle(number)
"""

ALONE = """
def work(number):
    return sum(range(300))


for number in range(4000):
    work(number)
"""
RARELY = """
import random

draw = random.Random(SEED)


def work(number):
    return sum(range(6000 if draw.random() < 0.005 else 300))


for number in range(4000):
    work(number)
"""
ITEMS = """
def items():
    for number in range(3000):
        yield number


def handle(number):
    return sum(items())


for number in range(200):
    handle(number)
"""
FEW_ITEMS = ITEMS.replace("3000", "60").replace("200", "3000")

# ---- 2. Waiting is not interference.


def _waits(reason: str) -> Judge:
    """The function's time varies because it waits, mostly for ``reason``."""

    def judge(document: Document) -> Answer:
        function = document["function"]
        reasons = {name: share for name, share in function["off_for"].items() if name != "queued"}
        told = f"{function['cause']}, {function['off_for']}"
        return Answer(told, function["cause"] == "waiting" and max(reasons, key=lambda name: reasons[name]) == reason)

    return judge


def _no_waiting(document: Document) -> Answer:
    nodes = [node for one in document["patterns"] for node in one["nodes"] if node["type"] == "Task"]
    told = ", ".join(f"{node['component']} {node['cause']} {node['off_for']}" for node in nodes)
    return Answer(told, all(node["cause"] != "waiting" for node in nodes))


WAITS = """
import os
import random
import socket
import subprocess
import threading
import time

draw = random.Random(SEED)
lock = threading.Lock()
near, far = socket.socketpair()
reading, writing = os.pipe()


def hold():
    for _ in range(20):
        with lock:
            time.sleep(0.03)
        time.sleep(0.01)


def answer():
    while far.recv(1):
        if draw.random() < 0.2:
            time.sleep(0.02)
        far.sendall(b"1")


def spend():
    return sum(range(2000))


def sleep(slow):
    if slow:
        time.sleep(0.03)
    spend()


def locked():
    with lock:
        spend()


def ask():
    near.sendall(b"1")
    near.recv(1)
    spend()


def child(slow):
    if slow:
        subprocess.run(["sleep", "0.04"])
    spend()


def feed():
    for _ in range(100):
        if draw.random() < 0.1:
            time.sleep(0.03)
        os.write(writing, b"1")


def load():
    os.read(reading, 1)
    spend()


threading.Thread(target=hold).start()
threading.Thread(target=answer, daemon=True).start()
for number in range(150):
    sleep(draw.random() < 0.1)
    locked()
    ask()
for number in range(100):
    child(draw.random() < 0.1)
threading.Thread(target=feed).start()
for _ in range(100):
    load()
"""

# ---- 3. Coroutines have latency.


def _latency(folder: Path, source: str, function: str, limit_ms: int) -> tuple[Document, str, bool]:
    """The latency of a function, what is told of it, and whether that is what the program itself measures.

    On a busy machine coroutines also wait for a CPU, which is latency; how long, only the program knows.
    """
    document = _asked(folder, source, function, "--deadline", f"{limit_ms}ms")
    truth = sorted(json.loads((folder / "latencies.json").read_text()))
    beyond = sum(one > limit_ms * 1e6 for one in truth) / len(truth)
    latency, [deadline] = document["function"]["latency"], document["function"]["deadlines"]
    p50, p99, tail = latency["p50"], latency["p99"], truth[-1 - len(truth) // 50 :]
    told = f"p50 {p50 / 1e6:.1f} ms, p99 {p99 / 1e6:.0f} ms, {deadline['observed']:.1%} beyond {limit_ms} ms"
    truly = f"p50 {statistics.median(truth) / 1e6:.1f}, p99 {tail[0] / 1e6:.0f} to {tail[-1] / 1e6:.0f}, {beyond:.1%}"
    right = latency["high"] and deadline["low"] <= beyond <= deadline["high"]
    right = right and abs(p50 / statistics.median(truth) - 1) < 0.2 and 0.9 * tail[0] < p99 < 1.1 * tail[-1]
    return latency, f"{told}, truly {truly}", bool(right)


def _latency_of_awaits(folder: Path, number: int) -> Answer:
    """One call in 20 takes 60 ms, in what it awaits of ``query``."""
    latency, told, right = _latency(folder, ENDPOINT.replace("SEED", str(number)), "prog.endpoint", 50)
    first = latency["awaits"][0]
    right = right and first["component"] == "prog.query" and first["share"] > 0.7
    return Answer(f"{told}, most in {first['component']}", right)


ENDPOINT = """
import asyncio
import json
import random
import time

slow = [True] * 20 + [False] * 380
random.Random(SEED).shuffle(slow)


async def query(is_slow):
    await asyncio.sleep(0.06 if is_slow else 0.001)
    return sum(range(200))


async def render():
    await asyncio.sleep(0.001)
    return sum(range(500))


async def endpoint(is_slow):
    await query(is_slow)
    return await render()


async def measured(is_slow):
    begin = time.perf_counter_ns()
    await endpoint(is_slow)
    return time.perf_counter_ns() - begin


async def main():
    latencies = []
    for first in range(0, 400, 10):
        latencies += await asyncio.gather(*(measured(one) for one in slow[first : first + 10]))
    with open("latencies.json", "w") as file:
        json.dump(latencies, file)


asyncio.run(main())
"""


def _latency_without_consumer(folder: Path, number: int) -> Answer:
    """One generator in 10 takes 150 ms for its values; its consumer has them for 30 ms more, which is not its latency."""
    _, told, right = _latency(folder, STREAM.replace("SEED", str(number)), "prog.rows", 28)
    return Answer(told, right)


STREAM = """
import asyncio
import json
import random
import time

slow = [True] * 6 + [False] * 54
random.Random(SEED).shuffle(slow)


async def rows(is_slow):
    for row in range(3):
        await asyncio.sleep(0.05 if is_slow else 0.0005)
        yield row


async def stream(is_slow):
    begin, consumed = time.perf_counter_ns(), 0
    async for row in rows(is_slow):
        had = time.perf_counter_ns()
        await asyncio.sleep(0.01)
        consumed += time.perf_counter_ns() - had
    return time.perf_counter_ns() - begin - consumed


async def main():
    with open("latencies.json", "w") as file:
        json.dump([await stream(is_slow) for is_slow in slow], file)


asyncio.run(main())
"""

# ---- 4. Ties.


def _flush_beyond(document: Document) -> Answer:
    """One call in 200 makes 3,601 calls more than the others, which all make 23."""
    [bound] = [one for one in document["function"]["bounds"] if one["probability"] == 0.01]
    [deadline] = document["function"]["deadlines"]
    row = document["budget"][0]
    more = row["tail"] - row["median"]
    told = (
        f"1 % beyond {bound['observed']}, {deadline['observed']:.3g} beyond 23, {more:.0f} more in {row['component']}"
    )
    right = bound["observed"] == 23 and abs(deadline["observed"] - 0.005) < 0.0002 and 3500 < more < 3700
    return Answer(told, right)


TIES = """
import random

offset = random.Random(SEED).randrange(200)


def item(number):
    return number


def flush():
    for number in range(3600):
        item(number)


def handle(number):
    for one in range(22):
        item(one)
    if number % 200 == offset:
        flush()


for number in range(3000):
    handle(number)
"""

# ---- 5. Sources below sources, few calls, and the machine.


def _names_page(document: Document) -> Answer:
    """A page that is read twelve calls below holds a part of the variance, and so does the call in between."""
    sources = {one["path"][-1]["component"]: one["cf_net"] for one in document["function"]["sources"]}
    told = ", ".join(f"{name} {share:.0%}" for name, share in sources.items())
    shares = {name.rpartition(".")[2]: share for name, share in sources.items()}
    right = shares.get("page", 0) > 0.1 and shares.get("level5", 0) > 0.3 and sum(shares.values()) < 1.1
    return Answer(told, right)


DEEP = """
import random

draw = random.Random(SEED)


def page():
    return sum(range(6000))


def level1(slow, missing):
    level2(slow, missing)


def level2(slow, missing):
    level3(slow, missing)


def level3(slow, missing):
    level4(slow, missing)


def level4(slow, missing):
    level5(slow, missing)


def level5(slow, missing):
    level6(missing)
    return sum(range(12_000 if slow else 400))


def level6(missing):
    level7(missing)


def level7(missing):
    level8(missing)


def level8(missing):
    level9(missing)


def level9(missing):
    if missing:
        page()


for number in range(2000):
    level1(draw.random() < 0.2, draw.random() < 0.2)
"""


def _unlabelled(document: Document) -> Answer:
    """A function of 29 calls is no Task, though its cost varies."""
    names = [node["component"] for one in document["patterns"] for node in one["nodes"] if node["type"] != "Contrast"]
    few = document["counts"]["too_few"]
    return Answer(f"{names}, {few} too few", "prog.seldom" not in names and few >= 1)


SELDOM = """
import random

draw = random.Random(SEED)


def seldom(number):
    return sum(range(60_000 if number % 3 else 300))


for number in range(29):
    seldom(number)
"""


def _slowdown(folder: Path, number: int) -> Answer:
    """What is told of a server that waits most of the time, against its CPU time with and without the tracer."""
    program = write_program(folder, SERVER)
    # By turns, so that a change of the machine's speed hits both.
    ratios, told = [], []
    for turn in range(5):
        plain = cpu_s([sys.executable, program.name], folder)
        perflaw(folder, "record", "-e", f"e{turn}", "--", program.name)
        [run] = json.loads(perflaw(folder, "runs", "-e", f"e{turn}", "--json"))["runs"]
        ratios.append((run["machine"]["user_ns"] + run["machine"]["system_ns"]) / 1e9 / plain)
        told.append(run["slowdown"])
    true, mean = statistics.median(ratios), statistics.median(told)
    return Answer(f"{mean:.2f}x told, {true:.2f}x measured", abs(mean - true) < 0.25 * true)


SERVER = """
import time


def token(number):
    return number * number


def answer():
    total = 0
    for number in range(4000):
        total += token(number)
    return total


for _ in range(100):
    answer()
    time.sleep(0.01)
"""

POINTS: tuple[Point, ...] = (
    Point(1, "one call in 300 sorts in C", _ask(SORTS, "handle", "--metric", "cpu", judge=_varies(least_cov=2))),
    Point(1, "a flush in 0.5 % of calls", _ask(FLUSHES, "log", "--metric", "cpu", judge=_varies())),
    Point(1, "a dict grows", _ask(GROWS, "put", "--metric", "cpu", judge=_varies(least_cov=2))),
    Point(1, "SQLite checkpoints", _ask(CHECKPOINTS, "store", "--metric", "cpu", judge=_varies())),
    Point(1, "a cause in 1 % of calls", _ask(PLANTED, "handle", "--metric", "cpu", judge=_varies("left"))),
    Point(
        1, "a cause in 0.5 % of calls of the only function", _ask(RARELY, "work", "--metric", "cpu", judge=_varies())
    ),
    Point(1, "steady functions", _ask(ALIKE, "--metric", "cpu", judge=_steady)),
    Point(2, "sleeps", _ask(WAITS, "prog.sleep", judge=_waits("sleep"))),
    Point(2, "waits for a lock", _ask(WAITS, "prog.locked", judge=_waits("lock"))),
    Point(2, "waits for the network", _ask(WAITS, "prog.ask", judge=_waits("network"))),
    Point(2, "waits for a child process", _ask(WAITS, "prog.child", judge=_waits("child"))),
    Point(2, "waits for a pipe", _ask(WAITS, "prog.load", judge=_waits("io"))),
    Point(2, "does not wait", _ask(ALIKE, judge=_no_waiting)),
    Point(3, "an endpoint awaits", _latency_of_awaits),
    Point(3, "an async generator awaits, and its consumer does", _latency_without_consumer),
    Point(
        4,
        "0.5 % of calls at 3,624",
        _ask(
            TIES, "prog.handle", "--metric", "events", "--deadline", "23", "--probability", "0.01", judge=_flush_beyond
        ),
    ),
    Point(5, "the only function does constant work", _ask(ALONE, "--metric", "cpu", judge=_steady)),
    Point(5, "3,000 items of a generator in each call", _ask(ITEMS, "--metric", "cpu", judge=_steady)),
    Point(5, "60 items of a generator in each call", _ask(FEW_ITEMS, "--metric", "cpu", judge=_steady)),
    Point(5, "sources below a source", _ask(DEEP, "prog.level1", "--metric", "cpu", judge=_names_page)),
    Point(5, "a function of 29 calls varies, and has no label", _ask(SELDOM, "--metric", "cpu", judge=_unlabelled)),
    Point(5, "the tracer slows a waiting server down", _slowdown),
)
