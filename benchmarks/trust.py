"""What is said of recordings, against planted truth: trust.py [--items 1 4] [--times 20] [--quiet | --busy].

Each point plants something in a program of its own, records it anew, asks perflaw, and judges the answer. That is done
``--times`` times while nothing else runs and as many times beside two busy processes. An answer must be right in at
least 19 of 20 recordings of each kind. The numbers are those of the points in ``trust_points/``; beside them stand the
machine's load over five minutes, and the seconds that all recordings took.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from neighbour import neighbours
from shared import Bars
from trust_points import Point, specifications, studies, trends, variance

POINTS: tuple[Point, ...] = (*variance.POINTS, *trends.POINTS, *specifications.POINTS, *studies.POINTS)
MIN_RIGHT = 19 / 20
NEIGHBOURS = 2


def count_right(point: Point, numbers: range, busy: bool) -> tuple[int, list[str]]:
    """How often the answer is right, and what is told where it is wrong; the numbers seed what is drawn."""
    wrong = []
    with ExitStack() as stack:
        if busy:
            stack.enter_context(neighbours(NEIGHBOURS))
        for number in numbers:
            with tempfile.TemporaryDirectory() as folder:
                answer = point.ask(Path(folder), number)
            if not answer.right:
                wrong.append(answer.told)
    return len(numbers) - len(wrong), wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="*", help="numbers of the points; all by default")
    parser.add_argument("--times", type=int, default=20, help="recordings of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first recording, for new ones")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--quiet", action="store_true", help="only while nothing else runs")
    kinds.add_argument("--busy", action="store_true", help="only beside busy processes")
    options = parser.parse_args()
    bars = Bars()
    numbers = range(options.first, options.first + options.times)
    print(f"{'item':>4} {'machine':8} {'right':>7} {'load':>5} {'s':>5}  planted")
    for point in POINTS:
        if options.items and point.item not in options.items:
            continue
        for busy in (False, True):
            if (busy and options.quiet) or (not busy and options.busy):
                continue
            begun = time.monotonic()
            right, wrong = count_right(point, numbers, busy)
            took, load = time.monotonic() - begun, os.getloadavg()[1]
            machine = "busy" if busy else "quiet"
            words = bars.check(f"{point.item} {machine}", right / options.times, MIN_RIGHT, least=True)
            print(f"{point.item:4} {machine:8} {right:3}/{options.times:<3} {load:5.1f} {took:5.0f}  ", end="")
            print(f"{point.planted} ({words})", flush=True)
            for told in wrong[:3]:
                print(f"{'':35}told: {told}", file=sys.stderr)
    bars.leave()


if __name__ == "__main__":
    main()
