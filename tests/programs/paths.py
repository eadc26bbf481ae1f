"""A function of three durations by three call paths, on the fake clock. Usage: paths.py CALLS TRUTH.json: what each took."""

import json
import random
import sys
from pathlib import Path

from fake_clock import advance

seen = {}


def lookup(by, draw):
    """Quick where it is cached; waits, off the CPU, where it is not."""
    share = {"page": 0.9, "report": 0.1, "jobs": 0.1}[by]
    took, waited = round(1200 * draw.lognormvariate(0, 0.1)), 0
    if draw.random() >= share:
        waited = round(90_000 * draw.lognormvariate(0, 0.2))
    advance(took)
    if waited:
        advance(waited, False)
    seen.setdefault(by, []).append((took + waited, took))


def page(draw):
    advance(300)
    lookup("page", draw)


def report(draw):
    advance(2000)
    lookup("report", draw)


def jobs(draw):
    for _ in range(2):
        lookup("jobs", draw)
        yield


def serve(calls):
    draw = random.Random(7)
    for _ in range(calls):
        kind = draw.random()
        if kind < 0.6:
            page(draw)
        elif kind < 0.9:
            report(draw)
        else:
            for _ in jobs(draw):
                pass


serve(int(sys.argv[1]))
Path(sys.argv[2]).write_text(json.dumps(seen))
