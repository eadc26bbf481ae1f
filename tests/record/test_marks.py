"""What threads are off the CPU for: the kernel's account of queueing, and the blocking functions that were called."""

import numpy as np
import pytest

from perflaw.learn.variance.analyse import variance
from perflaw.store.call_trees import read_call_tree
from perflaw.types import TIME
from perflaw.types.call_trees import QUEUED
from tests.conftest import PROGRAMS

WAITS = """
import fcntl
import os
import select
import socket
import subprocess
import threading
import time

lock = threading.Lock()
near, far = socket.socketpair()


def sleep():
    time.sleep(0.2)


def wait_for_lock():
    with lock:
        pass


def write():
    near.sendall(b"1")


def ask():
    far.recv(1)


def read_pipe(end):
    os.read(end, 1)


def wait_for_child():
    subprocess.run(["sleep", "0.2"])


def begin_child():
    # The parent stands still until the child has become the other program (vfork).
    return [subprocess.Popen(["true"]) for _ in range(20)]


def wait_in_shell():
    os.system("sleep 0.2")


def wait_for_file(name):
    with open(name, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def poll(end):
    poller = select.poll()
    poller.register(end, select.POLLIN)
    poller.poll()


def work():
    until = time.process_time() + 0.02
    while time.process_time() < until:
        pass


lock.acquire()
reading, writing = os.pipe()


def later(do):
    threading.Timer(0.2, do).start()


sleep()
later(lock.release)
wait_for_lock()
later(write)
ask()
later(lambda: os.write(writing, b"1"))
read_pipe(reading)
wait_for_child()
for process in begin_child():
    process.wait()
wait_in_shell()
held = open("held", "w")
fcntl.flock(held, fcntl.LOCK_EX)
later(lambda: fcntl.flock(held, fcntl.LOCK_UN))
wait_for_file("held")
later(lambda: os.write(writing, b"1"))
poll(reading)
work()
"""


def marks_of(recording):
    """Function → mark → ns over its sampled invocations, with the whole time off the CPU under ``off``."""
    tree = read_call_tree([recording], TIME)
    found = {}
    for place, node in enumerate(tree.samples.node.tolist()):
        name = tree.components[tree.component[node]].name.rpartition(".")[2]
        mine = found.setdefault(name, {"off": 0.0})
        mine["off"] += tree.samples.time[place] - tree.samples.cpu[place]
        for mark, values in tree.samples.marks.items():
            mine[mark] = mine.get(mark, 0.0) + values[place]
    return found


def test_what_a_thread_waits_for_is_recorded(recorded, tmp_path):
    (tmp_path / "app.py").write_text(WAITS)
    [recording] = recorded("--tracer", "native", "--", "app.py")
    found = marks_of(recording)
    expected = {
        "sleep": "sleep", "wait_for_lock": "lock", "ask": "network", "read_pipe": "io", "wait_for_child": "child",
        "wait_in_shell": "child", "wait_for_file": "lock", "poll": "io",
    }  # fmt: skip
    for name, mark in expected.items():
        mine = found[name]
        # What is not known to be waiting is queueing for a CPU after it, and what subprocess does besides.
        assert mine[mark] > 0.01e9, (name, mine)
        assert mine[mark] == max(value for key, value in mine.items() if key not in ("off", QUEUED)), (name, mine)
    begun = found["begin_child"]
    assert begun["child"] > begun["off"] - sum(value for key, value in begun.items() if key != "off"), begun
    for mine in found.values():
        assert sum(value for key, value in mine.items() if key != "off") <= mine["off"] + 1
    assert all(found["work"].get(mark, 0) == 0 for mark in expected.values())


def test_a_recording_that_cannot_tell_has_no_marks(recorded, tmp_path):
    (tmp_path / "app.py").write_text(WAITS)
    [recording] = recorded("--tracer", "python", "--metric", "cpu", "--", "app.py")
    assert read_call_tree([recording], TIME).samples.marks == {}


DRIVEN = (
    (PROGRAMS / "fake_clock.py").read_text()
    + """
class Pause:
    # Awaited, it lets its driver spend some time before the coroutine goes on.
    def __init__(self, ns):
        self.ns = ns

    def __await__(self):
        yield self.ns


def drive(coroutine):
    try:
        while True:
            advance(coroutine.send(None))
    except StopIteration:
        pass


def number_of(count):
    for number in range(count):
        yield number


"""
)
"""Coroutines on the fake clock, whose latencies do not depend on what else the machine does."""

