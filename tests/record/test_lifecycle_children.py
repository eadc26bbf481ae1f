"""Children: forked in the middle of calls, of multiprocessing, of subprocess in all its ways, and exec."""

import pytest

from tests.conftest import first

pytestmark = pytest.mark.interpreter

FORK = """
import os
def work(i): return i
def outer():
    work(1)
    pid = os.fork()
    for i in range(5 if pid else 9): work(i)
    if pid: os.waitpid(pid, 0)
    return pid
pid = outer()
work(2)
if not pid: print('child', flush=True); os._exit(3)
print('parent')
"""
FORK_AMONG_THREADS = """
import os, threading, time, warnings
warnings.simplefilter('ignore')
def work(i): return i
stop = False
def busy():
    while not stop: work(1); time.sleep(0.0001)
threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads: thread.start()
for _ in range(5):
    pid = os.fork()
    if not pid:
        for i in range(7): work(i)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
stop = True
for thread in threads: thread.join()
"""
FORK_WITHIN_A_THROW = """
import os
def turns():
    try: yield 1
    except KeyError: print('got', flush=True); yield 2
made = turns(); next(made)
pid = os.fork()
if not pid:
    print(made.throw(KeyError('a')), flush=True)
    os._exit(0)
os.waitpid(pid, 0)
"""
CHILD_THAT_ENDS_NORMALLY = """
import atexit, os, sys
def work(i): return i
atexit.register(lambda: work(0))
pid = os.fork()
if pid: os.waitpid(pid, 0)
for i in range(4): work(i)
sys.exit(0 if pid else 5)
"""
POOLS = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
def work(i): return i * i
if __name__ == '__main__':
    context = multiprocessing.get_context(sys.argv[1])
    process = context.Process(target=work, args=(6,)); process.start(); process.join(); print(process.exitcode)
    with context.Pool(2) as pool: print(sum(pool.map(work, range(50)))); pool.close(); pool.join()
    with ProcessPoolExecutor(1, context) as pool: print(sum(pool.map(work, range(9))))
"""
STARTED = """
import os, subprocess, sys
from pathlib import Path
Path('kid.py').write_text('import sys\\ndef kid(): pass\\nkid()\\nprint("kid", sys.argv[1:], flush=True)\\n')
Path('tool').write_text(f'#!{sys.executable}\\nimport kid\\n')
os.chmod('tool', 0o755)
python, how = sys.executable, sys.argv[1]
if how == 'script': subprocess.run([python, 'kid.py', 'a'], check=True)
if how == 'module': subprocess.run([python, '-m', 'kid', 'a'], check=True)
if how == 'code': subprocess.run([python, '-c', 'import kid'], check=True)
if how == 'stdin': subprocess.run([python, '-'], input=b'import kid', check=True)
if how == 'tool': subprocess.run(['./tool'], check=True)
if how == 'env': subprocess.run([python, 'kid.py'], env={'A': '1'}, check=True)
if how == 'cwd': subprocess.run([python, 'kid.py'], cwd='.', close_fds=False, check=True)
if how == 'options': subprocess.run([python, '-Wignore', '-u', 'kid.py'], check=True)
if how == 'posix_spawn': os.waitpid(os.posix_spawn(python, [python, 'kid.py'], os.environ), 0)
if how == 'spawnv': os.waitpid(os.spawnv(os.P_NOWAIT, python, [python, 'kid.py']), 0)
if how == 'exec': os.execv(python, [python, 'kid.py'])
if how == 'isolated': subprocess.run([python, '-I', 'kid.py'], check=True)
if how == 'without-env': subprocess.run([python, '-E', 'kid.py'], check=True)
if how == 'without-site': subprocess.run([python, '-S', 'kid.py'], check=True)
if how == 'shell': subprocess.run(f'{python} kid.py', shell=True, check=True)
if how == 'system': os.system(f'{python} kid.py')
"""
RECORDED = ["script", "module", "code", "stdin", "tool", "env", "cwd", "options", "posix_spawn", "spawnv", "exec"]
LEFT_ALONE = ["isolated", "without-env", "without-site", "shell", "system"]
WHAT_CHILDREN_SEE = """
import os, subprocess, sys
code = ('import os, sys; print(sorted((k, v) for k, v in os.environ.items() if "PY" in k or "PERF" in k), sys.path,'
        ' [name for name in sys.modules if "site" in name])')
