"""Ten million calls over 1,000 functions: web.py SHAPE CALLS prints peak and present memory of this process in kB.

SHAPE "chains": 20 chains of 50 functions, so that there are 1,000 calling contexts. "web": each function calls one of
ten others, another one each time, down to depth 50, so that hardly two paths are equal.
"""

import sys

FUNCTIONS, DEPTH = 1_000, 50
CHAIN = """
def f{n}(depth):
    if depth:
        return f{next}(depth - 1)
    return 0
"""
WEB = """
def f{n}(depth):
    if depth:
        return FOLLOWERS[{n}][STATE[0] >> depth % 30 & 7](depth - 1)
    return 0
"""


def memory(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field))


def functions(shape):
    names = {"STATE": [12345]}
    for n in range(FUNCTIONS):
        source = (CHAIN if shape == "chains" else WEB).format(n=n, next=(n + 1) % FUNCTIONS)
        exec(compile(source, "web_functions.py", "exec"), names)
    found = [names[f"f{n}"] for n in range(FUNCTIONS)]
    names["FOLLOWERS"] = [[found[(n * 7 + k * 131 + 1) % FUNCTIONS] for k in range(8)] for n in range(FUNCTIONS)]
    return found, names["STATE"]


def main(shape, calls):
    found, state = functions(shape)
    for turn in range(int(calls) // DEPTH):
        state[0] = state[0] * 1103515245 + 12345 & 0x7FFFFFFF
        found[turn % 20 * DEPTH](DEPTH - 1)
    print(memory("VmHWM"), memory("VmRSS"))


main(*sys.argv[1:])