SERVER = """
async def query(number):
    await Pause(50_000_000 if number % 10 == 9 else 1_000_000)
    advance(2_000)


async def render():
    await Pause(10_000)


async def endpoint(number):
    await query(number)
    await render()


for number in number_of(60):
    drive(endpoint(number))
"""


@pytest.mark.parametrize("tracer", ["native", "python"])
def test_a_coroutine_has_a_latency(recorded, tmp_path, tracer):
    (tmp_path / "app.py").write_text(DRIVEN + SERVER)
    [recording] = recorded("--tracer", tracer, "--clock", "fake", "--", "app.py")
    tree = read_call_tree([recording], TIME)
    component = {one.name: one for one in tree.components}
    found = variance(tree, component=component["app.endpoint"], deadlines=[40e6]).explanation
    latency = found.latency
    assert latency.high
    assert latency.p99 > 50e6 > 40e6 > latency.p50 > 1e6
    assert (latency.awaiting, latency.awaits[0].share) == (pytest.approx(1, abs=0.01), pytest.approx(1, abs=0.01))
    assert latency.awaits[0].component.name == "app.query"
    assert sum(one.share for one in latency.awaits) == pytest.approx(latency.awaiting)
    assert found.deadlines[0].observed == pytest.approx(0.1)
    assert found.mean < latency.mean / 4
    # A generator waits for its consumer: that is no latency of its own.
    assert variance(tree, component=component["app.number_of"]).explanation.latency is None


STREAM = """
async def rows(number):
    for row in range(3):
        await Pause(50_000_000 if number % 10 == 9 else 500_000)
        yield row


async def stream(number):
    async for row in rows(number):
        await Pause(10_000_000)


for number in range(60):
    drive(stream(number))
"""


@pytest.mark.parametrize("tracer", ["native", "python"])
def test_an_async_generator_has_a_latency_without_its_consumer(recorded, tmp_path, tracer):
    (tmp_path / "app.py").write_text(DRIVEN + STREAM)
    [recording] = recorded("--tracer", tracer, "--clock", "fake", "--", "app.py")
    tree = read_call_tree([recording], TIME)
    component = {one.name: one for one in tree.components}
    found = variance(tree, component=component["app.rows"], deadlines=[30e6])
    latency = found.explanation.latency
    assert latency.high
    assert 1.5e6 <= latency.p50 < 2e6 < 60e6 < latency.p99 < 155e6  # its consumer has its values for 30 ms more
    assert latency.awaiting == pytest.approx(1, abs=0.01)
    assert found.explanation.deadlines[0].observed == pytest.approx(0.1)
    awaits = variance(tree, component=component["app.stream"]).explanation.latency.awaits
    [consumer] = [one for one in awaits if one.component and one.component.name == "app.rows"]
    assert consumer.share == pytest.approx(1, abs=0.01)
    assert consumer.mean == pytest.approx(latency.mean, rel=0.01)
    assert {"app.rows", "app.stream"} <= {one.component.name for one in found.latencies}
    assert variance(tree).explanation.latency is not None


ASYNCIO = """
import asyncio


async def query(number):
    await asyncio.sleep(0.05 if number % 10 == 9 else 0.001)


async def endpoint(number):
    await query(number)
    await asyncio.sleep(0)


async def main():
    for number in range(60):
        await endpoint(number)


asyncio.run(main())
"""


@pytest.mark.parametrize("tracer", ["native", "python"])
def test_coroutines_of_asyncio_have_a_latency_by_the_real_clock(recorded, tmp_path, tracer):
    (tmp_path / "app.py").write_text(ASYNCIO)
    [recording] = recorded("--tracer", tracer, "--", "app.py")
    tree = read_call_tree([recording], TIME)
    component = {one.name: one for one in tree.components}
    found = variance(tree, component=component["app.endpoint"], deadlines=[40e6]).explanation
    assert found.latency.p99 > 50e6 and found.latency.p50 > 1e6
    assert found.deadlines[0].observed >= 0.09
    assert "app.query" in {one.component.name for one in found.latency.awaits if one.component}


def test_a_fake_clock_never_waits(recorded, tmp_path):
    (tmp_path / "app.py").write_text("def f(): pass\n\n\nf()\n")
    [recording] = recorded("--tracer", "native", "--clock", "fake", "--", "app.py")
    assert all(np.all(values == 0) for values in read_call_tree([recording], TIME).samples.marks.values())
