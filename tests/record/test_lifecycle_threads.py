"""Threads of every kind: each call is counted, and none of them notices."""

import pytest

from tests.conftest import first

pytestmark = pytest.mark.interpreter

MANY = """
import _thread, threading
def work(n): return n
def body(n):
    for i in range(n): work(i)
for _ in range(150):
    thread = threading.Thread(target=body, args=(5,)); thread.start(); thread.join()
left = threading.Semaphore(0)
def raw(): body(3); left.release()
for _ in range(50): _thread.start_new_thread(raw, ())
for _ in range(50): left.acquire()
"""
TOGETHER = """
import threading
from concurrent.futures import ThreadPoolExecutor
def work(n): return n
def body(n):
    for i in range(n): work(i)
threads = [threading.Thread(target=body, args=(1_000,)) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
with ThreadPoolExecutor(4) as pool: print(sum(pool.map(work, range(1_000))))
"""
DAEMONS = """
import threading, time
turns = {}
def step(): turns[threading.get_ident()] = turns.get(threading.get_ident(), 0) + 1
def spin():
    while True: step(); sum(range(1000))
def nap():
    while True: time.sleep(0.001); step()
def idle(): turns['idle'] = 5; threading.Event().wait()
for target in (spin, nap, nap, idle): threading.Thread(target=target, daemon=True).start()
while len(turns) < 4 or min(turns.values()) < 5: time.sleep(0.01)
print('bye')
"""
DEEP_IN_A_SMALL_STACK = """
import sys, threading
threading.stack_size(256 * 1024)
sys.setrecursionlimit(30_000)
def sink(n): return 0 if n == 0 else 1 + sink(n - 1)
def run(): print(sink(20_000))
thread = threading.Thread(target=run); thread.start(); thread.join()
"""

HANDED_ON = """
import threading
def steps(n):
    for i in range(n): yield i
def begin(made): made.append(steps(9)); next(made[0])
def finish(made): list(made[0])
for turn in range(200):
    made = []
    if turn % 2:
        thread = threading.Thread(target=begin, args=(made,)); thread.start(); thread.join(); finish(made)
    else:
        begin(made); thread = threading.Thread(target=finish, args=(made,)); thread.start(); thread.join()
shared = steps(4_000)
lock = threading.Lock()
def some():
    for _ in range(1_000):
        with lock: next(shared)
threads = [threading.Thread(target=some) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(list(shared))
"""


def test_many_short_threads_share_a_few_rings(both):
    done = both(MANY)
    assert done.calls() == {"<module>": 1, "work": 900, "body": 200, "raw": 50}
    assert done.recordings[0].run.lost.open_invocations == 0


@pytest.mark.parametrize("tracer", first(1, ["native", "python"]))
def test_threads_side_by_side(both, tracer):
    calls = both(TOGETHER, tracer=tracer).calls()
    assert (calls["work"], calls["body"]) == (9_000, 8)


@pytest.mark.parametrize("tracer", first(1, ["native", "python"]))
def test_generators_that_go_on_in_another_thread(both, tracer):
    done = both(HANDED_ON, tracer=tracer)
    assert done.calls() | {"some": 4} == done.calls()
    assert (done.calls()["steps"], done.calls()["begin"], done.calls()["finish"]) == (201, 200, 200)
    assert done.recordings[0].run.lost.open_invocations == 0


@pytest.mark.parametrize("tracer", ["native", "python"])
def test_daemons_that_the_interpreter_leaves_behind(both, tracer):
    done = both(DAEMONS, tracer=tracer)
    assert done.calls()["step"] > 10
    assert {name: count for name, count in done.open().items() if name in ("spin", "nap", "idle")} == {
        "spin": 1,
        "nap": 2,
        "idle": 1,
    }


def test_deep_recursion_on_a_small_stack(both):
    assert both(DEEP_IN_A_SMALL_STACK).calls()["sink"] == 20_001
