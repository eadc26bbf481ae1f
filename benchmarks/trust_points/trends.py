"""Points of trends."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
from pathlib import Path

from trust_points import Answer, Point, cpu_s, perflaw, write_program

WORDS = """
    import sys


    def parse(text):
        words = []
        for line in text.splitlines():
            for word in line.split():
                words.append(int(word))
        return words


    def distinct(words):
        seen = set()
        for word in words:
            if word not in seen:
                seen.add(word)
        return seen


    print(len(distinct(parse(open(sys.argv[1]).read()))))
"""


def size_before_number(folder: Path, seed: int) -> Answer:
    """Files of geometrically growing size, numbered by a feature: the headline is linear in a size of the file."""
    chance = random.Random(seed)
    growth, base = chance.uniform(1.3, 1.6), chance.uniform(10, 20)
    write_program(folder, WORDS)
    for i in range(1, 13):
        lines = (" ".join(str(chance.randrange(10**6)) for _ in range(4)) for _ in range(round(base * growth**i)))
        (folder / f"d{i}.txt").write_text("\n".join(lines) + "\n")
    numbers = ",".join(map(str, range(1, 13)))
    perflaw(folder, "record", "--collect", "lines", "--vary", f"i={numbers}", "--", "prog.py", "d{i}.txt")
    law = json.loads(perflaw(folder, "trend", "--json"))["clusters"][0]["law"]
    right = law["features"] in (["argv1.lines"], ["argv1.bytes"]) and abs(max(law["slope"].values()) - 1.0) < 0.05
    return Answer(f"{law['features']}: {law['mean']}", right)


EDITED = """
    import sys


    def pairs(n):
        total = 0
        for i in range(n):
            for j in range(n):
                total += i ^ j
        return total


    pairs(int(sys.argv[1]))
"""


def edited_between_recordings(folder: Path, seed: int) -> Answer:
    """A quadratic program becomes linear: what is told is the new version's, or that of the runs that are named."""
    program = write_program(folder, EDITED)
    sizes = ",".join(str(round((10 + seed % 7) * 1.6**i)) for i in range(8))
    record = ("record", "--collect", "lines", "--vary", f"n={sizes}", "--", "prog.py", "{n}")
    perflaw(folder, *record)
    program.write_text(program.read_text().replace("for j in range(n)", "for j in range(9)"))
    command = [sys.executable, "-m", "perflaw"]
    recorded = subprocess.run([*command, *record], cwd=folder, capture_output=True, text=True, check=True)
    shown = subprocess.run([*command, "trend", "--json"], cwd=folder, capture_output=True, text=True, check=True)
    law = json.loads(shown.stdout)["clusters"][0]["law"]
    warned = "prog.py changed since" in recorded.stderr and "older version of prog.py" in shown.stderr
    before = json.loads(perflaw(folder, "trend", "--json", *map(str, range(1, 9))))["clusters"][0]["law"]
    right = all(abs(max(one["slope"].values()) - power) < 0.1 for one, power in ((law, 1.0), (before, 2.0)))
    return Answer(f"{law['mean']}, before {before['mean']}; {recorded.stderr} {shown.stderr}", warned and right)


RARE = """
    import random
    import sys

    n, salt = int(sys.argv[1]), int(sys.argv[2])
    for _ in range(n):
        pass
    if random.Random(n * salt).random() < 0.3:
        for _ in range(random.Random(n + salt).randrange(10, 10 * n)):
            n -= 1
"""


def rare_loop(folder: Path, seed: int) -> Answer:
    """A loop of any length that runs in a few of ten runs: it has no law, and overtakes nothing."""
    sizes = (50, 80, 130, 200, 320, 500, 800, 1300, 2000, 3200)
    salt = next(
        salt for salt in range(100 * seed, 10**6)
        if 2 <= sum(random.Random(n * salt).random() < 0.3 for n in sizes) <= 5
    )  # fmt: skip
    write_program(folder, RARE)
    vary = f"n={','.join(map(str, sizes))}"
    perflaw(folder, "record", "--collect", "lines", "--vary", vary, "--", "prog.py", "{n}", str(salt))
    clusters = json.loads(perflaw(folder, "trend", "--feature", "n", "--json"))["clusters"]
    rare = [one for one in clusters if any("prog.py:9" in place for place in one["locations"])]
    told = perflaw(folder, "trend", "--feature", "n")
    right = bool(rare) and all(not one["laws"] and not one["overtakes"] for one in rare) and " E" not in told
    return Answer(" / ".join(str(one["laws"]) for one in rare), right)


