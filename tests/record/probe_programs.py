"""Programs with probes: built once a test run, run with a folder of their own for their areas."""

import functools
import os
import resource
import subprocess
import tempfile
from pathlib import Path

from perflaw.record.build import sources_folder
from tests.record.probe_areas import areas

SOURCES = Path(__file__).parents[1] / "programs" / "probes"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Wcast-align", "-Werror"]
C, CXX = ("gcc", "-std=gnu11"), ("g++", "-std=gnu++17", "-x", "c++")


@functools.cache
def _folder():
    return tempfile.TemporaryDirectory(prefix="perflaw-probes-")


@functools.cache
def built(name, compiler=C, *flags):
    """A program of tests/programs/probes; warnings are errors."""
    place = Path(_folder().name) / str(abs(hash((name, compiler, flags))))
    compiled([SOURCES / name], place, compiler, *flags)
    return place


def compiled(sources, place, compiler=C, *flags):
    include = f"-I{sources_folder() / 'include'}"
    command = [*compiler, *STRICT, "-O2", include, *map(str, sources), "-pthread", *flags, "-o", place]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def run(program, *words, folder, enable="*", status=0, limit=None, **environment):
    """The areas that a run leaves, and what it printed; folder None: where programs look by themselves."""
    variables = {"PATH": os.environ["PATH"], **environment}
    if enable:
        variables["PERFLAW_PROBES_ENABLE"] = enable
    if folder:
        variables["PERFLAW_PROBES"] = str(folder)
    done = subprocess.run(
        [program, *map(str, words)], env=variables, capture_output=True, text=True, timeout=60,
        preexec_fn=limit and (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))),
    )  # fmt: skip
    assert done.returncode == status, f"{done.returncode}: {done.stderr}"
    return (areas(folder) if folder and folder.is_dir() else []), done.stdout


def produced(area):
    """Every record asked for: those in the rings, and those that are counted as lost."""
    heads = sum(int(ring["head"]) + int(ring["lost_nested"]) for ring in area.rings)
    return heads + int(area.head["lost_no_ring"])
