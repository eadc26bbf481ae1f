"""Twenty functions called in turn, one of which has a cost of its own mind: planted.py SEED ROUNDS.

SEED says which: most of the time it takes as long as the others, and now and then much longer. Prints its name and the
ns of CPU of this thread, by the kernel, in main().
"""

import random
import sys
import time

STEPS = 1_000  # about 50 us


def burn(steps):
    total = 0
    for n in range(steps):
        total += n * n % 7
    return total


def one_of_many(name):
    names = {"burn": burn}
    exec(compile(f"def {name}(steps):\n    return burn(steps)\n", __file__, "exec"), names)
    return names[name]


FUNCTIONS = [one_of_many(f"part_{n:02}") for n in range(20)]


def body(costs):
    for function, steps in zip(FUNCTIONS, costs, strict=True):
        function(steps)


def main(planted, rounds, chance):
    for _ in range(rounds):
        costs = [STEPS] * len(FUNCTIONS)
        costs[planted] *= 80 if chance.random() < 0.25 else 1
        body(costs)


def measured(seed, rounds):
    chance = random.Random(seed)
    planted = chance.randrange(len(FUNCTIONS))
    before = time.thread_time_ns()
    main(planted, rounds, chance)
    spent = time.thread_time_ns() - before
    print(FUNCTIONS[planted].__name__, spent)


measured(*map(int, sys.argv[1:]))