GENERATORS = """
    import sys


    def numbers(n):
        for i in range(n):
            yield i


    def total(n):
        return sum(x * x for x in numbers(n))


    for k in range(int(sys.argv[1])):
        total(k % 9)
"""


def waiting_generators(folder: Path, seed: int) -> Answer:
    """Generators are suspended between items: only functions of the program are told."""
    write_program(folder, GENERATORS)
    sizes = ",".join(str(size + seed) for size in (50, 100, 200, 400, 800, 1600))
    perflaw(folder, "record", "--vary", f"n={sizes}", "--", "prog.py", "{n}")
    told = perflaw(folder, "trend", "--kind", "function,edge", "--all")
    return Answer(told, "prog.numbers" in told and "(waiting)" not in told and " cost" not in told)


LOOPS = """
    long NAME(int n)
    {
        long total = 0;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                total += i ^ j;
        return total;
    }
"""


def included_file(folder: Path, seed: int) -> Answer:
    """A file makes five functions, of which one runs: that one is named, and no other."""
    names = random.Random(seed).sample(["absent", "beside", "calm", "middle", "walk", "zero"], 5)
    ran = random.Random(seed).choice(names)
    write_program(folder, LOOPS, "loops.inc")
    made = "".join(f'#define NAME {name}\n#include "loops.inc"\n#undef NAME\n' for name in names)
    calls = "".join(f"if (n < 0) return {name}(n);\n" for name in names)
    main = f"int main(int c, char **v) {{ int n = atoi(v[1]);\n{calls}return {ran}(n) == -1; }}\n"
    (folder / "app.c").write_text(f"#include <stdlib.h>\n{made}{main}")
    subprocess.run(["gcc", "-O0", "--coverage", "-o", "app", "app.c"], cwd=folder, check=True)
    perflaw(folder, "record", "--collect", "lines", "--vary", "n=20,40,80,160,320,640", "--", "./app", "{n}")
    told = perflaw(folder, "trend", "--all")
    right = f"in {ran}()" in told and not any(f"in {name}()" in told for name in names if name != ran)
    return Answer(told, right)


CONSTANT = """
    import sys


    def prepare(items):
        while items:
            items -= 1


    def walk(n):
        while n:
            n -= 1


    prepare(int(sys.argv[2]))
    walk(int(sys.argv[1]))
"""


def exponent_to_believe(folder: Path, seed: int) -> Answer:
    """A part that is the same at every size bends the power law of a linear cost: the law is to be believed."""
    chance = random.Random(seed)
    write_program(folder, CONSTANT.replace("prepare(int(sys.argv[2]))\n    walk(", "walk(int(sys.argv[2]) + "))
    constant, base = chance.randrange(1000, 4000), chance.randrange(10, 40)
    sizes = ",".join(str(round(base * 2.3**i)) for i in range(8))
    record = ("--collect", "lines", "--vary", f"n={sizes}", "--", "prog.py", "{n}", str(constant))
    perflaw(folder, "record", *record)
    told = " ".join(perflaw(folder, "trend").split())
    return Answer(told, "believe the law (n^1.00 for large n), not n^0." in told)


LOOPS_IN_PYTHON = """
    import sys


    def sort(items):
        for end in range(len(items), 1, -1):
            for place in range(end - 1):
                if items[place] > items[place + 1]:
                    held = items[place]
                    items[place] = items[place + 1]
                    items[place + 1] = held


    def collatz(n):
        steps = 0
        while n > 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        return steps


    for turn in range(int(sys.argv[1])):
        sort([(n * 7919) % 601 for n in range(300)])
        sum(collatz(n) for n in range(1, 400))
"""


