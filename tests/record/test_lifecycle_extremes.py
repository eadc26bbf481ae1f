"""Programs at the limits of the interpreter, and such that take away what a careless recorder would stand on."""

import sys

import pytest

from tests.conftest import first

pytestmark = pytest.mark.interpreter

TAKES_AWAY = """
import builtins, gc, os, sys, threading
def f(n): return n
f(1)
os.environ.clear(); f(2)
gc.disable(); f(3)
sys.setswitchinterval(1e-5); f(4)
os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); f(5)
os.closerange(3, 4096)
def fresh(n): return n
fresh(1); f(6)
thread = threading.Thread(target=f, args=(7,)); thread.start(); thread.join()
out = sys.stdout
sys.modules.clear(); f(8)
del builtins.len, builtins.print, builtins.__import__
f(9)
def fresher(a, *b, c=1, **d): return a
fresher(2)
out.write('still here\\n')
"""
FILES = """
import os, sys
print(sorted(name for name in sys.modules if 'perflaw' in name and name != '_perflaw_native'))
print(os.listdir('/proc/self/fd'), os.open('file', os.O_CREAT | os.O_RDWR))
def f(): pass
os.closerange(3, 4096)
for _ in range(50_000): f()
print(os.open('file', os.O_RDWR), os.read(3, 9))
"""
DEPTHS = """
import sys, threading
def f(n):
    global deepest
    deepest = n
    f(n + 1)
def attempt(function):
    try: function(0)
    except RecursionError as error: print(deepest, error)
def through_c(n):
    global deepest
    deepest = n
    return sorted([1], key=lambda x: through_c(n + 1))
def turns(n):
    global deepest
    deepest = n
    yield from turns(n + 1)
attempt(f)
attempt(lambda n: list(turns(n)))
thread = threading.Thread(target=attempt, args=(f,)); thread.start(); thread.join()
sys.setrecursionlimit(600)
attempt(through_c)
attempt(f)
"""
DEEP = """
import sys, threading
sys.setrecursionlimit(300_000)
def sink(n): return 0 if n == 0 else 1 + sink(n - 1)
print(sink(200_000))
thread = threading.Thread(target=lambda: print(sink(200_000))); thread.start(); thread.join()
"""
SUBINTERPRETERS = """
import threading
try: import _xxsubinterpreters as interpreters
except ImportError: import _interpreters as interpreters
def f(): pass
CODE = '''
def g(n): return n and g(n - 1)
for _ in range(200): g(5)
def turns(): yield 1
list(turns())
import json
print("inside", flush=True)
'''
def run():
    made = interpreters.create()
    interpreters.run_string(made, CODE)
    interpreters.destroy(made)
    f()
run()
for _ in range(2):
    thread = threading.Thread(target=run); thread.start(); thread.join()
"""
DEBUG_MODE = """
import asyncio, gc
async def one(n): await asyncio.sleep(0); return n
async def main():
    asyncio.get_running_loop().slow_callback_duration = 60
    print(await asyncio.gather(*(one(i) for i in range(20))))
asyncio.run(main(), debug=True)
async def never(): pass
never()
gc.collect()
"""
THROWN = """
def turns(): yield 1
turns().close()
async def never(): pass
never().close()
def other(): yield 2
for error in (KeyError, ValueError('x')):
    try: other().throw(error)
    except Exception as caught: print(repr(caught), caught.__traceback__.tb_next.tb_lineno)
"""
FRAMES = """
import sys, traceback
def walk(frame):
    while frame: yield frame.f_code.co_name, frame.f_lineno; frame = frame.f_back
def f(): return list(walk(sys._getframe()))
print(f(), [f() for _ in range(1)], sys.getprofile(), sys.gettrace())
def g(): 1 / 0
try: g()
except ZeroDivisionError: traceback.print_exc()
"""


def test_nothing_of_ours_can_be_taken_away(both):
    assert both(TAKES_AWAY).calls() == {"<module>": 1, "f": 9, "fresh": 1, "fresher": 1}


def test_files_and_modules_are_the_programs_own(both):
    done = both(FILES)
    assert done.stdout.startswith("[]\n")
    assert done.calls()["f"] == 50_000


def test_recursion_ends_at_the_same_depth(both):
    both(DEPTHS)


if sys.version_info < (3, 12):

    @pytest.mark.slow
    def test_recursion_as_deep_as_untraced(both):
        """3.11 takes no C stack for a call, frame evaluation does; later versions bound it by themselves."""
        assert both(DEEP).calls()["sink"] == 400_002


def test_subinterpreters_are_left_alone(both):
    done = both(SUBINTERPRETERS)
    assert done.calls() == {"<module>": 1, "run": 3, "f": 3}
    assert done.recordings[0].run.lost.subinterpreters == 3


def test_subinterpreters_are_told_in_pure_python(both):
    assert both(SUBINTERPRETERS, tracer="python").recordings[0].run.lost.subinterpreters == 1


@pytest.mark.parametrize("program", first(3, [DEBUG_MODE, THROWN, FRAMES]), ids=["debug mode", "thrown", "frames"])
@pytest.mark.parametrize("python", [(), ("-X", "dev")], ids=["plain", "dev"])
def test_nothing_shows(both, program, python):
    both(program, python=python)
