"""Variance of a real codec: FFmpeg of Debian, mpeg2 and h263, encoding and decoding, as in Table 1 of Kumar & Pande.

    python benchmarks/video.py [--frames 100] [--program FILE] [--keep FOLDER]

Builds a minimal FFmpeg with -finstrument-functions, records it on two clips each way, raw frames in, as the paper does, and
prints, by CPU time and by recorded calls: the calling contexts, the nodes and patterns extracted, and those left at
similarity thresholds from 0.01 to 1 (τ_S), untrimmed and trimmed (β 0.1); how much the results of neighbouring thresholds
from 0.2 on share, those of the two clips, and those of one clip recorded twice, which is what clocks alone make
(pattern_trees.py); and how often a frame misses deadlines (§8.1). Sources, clips and recordings are kept where --keep
says so, and recordings that lie there are read again.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from debian_source import fetch
from pattern_trees import by_count, by_impact, shared

from perflaw.learn.variance.analyse import Survey, surveys
from perflaw.learn.variance.tree import Options
from perflaw.store.call_trees import read_call_tree
from perflaw.store.experiment import open_experiment
from perflaw.types import CPU, EVENTS
from perflaw.types.recordings import Metric
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
WAYS = ("encode", "decode")
PRESSURES, TRIMS = (0.01, 0.2, 0.4, 0.6, 0.8, 1.0), (0.0, 0.1)
FRAME = {
    ("mpeg2video", "encode"): "encode_picture",
    ("h263", "encode"): "encode_picture",
    ("mpeg2video", "decode"): "mpeg_decode_frame",
    ("h263", "decode"): "ff_h263_decode_frame",
}
"""Functions that are called once a frame."""
SIGMAS = (1.0, 2.0, 5.0)
"""Deadlines, in standard deviations beyond the mean: Chebyshev promises 100, 25 and 4 %, the latter two the paper's."""
PROBABILITIES = (0.25, 0.04, 0.01)

Found = dict[tuple[str, float, float], Variance]
"""Experiment, τ_S and β → result."""


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


def record(program: Path, folder: Path, frames: int) -> None:
    """Every codec, each way, on every clip; the first clip twice. Clips are made apart: what makes them is no codec."""
    for clip in CLIPS:
        raw = folder / f"{clip}.yuv"
        source = f"{clip}=size=352x288:rate=25,format=yuv420p"
        made = ["-f", "lavfi", "-i", source, "-frames:v", str(frames), "-f", "rawvideo", "-y", str(raw)]
        subprocess.run([program, "-loglevel", "error", *made], check=True)
        for codec, suffix in CODECS.items():
            coded = folder / f"{clip}.{suffix}"
            given = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", "352x288", "-r", "25", "-i", raw]
            encode = [*given, "-c:v", codec, "-threads", 1, "-y", coded]
            decode = ["-threads", 1, "-i", coded, "-f", "null", "-"]
            for way, words in zip(WAYS, (encode, decode), strict=True):
                for name in (f"{codec}-{way}-{clip}", *([f"{codec}-{way}-again"] if clip == CLIPS[0] else [])):
                    perflaw(folder, "record", "-e", name, "--", program, "-loglevel", "error", *words)


