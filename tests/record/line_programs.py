"""Programs whose comments say how often a line is executed (``# 3``), in every version of Python."""

KNOWN = {
    "loops": """
n = 5                                   # 1
while n:                                # 6
    n -= 1                              # 5
    if n == 3:                          # 5
        continue                        # 1
    n += 0                              # 4
for i in range(4):                      # 5
    for j in range(i):                  # 10
        n += j                          # 6
else:
    n = 7                               # 1
while n: n -= 1                         # 7
for k in (1, 2): n += 1                 # 3
while True:
    n += 1                              # 7
    if n > 8:                           # 7
        break                           # 1
""",
    "generators": """
def numbers(n):                         # 1
    try:                                # 3
        for i in range(n):              # 9
            yield i                     # 7
    finally:
        n = 0                           # 3
def both(n):                            # 1
    yield from numbers(n)               # 1
    return 1                            # 1
list(numbers(3))                        # 1
list(both(3))                           # 1
begun = numbers(9)                      # 1
next(begun)                             # 1
begun.close()                           # 1
never = numbers(5)                      # 1
""",
    "recursion": """
def fibonacci(n):                       # 1
    if n < 2:                           # 25
        return n                        # 13
    return fibonacci(n - 1) + fibonacci(n - 2)  # 12
fibonacci(6)                            # 1
def deep(n):                            # 1
    n -= 1                              # 200
    if n: deep(n)                       # 200
deep(200)                               # 1
""",
    "exceptions": """
def f(n):                               # 1
    try:                                # 4
        if n == 0:                      # 4
            raise KeyError(n)           # 1
        if n == 1:                      # 3
            return 1                    # 1
        1 / (n - 2)                     # 2
    except KeyError:
        n = 5                           # 1
    except (ValueError, ZeroDivisionError) as error:
        n = str(error)                  # 1
    else:
        n = 6                           # 1
    return n                            # 3
for n in range(4):                      # 5
    f(n)                                # 4
def outer():                            # 1
    inner()                             # 1
    never = 1                           # 0
def inner():                            # 1
    raise ValueError                    # 1
try:                                    # 1
    outer()                             # 1
except ValueError:                      # 1
    n = 1                               # 1
""",
    "async": """
import asyncio                          # 1
async def waits(n):                     # 1
    while n:                            # 8
        n -= 1                          # 6
        await asyncio.sleep(0)
    return 1                            # 2
async def ticks(n):                     # 1
    for i in range(n):                  # 4
        yield i                         # 3
async def main():                       # 1
    await asyncio.gather(waits(2), waits(4))
    async for tick in ticks(3):
        tick += 1                       # 3
asyncio.run(main())                     # 1
""",
    "classes and decorators": """
def twice(f):                           # 1
    def wrapper(n):                     # 2
        f(n)                            # 3
        return f(n)                     # 3
    return wrapper                      # 2
class Shape:                            # 2
    sides = 4                           # 1
    def __init__(self, size):           # 1
        self.size = size                # 2
    @twice                              # 2
    def grown(self):                    # 2
        self.size += 1                  # 2
    @property
    def area(self):                     # 2
        return self.size ** 2           # 2
@twice
def add(n):                             # 2
    n += 1                              # 4
add(1)                                  # 1
add(2)                                  # 1
shape = Shape(2)                        # 1
shape.grown()                           # 1
(shape.area, shape.area)                # 1
Shape(1)                                # 1
""",
    "match": """
def kind(x):                            # 1
    match x:                            # 5
        case 0:                         # 5
            return "zero"               # 1
        case [a, b] if a > b:           # 4
            return a                    # 1
        case {"k": v}:                  # 3
            return v                    # 1
        case _:                         # 2
            return None                 # 2
for x in (0, [2, 1], [1, 2], {"k": 1}, 3.0):  # 6
    kind(x)                             # 5
""",
    "finally": """
def f():                                # 1
    for i in range(4):                  # 4
        try:                            # 4
            if i == 1:                  # 4
                continue                # 1
            if i == 3:                  # 3
                return i                # 1
        finally:
            i += 1                      # 4
f()                                     # 1
""",
    "statements over lines": """
def f(a,
      b=2):
    return a                            # 2
x = f(
    1,                                  # 1
    f(2))                               # 1
y = {"a": 1,
     "b": x}                            # 1
z = 0                                   # 1
""",
    "made code": """
text = '''
def made(n):
    return n
made(1)
'''                                     # 0
exec(text)                              # 1
f = lambda x: (
    x + 1)                              # 3
f(f(f(1)))                              # 1
""",
}