def slowdown_of_lines(folder: Path, seed: int) -> Answer:
    """The slowdown with counted lines, against the CPU time of plain runs before and after: within a half of it."""
    program = write_program(folder, LOOPS_IN_PYTHON)
    plain = [sys.executable, str(program), str(20 + seed % 5)]
    plain_s = [cpu_s(plain, folder)]
    perflaw(folder, "record", "--collect", "lines", "--", *plain)
    plain_s.append(cpu_s(plain, folder))
    [run] = json.loads(perflaw(folder, "runs", "--json"))["runs"]
    true = (run["machine"]["user_ns"] + run["machine"]["system_ns"]) / 1e9 / (sum(plain_s) / 2)
    return Answer(f"{run['slowdown']:.1f}x, truly {true:.1f}x", 2 / 3 < run["slowdown"] / true < 3 / 2)


PAIRS = """
    #include <stdlib.h>
    static long pairs(int n)
    {
        long total = 0;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                total += i ^ j;
        return total;
    }
    int main(int argc, char **argv) { return pairs(atoi(argv[1])) == -1; }
"""


def coverage_of_clang(folder: Path, seed: int) -> Answer:
    """Clang counts the same as a person: n² executions of a line of its own function."""
    write_program(folder, PAIRS, "app.c")
    flags = ["-g", "-fprofile-instr-generate", "-fcoverage-mapping", random.Random(seed).choice(["-O0", "-O2"])]
    subprocess.run(["clang", *flags, "-o", "app", "app.c"], cwd=folder, check=True)
    sizes = [10 + seed, 30 + seed, 60 + seed, 120 + seed, 240 + seed, 480 + seed]
    perflaw(folder, "record", "--collect", "lines", "--vary", f"n={','.join(map(str, sizes))}", "--", "./app", "{n}")
    first = json.loads(perflaw(folder, "trend", "--json"))["clusters"][0]
    right = "app.c:7" in first["locations"] and "app.c:6-7 in pairs()" in first["places"]
    return Answer(str(first["places"]), right and abs(first["law"]["slope"]["n"] - 2.0) < 0.05)


def cost_of_coverage(folder: Path, seed: int) -> Answer:
    """A recording of a run of some milliseconds takes at most half a second of CPU; a build with -O2 is warned of.

    The first recording is not measured: it compiles perflaw's modules where, unlike in an installation, that is not done.
    """
    write_program(folder, PAIRS, "app.c")
    level = random.Random(seed).choice(["-O0", "-O2"])
    subprocess.run(["gcc", level, "--coverage", "-o", "app", "app.c"], cwd=folder, check=True)
    command = [sys.executable, "-m", "perflaw", "record", "--collect", "lines", "--", "./app", "1500"]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
    subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    warns = "build with -O0" in done.stderr
    return Answer(f"{spent:.2f} s, {level}: {done.stderr}", spent <= 0.5 and warns == (level == "-O2"))


POINTS: tuple[Point, ...] = (
    Point(6, "a law in a size goes before one in the number of the file", size_before_number),
    Point(7, "a program is edited: the law is that of the new version, and that is said", edited_between_recordings),
    Point(8, "of five functions that one file makes, the one that runs is named", included_file),
    Point(9, "the slowdown with counted lines is that of CPU times", slowdown_of_lines),
    Point(10, "a loop that runs in 2 to 5 of 10 runs has no law", rare_loop),
    Point(11, "the waiting of generators is no code, counts are called counts", waiting_generators),
    Point(12, "clang's coverage is read: a line runs n^2 times", coverage_of_clang),
    Point(12, "a recording of gcc's coverage takes at most 0.5 s of CPU, -O2 is warned of", cost_of_coverage),
    Point(13, "a constant bends the power law of a linear count: the law is believed", exponent_to_believe),
)
"""Trends, items 6 to 13."""