def perflaw(folder: Path, *words: object) -> str:
    """Its output; the benchmark ends where it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "perflaw", *map(str, words)], cwd=folder, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    print(done.stderr.strip(), file=sys.stderr)
    return done.stdout


def analysed(folder: Path, names: Sequence[str], metric: Metric) -> tuple[Found, dict[str, Survey]]:
    """The patterns of every experiment at every threshold, and the surveys that explain functions."""
    found, explainers = {}, {}
    for one in names:
        given = read_call_tree(open_experiment(one, folder).recordings(), metric)
        settings = [Options(pressure=pressure, trim=trim) for pressure, trim in itertools.product(PRESSURES, TRIMS)]
        for each in surveys(given, settings):
            found[one, each.options.pressure, each.options.trim] = each.variance
            explainers[one] = each
    return found, explainers


def size(found: Variance) -> str:
    """Nodes and patterns."""
    return f"{sum(len(one.nodes) for one in found.patterns)}/{len(found.patterns)}"


def table(names: Sequence[str], found: Found) -> None:
    """Table 1 of the paper."""
    print(f"{'':32}{'contexts':>9}{'extracted':>11}" + "".join(f"  β {b:<4g}{p:>5g}" for b in TRIMS for p in PRESSURES))
    for one in names:
        whole = found[one, PRESSURES[0], 0.0]
        cells = "".join(f"{size(found[one, p, b]):>13}" for b in TRIMS for p in PRESSURES)
        print(f"{one:32}{whole.tree_nodes:>9,}{'/'.join(map(str, whole.extracted)):>11}{cells}")


def sharing(found: Found) -> None:
    """Stability over thresholds and convergence over clips, both after trimming."""
    print(f"\n{'shared, by count / by impact':32}{'τ_S 0.2–1':>16}{'two clips':>16}{'one clip twice':>16}")
    for codec, way in itertools.product(CODECS, WAYS):
        first, second = (f"{codec}-{way}-{clip}" for clip in CLIPS)
        steady = [found[one, p, 0.1] for one in (first, second) for p in PRESSURES if p >= 0.2]
        half = len(steady) // 2
        neighbours = [(a, b) for side in (steady[:half], steady[half:]) for a, b in itertools.pairwise(side)]
        clips = [(found[first, 0.4, 0.1], found[second, 0.4, 0.1])]
        again = [(found[first, 0.4, 0.1], found[f"{codec}-{way}-again", 0.4, 0.1])]
        cells = "".join(f"{least(pairs):>16}" for pairs in (neighbours, clips, again))
        print(f"{codec} {way:<21}{cells}")


def least(pairs: Sequence[tuple[Variance, Variance]]) -> str:
    """The least share of any pair, every node alike and weighted by σN."""
    return " / ".join(f"{min(shared(a, b, weight).share for a, b in pairs):.0%}" for weight in (by_count, by_impact))


def deadlines(explainers: dict[str, Survey]) -> None:
    """Per-frame figures by CPU time (§8.1), as ``perflaw variance FUNCTION --deadline … --probability …`` tells them."""
    print(
        "\nframes: P(time > mean + kσ) as recorded (95 %), Chebyshev's bound; deadline for a probability, and Chebyshev's"
    )
    for (codec, way), clip in itertools.product(FRAME, CLIPS):
        name = f"{codec}-{way}-{clip}"
        survey = replace(explainers[name], options=Options(probabilities=PROBABILITIES))
        frame = next(one for one in survey.tree.call_tree.components if one.name == FRAME[codec, way])
        one = survey.explain(frame, (), with_drivers=False)
        mean, sigma = one.mean, one.mean * one.cov
        one = survey.explain(frame, [mean + k * sigma for k in SIGMAS], with_drivers=False)
        print(f"{name}: {frame.name}, {one.n} frames, mean {mean / 1e6:.2f} ms, CoV {one.cov:.2f}")
        for k, d in zip(SIGMAS, one.deadlines, strict=True):
            seen = f"{d.observed:.1%} ({d.low:.1%}–{d.high:.1%})"
            print(f"    mean + {k:g}σ = {d.deadline / 1e6:.2f} ms: {seen}, at most {d.chebyshev:.0%}")
        for b in one.bounds:
            seen = "unknown" if b.observed is None else f"{b.observed / 1e6:.2f} ms"
            print(f"    {b.probability:.0%} take longer than {seen}; by Chebyshev {b.chebyshev / 1e6:.2f} ms")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--program", type=Path, help="a program built before")
    parser.add_argument("--keep", type=Path, help="folder of clips and recordings")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = asked.keep or Path(name)
        folder.mkdir(exist_ok=True)
        if not (folder / ".perflaw").exists():
            record(asked.program or build(folder), folder, asked.frames)
        names = [f"{codec}-{way}-{clip}" for codec, way, clip in itertools.product(CODECS, WAYS, CLIPS)]
        again = [f"{codec}-{way}-again" for codec, way in itertools.product(CODECS, WAYS)]
        for metric in (CPU, EVENTS):
            print(f"\n{metric.name}: nodes/patterns")
            found, explainers = analysed(folder, [*names, *again], metric)
            table(names, found)
            sharing(found)
            if metric is CPU:
                deadlines(explainers)


if __name__ == "__main__":
    main()