FURTHER = {
    "comprehensions": """
def f(n):
    a = [x * 2 for x in range(n)]
    b = {x: y for x in range(n) for y in range(2) if x % 2}
    c = {x
         for x in range(n)
         if x > 1
         if x < 7}
    d = sum(x for x in range(n))
    e = [[y for y in range(x)] for x in range(3)]
    return a if n else [z
        for z in (b, c, d, e)]
f(5); f(0)
g = [(lambda x: x + 1 if x else 0)(x) for x in range(4)]
""",
    "contexts": """
import contextlib
@contextlib.contextmanager
def managed(x):
    try:
        yield x
    except ZeroDivisionError:
        pass
with managed(1) as a, managed(
        2) as b:
    1 / 0
def unwinding(n):
    try:
        if n: unwinding(n - 1)
        else: raise KeyError
    finally:
        n = 0
try: unwinding(3)
except KeyError: pass
""",
    "thrown": """
def g():
    try:
        yield 1
    except KeyError:
        yield 2
    yield 3
def delegating():
    x = yield from g()
    return x
t = g(); next(t); t.throw(KeyError); list(t)
t = delegating(); next(t); t.throw(KeyError); list(t)
async def a(n):
    async def ag():
        for i in range(n):
            yield i
    async with lock:
        return [i async for i in ag() if i] + [k
            async for k in ag()]
import asyncio
lock = asyncio.Lock()
asyncio.run(a(4))
""",
    "odd": """
def star(*, k=1, **kw): return [
    k,
    kw]
star(k=2,
     z=3)
def walrus():
    n = 5
    while (n := n - 1) > 0 and n != 100:
        if not n or n == 2: pass
    return n
walrus()
def doc():
    \"\"\"Only this.\"\"\"
doc()
def nothing(): pass
nothing()
if False:
    never = 1
x = (star()
     if nothing()
     else star(
         k=3))
assert x, (
    "message")
class Meta(type):
    def __call__(cls, *a):
        return super().__call__(
            *a)
class D(metaclass=Meta):
    x = [i
         for i in range(3)]
    def __bool__(self): return bool(self.x) and True
if D() and D(): x = 1; y = 2
del x
try: x
except NameError: y = 3
global_ = 1; global_ += 1
""",
    "greenlets": """
from greenlet import greenlet, getcurrent
def left(n):
    for i in range(n):
        x = i if right.switch() else -i
def right_side(n=5):
    for i in range(n):
        y = [k for k in range(2) if main_or_left(i)]
def main_or_left(i):
    (first if i % 2 else main).switch(i)
    return i
main = getcurrent()
first, right = greenlet(left), greenlet(right_side)
first.switch(5)
for turn in range(4):
    right.switch(5) if turn % 2 else first.switch()
    turn += 1
""",
}

BLOCKS = """
def f(a, b):
    x = a if b else 0
    y = a or b
    if a and b:
        x += 1
    if a: x += 1
    for i in range(a): x += i
    for i in range(a):
        x += i
    while a: a -= 1
    while b:
        b -= 1
    if x:
        return x
    return [i for i in range(3) if i]
for a in (0, 1):
    for b in (0, 2):
        f(a, b)
g = lambda x: x and 1
g(0); g(2)
"""
BLOCKS_TOLD = [
    (3, "", 2, 2),
    (4, "", 2, 2),
    (5, "", 2, 2),
    (7, "", 2, 2),
    (8, "", 2, 4),
    (11, "", 2, 4),
    (16, "", 6, 2),
    (16, "_2", 4, 2),
    (20, "", 1, 1),
]
"""Line, which branch of it, taken, not taken: those that the counts of lines do not tell."""