def tell(**how): print(subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, **how).stdout)
tell()
os.environ['PYTHONPATH'] = '/x'
tell()
tell(env={'PYTHONPATH': '/y:/z'})
for ending in ('raise SystemExit(3)', 'import os; os.abort()', 'import os; os._exit(4)', '1/0'):
    done = subprocess.run([sys.executable, '-c', ending], capture_output=True); print(done.returncode, done.stderr)
"""
WRONG_CALLS = """
import copy, inspect, os, pickle, subprocess, sys, _posixsubprocess
functions = os._exit, os.execv, os.execve, os.posix_spawn, os.posix_spawnp, _posixsubprocess.fork_exec
def attempt(function, *arguments, **names):
    try: function(*arguments, **names); print('done')
    except BaseException as error: print(arguments, names, repr(error), repr(error.__context__))
for one in functions:
    print(repr(one), one.__doc__, one.__self__, one.__name__, one.__qualname__, one.__module__, one.__text_signature__)
    print(pickle.dumps(one), copy.copy(one) is one)
    for wrong in ((), ('a', 'b'), ('x', []), (None, ['a']), ('x', ['a'], 3), ('x', ['a'], None)): attempt(one, *wrong)
    attempt(one, x=1)
print(inspect.signature(os.execv))
for words in (['no-such-x'], ['/no/python3', 'a'], '', [sys.executable, 'a\\0b'], [sys.executable, 3]):
    attempt(subprocess.run, words)
for env in ({'a': 1}, {'a=': 'b'}, {'a': 'b\\0'}, {1: 2}, {'': 'x'}, [('a', 'b')], 'x'):
    attempt(subprocess.run, [sys.executable, '-c', ''], env=env)
    attempt(os.posix_spawn, sys.executable, ['python', '-c', ''], env)
    attempt(os.execve, sys.executable, ['python'], env)
attempt(os.execv, '/no/python', ['python'])
attempt(os.execvp, 'no-python', ['python'])
"""


def test_a_fork_in_the_middle_of_calls(both):
    done = both(FORK)
    assert [done.calls(run) for run in (0, 1)] == [{"<module>": 1, "outer": 1, "work": 7}, {"work": 10}]
    assert "os._exit" in done.recordings[1].run.ended


@pytest.mark.slow
def test_forks_while_other_threads_run(both):
    done = both(FORK_AMONG_THREADS)
    assert [done.calls(run) for run in range(1, 6)] == [{"work": 7}] * 5
    assert done.calls()["busy"] == 3


def test_an_exception_thrown_into_a_generator_after_a_fork(both):
    assert both(FORK_WITHIN_A_THROW).stdout == "got\n2\n"


def test_a_forked_child_that_reaches_its_end(both):
    done = both(CHILD_THAT_ENDS_NORMALLY)
    assert [done.calls(run)["work"] for run in (0, 1)] == [5, 5]
    assert [one.run.ended for one in done.recordings] == ["normally", "normally"]


@pytest.mark.parametrize("way", first(1, ["fork", "spawn", "forkserver"]))
def test_multiprocessing(both, way):
    done = both(POOLS, way)
    assert sum(done.calls(run).get("work", 0) for run in range(len(done.recordings))) == 60
    assert "work" not in done.calls()


@pytest.mark.parametrize("how", first(3, RECORDED))
def test_started_pythons_are_recorded(both, how):
    # os.spawnv calls functions of the library between its fork and its exec, in a process that they are recorded of
    done = both(STARTED, how, options=("--select", "*.kid"))
    assert len(done.recordings) == 2
    assert done.calls(1)["kid"] == 1


@pytest.mark.parametrize("how", LEFT_ALONE)
def test_what_shuts_us_out_is_left_alone(both, how):
    done = both(STARTED, how)
    assert "kid" in done.stdout
    assert len(done.recordings) == 1


def test_children_see_what_they_would_see(both):
    both(WHAT_CHILDREN_SEE)


def test_wrong_calls_fail_as_ever(both):
    done = both(WRONG_CALLS)
    assert done.recordings[0].run.ended == "normally", "an exec that failed is no end"
