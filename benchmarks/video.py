"""Variance of a real codec: FFmpeg of Debian, mpeg2 and h263, encoding and decoding, as in Tables 2 and 3 of Kumar & Pande.

    python benchmarks/video.py [--frames 100] [--program FILE]

Builds a minimal FFmpeg with -finstrument-functions, records it on two generated clips each way, and prints how many nodes
and patterns are left at similarity thresholds from 0.01 to 1 (τ_S), untrimmed and trimmed (β); how much the patterns of
neighbouring thresholds from 0.2 on, and those of the two clips, share; and how often a frame would miss deadlines. Sources
and clips are not kept.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from debian_source import fetch

from perflaw.learn.variance.analyse import patterns_in
from perflaw.learn.variance.options import Options
from perflaw.store.call_trees import read_call_tree
from perflaw.store.experiment import open_experiment
from perflaw.types import CPU
from perflaw.types.variance import Variance

WITHOUT = "everything autodetect doc x86asm stripping network pthreads ffplay ffprobe"
WITH = {
    "encoder": "mpeg2video,h263,rawvideo,wrapped_avframe",
    "decoder": "mpeg2video,h263,rawvideo,wrapped_avframe",
    "parser": "mpegvideo,h263",
    "muxer": "mpeg2video,h263,null,rawvideo",
    "demuxer": "mpegvideo,h263,rawvideo",
    "protocol": "file,pipe",
    "filter": "testsrc2,mandelbrot,scale,format,null,trim,fps",
    "indev": "lavfi",
}
CLIPS = ("testsrc2", "mandelbrot")
CODECS = {"mpeg2video": "m2v", "h263": "h263"}
SIMILARITIES, TRIMS = (0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0), (0.0, 0.1)
FRAME = {"encode": "encode_picture", "decode": "decode_frame"}
"""Ends of the names of functions that are called once a frame."""


def build(folder: Path) -> Path:
    """The program; a few minutes on two cores."""
    source = fetch("ffmpeg", folder)
    flags = [f"--disable-{name}" for name in WITHOUT.split()]
    flags += [f"--enable-{kind}={names}" for kind, names in WITH.items()]
    configure = ["./configure", *flags, "--extra-cflags=-g -finstrument-functions"]
    for command in (configure, ["make", f"-j{os.cpu_count()}", "ffmpeg"]):
        done = subprocess.run(command, cwd=source, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    return source / "ffmpeg"


def record(program: Path, folder: Path, frames: int) -> list[str]:
    """Names of the experiments: a codec, a way, a clip each."""
    names = []
    for codec, suffix in CODECS.items():
        for clip in CLIPS:
            made = folder / f"{clip}.{suffix}"
            source = ["-f", "lavfi", "-i", f"{clip}=size=352x288:rate=25,format=yuv420p"]
            encode = [*source, "-frames:v", frames, "-c:v", codec, "-threads", 1, "-y", made]
            decode = ["-threads", 1, "-i", made, "-f", "null", "-"]
            for way, words in (("encode", encode), ("decode", decode)):
                names.append(f"{codec}-{way}-{clip}")
                perflaw(folder, "record", "-e", names[-1], "--", program, "-loglevel", "error", *words)
    return names


def perflaw(folder: Path, *words: object) -> str:
    """Its output; the benchmark ends where it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "perflaw", *map(str, words)], cwd=folder, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    print(done.stderr.strip(), file=sys.stderr)
    return done.stdout


def nodes(found: Variance) -> list[tuple[str, str]]:
    """Every node by what it is."""
    return [(node.component.name, node.kind) for one in found.patterns for node in one.nodes]


def shared(a: Variance, b: Variance) -> float:
    """Share of the different nodes of both that both have."""
    first, second = set(nodes(a)), set(nodes(b))
    return len(first & second) / len(first | second) if first | second else 1.0


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--program", type=Path, help="a program built before")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = record(asked.program or build(folder), folder, asked.frames)
        trees = {one: read_call_tree(open_experiment(one, folder).recordings(), CPU) for one in names}
        found = {
            (one, similarity, trim): patterns_in(trees[one], Options(pressure=similarity, trim=trim))[1]
            for one in names
            for similarity in SIMILARITIES
            for trim in TRIMS
        }
        print("nodes / patterns at τ_S" + "".join(f"{similarity:>12g}" for similarity in SIMILARITIES))
        for one in names:
            for trim in TRIMS:
                cells = [found[one, similarity, trim] for similarity in SIMILARITIES]
                print(
                    f"{one:26} β {trim:g}"
                    + "".join(f"{len(nodes(cell)):>6} / {len(cell.patterns):<3}" for cell in cells)
                )
        _stability(names, found)
        _deadlines(folder, names)


def _stability(names: list[str], found: dict[tuple[str, float, float], Variance]) -> None:
    steady = [similarity for similarity in SIMILARITIES if similarity >= 0.2]
    for one in names:
        pairs = itertools.pairwise(steady)
        least = min(shared(found[one, a, 0.0], found[one, b, 0.0]) for a, b in pairs)
        print(f"{one}: neighbouring τ_S from 0.2 on share at least {least:.0%} of their nodes")
    for first, second in zip(names, names[2:], strict=False):
        if first.rpartition("-")[0] == second.rpartition("-")[0]:
            print(
                f"{first} and {second.rpartition('-')[2]}: {shared(found[first, 0.4, 0.1], found[second, 0.4, 0.1]):.0%}"
            )


def _deadlines(folder: Path, names: list[str]) -> None:
    for one in names:
        listed = perflaw(folder, "annotate", "-e", one, "--all", "--json")
        ends = FRAME[one.split("-")[1]]
        calls = [a["component"] for a in json.loads(listed)["annotations"] if a["component"].endswith(ends)]
        if calls:
            print(perflaw(folder, "variance", calls[0], "-e", one, "--metric", "cpu", "--probability", "0.01"))


if __name__ == "__main__":
    main()