RAISES = """
import sys, traceback
def caller(x): return sys._getframe(1).f_lineno and x
def arms(a, b):
    x = (1 // a if b else a or 1 // b) if a or b else (zz if a == b else 0)
    if a: zz = 1
    x += (b and caller(a)) or (a and caller(b)) or (1 if a < b else zz)
    return x if x else zz
def loops(a, b):
    n = a + 3
    while n and (b or n > 1): n -= 1 if n % 2 else 2 if b else 1
    for k in range(a): n += k if k % 2 else b or k
    return [k or 1 // a for k in range(b) if k % 2 or a > b] or n
def opened(a, b):
    with open('/dev/null') as f: c = a if ((zz if b else 2) or a) else len([*(a or k for k in range(b))])
    if c == 2: zz = 1
    return c
def made(a, b):
    x = (yield a) if (yield b) else (yield)
    y = x or (yield a or 1 // b) and (a if b else x)
    return (lambda: y if x else a or b)()
def drive(generator):
    got = []
    try:
        for turn in range(9): got.append(generator.send(turn % 2 if turn else None))
    except StopIteration as end: got.append(end.value)
    return got
def run(f, *arguments):
    try: return drive(got) if hasattr(got := f(*arguments), 'send') else got
    except Exception as error: return repr(error), [(one.name, one.lineno) for one in traceback.extract_tb(error.__traceback__)]
for f in (arms, loops, opened, made):
    for a in (0, 1, 2, 3):
        for b in (0, 1, 2): print(f.__name__, a, b, run(f, a, b))
seen = []
sys.settrace(lambda frame, what, value: seen.append(frame.f_lineno) or (lambda *more: seen.append(more[0].f_lineno)))
run(arms, 2, 1)
sys.settrace(None)
print(seen, run(arms, 1, 2))
"""
"""Exceptions, generators and loops within lines that have several blocks; what can be seen of its lines is printed."""

AUDITED = """
import sys
def hear(event, arguments):
    if event == "sys.addaudithook":
        print("a hook is added")
        raise RuntimeError("no further hooks")
sys.addaudithook(hear)
def pick(a, b):
    return a if a and b else (b or 1)
def trace(frame, what, value):
    seen.append((what, frame.f_code.co_name, frame.f_lineno))
    return trace
seen = []
pick(2, 0)
sys.settrace(trace)
pick(0, 0), pick(2, 1)
sys.settrace(None)
print(seen)
"""
"""A program that hears of audit hooks, refuses them in a way that the interpreter does not tell, and traces itself."""

LOOPS = """
def odd(n): return [k for k in range(n) if k % 2]
def pairs(n): return [(a, b) for a in range(n) for b in range(a) if (a + b) % 2 if a]
def either(n): return {k: -k if k % 2 else k for k in range(n) if k > 1 or n < 4}
def union(items): return {x for row in items if row for x in row}
def later(n): return sum(k for k in range(n) if k % 3)
def whole(n): return all(k < 4 for k in range(n)) or any(k > 6 for k in range(n))
def nested(n): return [[b for b in range(a) if b != 2] for a in range(n) if a != 1]
def called(n): return [len(odd(k)) for k in range(n) if odd(k) or k == 1]
def raising(n): return [1 // (3 - k) for k in range(n) if k != 1]
def no_iterable(n): return [k for k in n if k]
def unbound(n):
    if n > 3: late = 2
    return [k + late for k in range(n) if k % 2]
def inline(n):
    total = 0
    for k in range(n): total += k if k % 2 else -k
    while total > 5 and n: total -= 3 if total % 2 else 4
    for k in range(n):
        if k == 4: break
        total += 1 if k and total else 2
    else: total = -total
    return total
class Breaks:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        self.n -= 1
        if self.n < 2: raise ValueError(self.n) if self.n else StopIteration
        return self.n
def half(n): return [k for k in Breaks(n) if k % 2]
def taken(n):
    made = (k * k for k in range(n) if k % 2)
    first = [next(made, None) for k in range(n // 2) if k != 1]
    made.close()
    return first
for n in range(9):
    for f in (odd, pairs, either, later, whole, nested, called, raising, no_iterable, unbound, inline, half, taken):
        try: print(f.__name__, n, f(n))
        except Exception as error: print(f.__name__, n, type(error).__name__, error.__traceback__.tb_next.tb_lineno)
    print(union([range(k) for k in range(n) if k != 2]))
"""
"""Loops within a line, with conditions: comprehensions, generators, what ends them early."""
