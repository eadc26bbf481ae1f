"""However a program ends, it ends as it would, and what it did until then is kept."""

import pytest

from tests.conftest import first

pytestmark = pytest.mark.interpreter

HEAD = "import atexit, ctypes, os, signal, sys, threading, time\ndef step(): pass\nfor _ in range(1000): step()\n"
ENDINGS = {
    "exit 7": ("def end(): sys.exit(7)\n", 7, "exit status 7"),
    "exit message": ("def end(): sys.exit('why')\n", 1, "exit status 1"),
    "os._exit": ("def end(): os._exit(9)\n", 9, "exit status 9"),
    "exception": ("def end(): raise ValueError('boom')\n", 1, "exit status 1"),
    "SIGTERM": ("def end(): os.kill(os.getpid(), signal.SIGTERM)\n", 143, "killed by SIGTERM"),
    "SIGINT": ("def end(): signal.raise_signal(signal.SIGINT)\n", 130, "killed by SIGINT"),
    "SIGKILL": ("def end(): os.kill(os.getpid(), signal.SIGKILL)\n", 137, "killed by SIGKILL"),
    "SIGSEGV": ("def end(): ctypes.string_at(0)\n", 139, "killed by SIGSEGV"),
    "abort": ("def end(): os.abort()\n", 134, "killed by SIGABRT"),
    "main thread first": (
        "def end(): threading.Thread(target=lambda: (time.sleep(0.05), step(), print('late'))).start()\n", 0, "normally",
    ),
}  # fmt: skip
SHUTDOWN = """
import atexit, sys, weakref
class Noisy:
    def __del__(self): tell('del')
def tell(what, out=sys.stdout): out.write(what + chr(10))
held, circle = Noisy(), [Noisy()]
circle.append(circle)
atexit.register(tell, 'atexit')
weakref.finalize(held, tell, 'finalized')
sys.kept = Noisy()
def turns():
    try: yield 1
    finally: tell('closed')
waiting = turns(); next(waiting)
"""
HANDLERS = """
import signal
count = x = 0
def handler(number, frame):
    global count
    count += 1; inner()
def inner(): pass
signal.signal(signal.SIGALRM, handler); signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
def work(x): return x + 1
while count < 50: x = work(x)
signal.setitimer(signal.ITIMER_REAL, 0)
open('counts', 'w').write(f'{count} {x}')
"""


@pytest.mark.parametrize("name", first(6, ENDINGS))
def test_endings(both, name):
    program, status, ended = ENDINGS[name]
    done = both(f"{HEAD}{program}end()\n")
    assert done.status == status
    assert done.recordings[0].run.ended == ended
    assert done.calls()["step"] >= 1000


def test_what_runs_while_the_interpreter_shuts_down(both):
    done = both(SHUTDOWN)
    assert done.stdout.startswith("finalized\natexit\n")
    assert done.calls()["tell"] >= 2


def test_signal_handlers_run_in_between(both, tmp_path):
    calls = both(HANDLERS).calls()
    count, x = map(int, (tmp_path / "counts").read_text().split())
    assert (calls["handler"], calls["inner"], calls["work"]) == (count, count, x)
    assert count >= 50
