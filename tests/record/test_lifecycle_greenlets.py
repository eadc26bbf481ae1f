"""Greenlets: several stacks in one thread, each with its own open calls, and waiting is no cost of the others."""

import pytest

from tests.conftest import PROGRAMS, costs_of, first
from tests.record.recording import record_fake

pytestmark = pytest.mark.interpreter

CLOCKED = """
import greenlet
from fake_clock import advance
def first():
    advance(1); second_one.switch(); advance(10); second_one.switch()
def second():
    advance(100); wait(); advance(1000)
def wait():
    advance(5); first_one.switch(); advance(7)
def main():
    first_one.switch(); advance(10000); first_one.switch()
first_one, second_one = greenlet.greenlet(first), greenlet.greenlet(second)
main()
"""
MANY = """
import greenlet
def step(n): first.switch()
def body(n):
    for i in range(5): step(n)
first = greenlet.getcurrent()
alive = [greenlet.greenlet(body) for _ in range(1000)]
while alive:
    for one in alive: one.switch(1)
    alive = [one for one in alive if not one.dead]
"""
ENDED_EARLY = """
import gc, greenlet
def cleanup(): pass
def body():
    try: first.switch()
    finally: cleanup()
def turns():
    for i in range(3): first.switch(); yield i
first = greenlet.getcurrent()
for i in range(50):
    one = greenlet.greenlet(body); one.switch()
    if i % 2: one.throw()
    del one
gc.collect()
both = [greenlet.greenlet(lambda: list(turns())) for _ in range(2)]
while not all([one.dead for one in both]):
    for one in both: one.dead or one.switch()
"""
IN_THREADS = """
import greenlet, threading
def fails(): raise ValueError('x')
def run():
    for i in range(100):
        try: greenlet.greenlet(fails).switch()
        except ValueError: pass
threads = [threading.Thread(target=run) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
OWN_TRACE = """
import greenlet
seen = []
greenlet.settrace(lambda event, arguments: seen.append(event))
def work(): pass
greenlet.greenlet(work).switch()
print(seen)
"""


def test_waiting_is_no_cost_of_the_others(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(PROGRAMS))
    (tmp_path / "app.py").write_text(CLOCKED)
    monkeypatch.chdir(tmp_path)
    [recording] = record_fake(tmp_path, "native", ["app.py"])
    costs = {name.partition(".")[2]: cost for name, cost in costs_of(recording).items()}
    assert costs["first"] == (1, 0, 11, 11)
    assert costs["second"] == (1, 0, 1112, 1100)
    assert costs["wait"] == (1, 0, 12, 12)
    assert costs["main"] == (1, 0, 10000, 10000)


@pytest.mark.parametrize(
    ("program", "calls"),
    first(
        2,
        [
            (MANY, {"body": 1000, "step": 5000}),
            (ENDED_EARLY, {"body": 50, "cleanup": 50, "turns": 2}),
            (IN_THREADS, {"fails": 400, "run": 4}),
            (OWN_TRACE, {"work": 1}),
        ],
    ),
    ids=["many", "ended early", "in threads", "trace function of its own"],
)
def test_every_call_is_counted(both, program, calls):
    done = both(program)
    assert {name: count for name, count in done.calls().items() if name in calls} == calls
    assert not done.open()
