"""Points of studies: settings that are applied, read back, refused, or without effect, and what a study says of them."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import explore_grids
from explore_grids import GRIDS
from explore_systems import System
from neighbour import neighbours

from trust_points import Answer, Point, perflaw, write_program

PYTHON = f"{sys.executable} -I -S"


def study(
    folder: Path,
    program: str,
    command: str,
    knobs: str,
    *,
    metrics: str = "{rate: {path: rate, goal: max}}",
    more: str = "",
) -> Path:
    """Write a study of a program that prints a document; ``command`` follows the interpreter."""
    write_program(folder, program)
    text = (
        f'target: {{run: "{PYTHON} {command}", result: {{json: stdout}}}}\nknobs:\n{knobs}\nmetrics: {metrics}\n{more}'
    )
    path = folder / "study.yaml"
    path.write_text(text)
    return path


def explored(folder: Path, number: int) -> tuple[dict[str, object], str]:
    """What ``explore`` tells, as a document and as text."""
    document = json.loads(perflaw(folder, "explore", "study.yaml", "--seed", str(number), "--json"))
    return document, " ".join(perflaw(folder, "explore", "study.yaml", "--seed", str(number)).split())


def _valid(document: dict[str, object]) -> list[bool]:
    trials = document["trials"]
    assert isinstance(trials, list)
    return [bool(trial["valid"]) for trial in trials]


JOBS = """
import json, sys
jobs = int(next(word for word in sys.argv if word.startswith("-j"))[2:])
print(json.dumps({"rate": 100 - (jobs - 5) ** 2, "jobs": min(jobs, 6), "share": round(jobs / 7, 2)}))
"""


def glued(folder: Path, number: int) -> Answer:
    study(folder, JOBS, "prog.py -j{jobs} 3", "  jobs: {type: int, range: [1, 9]}", more="policy: random\ntrials: 6\n")
    document, told = explored(folder, number)
    return Answer(told, all(_valid(document)) and len(_valid(document)) == 6 and "set, not verified: jobs" in told)


def silently_limited(folder: Path, number: int) -> Answer:
    """The program takes 7 and 8 for 6, as zstd does with levels. Only where it is asked can that be known."""
    knob = "  jobs: {type: int, range: [1, 8], verify: {path: jobs}}"
    study(folder, JOBS, "prog.py -j{jobs}", knob, more="policy: grid\ntrials: 9\n")
    document, told = explored(folder, number)
    return Answer(told, sum(_valid(document)) == 6 and "the target has 6" in told)


def rounded(folder: Path, number: int) -> Answer:
    knob = "  jobs: {type: float, range: [0.1, 0.9], apply: {arg: '{}'}, verify: {path: factor}}"
    program = """
    import json, sys
    factor = round(float(sys.argv[1]), 2)
    print(json.dumps({"rate": 1 + factor, "factor": factor}))
    """
    study(folder, program, "prog.py {args}", knob, more="policy: random\ntrials: 8\n")
    document, told = explored(folder, number)
    trials = document["trials"]
    assert isinstance(trials, list)
    two_digits = all(round(trial["configuration"]["jobs"], 2) == trial["configuration"]["jobs"] for trial in trials)
    return Answer(told, all(_valid(document)) and two_digits)


def refused_region(folder: Path, number: int) -> Answer:
    """A corner of the space, 3 of 8 in each knob, is refused: few of the later trials may lie there."""
    program = """
    import json, sys
    a, b = int(sys.argv[1]), int(sys.argv[2])
    if a > 5 and b > 5: sys.exit(f"a and b do not go together: {a} and {b}")
    print(json.dumps({"rate": 10 + 3 * a + b}))
    """
    knobs = "\n".join(f"  {name}: {{type: int, range: [1, 8], apply: {{arg: '{{}}'}}}}" for name in "ab")
    study(folder, program, "prog.py {args}", knobs, more="policy: law\ntrials: 30\n")
    document, told = explored(folder, number)
    later = _valid(document)[15:]
    once = told.count("invalid: ") == 1 and "differ in the numbers only" in told
    return Answer(
        f"{later.count(False)} of {len(later)} later trials refused. {told}",
        later.count(False) <= 3 and once and _maps_no_corner(document),
    )


def _maps_no_corner(document: dict[str, object]) -> bool:
    """Whether the map has a number for no setting that was refused."""
    surface: Any = document["surface"]
    trials: Any = document["trials"]
    refused = [trial["configuration"] for trial in trials if not trial["valid"]]
    cells = [
        (surface["y_values"].index(one[surface["y"]]), surface["x_values"].index(one[surface["x"]])) for one in refused
    ]
    return all(surface[kind][0][y][x] is None for kind in ("measured", "expected") for y, x in cells)


def two_reasons(folder: Path, number: int) -> Answer:
    """A mode is refused, and large sums for another reason, each told once; 44 % of all settings are refused.

    The best settings lie beside refused ones, so those are tried; the mode, which never works, hardly again.
    """
    program = """
    import json, sys
    a, b, mode = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    if mode == "fast": sys.exit(f"no fast mode here, {a} is not looked at")
    if a + b > 12: sys.exit(f"too large: {a + b}")
    print(json.dumps({"rate": 10 + 3 * a + b + 5 * (mode == "safe")}))
    """
    knobs = "\n".join(f"  {name}: {{type: int, range: [1, 8], apply: {{arg: '{{}}'}}}}" for name in "ab")
    knobs += "\n  mode: {type: categorical, values: [fast, safe, plain], apply: {arg: '{}'}}"
    study(folder, program, "prog.py {args}", knobs, more="policy: law\ntrials: 40\n")
    document, told = explored(folder, number)
    later = _valid(document)[20:]
    trials: Any = document["trials"]
    again = sum(trial["configuration"]["mode"] == "fast" for trial in trials[20:])
    surface: Any = document["surface"]
    fast = surface["facet_values"].index("fast") if surface["facet"] == "mode" else None
    no_map = fast is None or all(cell is None for row in surface["expected"][fast] for cell in row)
    once = told.count("invalid: ") == 2 and "no fast mode" in told and "too large" in told
    words = f"{later.count(False)} of {len(later)} later trials refused, fast tried {again} times, map empty: {no_map}. {told}"
    return Answer(words, again <= 2 and later.count(False) <= 7 and once and no_map)


def without_noise(folder: Path, number: int) -> Answer:
    """A size that follows from three settings: no noise, and one setting is far stronger than the others."""
    program = """
    import json, sys
    level, window, table = map(int, sys.argv[1:])
    print(json.dumps({"size": 10_000 // level + 30 * window + 7 * table}))
    """
    names = ("level", "window", "table")
    knobs = "\n".join(f"  {name}: {{type: int, range: [1, 8], apply: {{arg: '{{}}'}}}}" for name in names)
    study(
        folder,
        program,
        "prog.py {args}",
        knobs,
        metrics="{size: {path: size, goal: min, unit: bytes}}",
        more="trials: 24\n",
    )
    _, told = explored(folder, number)
    matters = told.partition("what matters for size")[2].partition("law of")[0].split()
    first = next((word for word in matters if word in names), "")
    return Answer(told, first == "level" and "noise" not in told)


def always_busy(folder: Path, number: int) -> Answer:
    """Two processes are busy during every trial."""
    study(folder, JOBS, "prog.py -j{jobs}", "  jobs: {type: int, range: [1, 9]}", more="policy: random\ntrials: 8\n")
    with neighbours(2):
        _, told = explored(folder, number)
    return Answer(told, "the machine was busy in every trial" in told)


def widened(folder: Path, number: int) -> Answer:
    path = study(
        folder, JOBS, "prog.py -j{jobs}", "  jobs: {type: int, range: [2, 6]}", more="policy: grid\ntrials: 9\n"
    )
    before, _ = explored(folder, number)
    path.write_text(path.read_text().replace("[2, 6]", "[1, 9]").replace("{run:", "{timeout: 30 s, run:"))
    after, told = explored(folder, number)
    kept = [trial["run"] for trial in before["trials"]] == [trial["run"] for trial in after["trials"]][:5]  # type: ignore[index,attr-defined]
    return Answer(told, kept and len(_valid(after)) == 9 and all(_valid(after)))


def one_law(folder: Path, number: int) -> Answer:
    """The law of the experiment and the one that was exported give the same answer."""
    program = """
    import json, sys
    n = int(sys.argv[1])
    print(json.dumps({"bytes": 430_000 * n}))
    """
    knob = "  n: {type: int, range: [1, 16], apply: {arg: '{}'}}"
    metrics = "{bytes: {path: bytes, goal: min, unit: bytes}}"
    study(folder, program, "prog.py {args}", knob, metrics=metrics, more="policy: grid\ntrials: 16\n")
    perflaw(folder, "explore", "study.yaml", "--seed", str(number), "-o", "study.law")
    answers = [" ".join(perflaw(folder, "predict", name, "n=10").split()) for name in ("study", "study.law")]
    return Answer(" | ".join(answers), answers[0] == answers[1] and "4.3 MB" in answers[0])


def no_law(folder: Path, number: int) -> Answer:
    """Rates that follow no setting: no law in it is written as a fact."""
    program = f"""
    import json, random, sys
    print(json.dumps({{"rate": random.Random(sys.argv[1] + "{number}").lognormvariate(3, 0.5)}}))
    """
    knob = "  n: {type: int, range: [1, 16], apply: {arg: '{}'}}"
    study(folder, program, "prog.py {args}", knob, more="policy: grid\ntrials: 12\n")
    document, _ = explored(folder, number)
    verdict = document["laws"]["rate"]["verdict"] if document["laws"] else "none"  # type: ignore[index]
    perflaw(folder, "explore", "study.yaml", "--seed", str(number), "-o", "study.law", status=None)
    path = folder / "study.law"
    lines = path.read_text().splitlines() if path.exists() else []
    doubts = [line for line in lines if line.startswith("#")]
    laws = [line.strip() for line in lines if "Norm(" in line and not line.startswith("#")]
    # What is written is how the rate is distributed whatever the setting is, with the doubt: no law in the setting.
    plain = all(re.fullmatch(r"(Log)?Norm\([\d.]+, [\d.]+\);", line) for line in laws)
    doubted = not laws or any("no dependence" in line or "inconclusive" in line for line in doubts)
    return Answer(f"{verdict}, written: {laws}, {doubts[1:2]}", verdict != "law" and plain and doubted)


@cache
def _grid(name: str) -> System:
    """A grid of explore_grids.py, measured once."""
    with tempfile.TemporaryDirectory() as folder:
        return explore_grids.measured(name, Path(folder))


def soon_found(folder: Path, number: int) -> Answer:
    """Of each grid of 256 one of the two best is found within 40 trials, in 9 of 10 studies."""
    trials = {
        name: [explore_grids.needed(_grid(name), "law", 10 * number + one) for one in range(10)] for name in GRIDS
    }
    middle, high = ({name: sorted(each)[place] for name, each in trials.items()} for place in (4, 8))
    told = f"half of the studies within {middle}, 9 of 10 within {high}"
    return Answer(told, max(high.values()) <= explore_grids.MAX_HIGH)


POINTS: tuple[Point, ...] = (
    Point(21, "-j{jobs} is set in each of 6 trials", glued),
    Point(22, "a program that takes 7 and 8 for 6 is found out where it is asked", silently_limited),
    Point(23, "a target that rounds to two digits: every trial counts, at the setting read back", rounded),
    Point(24, "a refused corner is left alone after 15 trials", refused_region),
    Point(
        24,
        "a mode that never works is left alone after 20 trials, of refused sums few are tried, each reason told once",
        two_reasons,
    ),
    Point(25, "two processes were busy in every trial", always_busy),
    Point(26, "predict of the study and of its law file are the same, 4.3 MB", one_law),
    Point(26, "rates that follow no setting: no law in it is written", no_law),
    Point(27, "a size without noise: one strong setting of three is first", without_noise),
    Point(28, "a wider range and a new limit keep all trials", widened),
    Point(29, "one of the two best of grids of 256 within 40 trials, in 9 of 10 studies", soon_found),
)
