"""Readers of files and of messages of others get damaged ones, guided by coverage: fuzz.py [READER...] [--seconds 60].

Atheris (libFuzzer) changes the files of ``corpora/`` so that further branches of a reader are reached. What a reader may
do is to read, or to refuse with an error of the project's own; any other exception, 10 seconds of CPU time for one input,
or 2 GB of memory is a fault, whose input is kept beside the message. Each reader is a process of its own and gets its part
of the seconds; it is forked from this one, in which perflaw's modules are instrumented once. Told are executions, and the
branches of perflaw that were reached.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import ctypes
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from shared import CACHE, ROOT, Bars

CORPORA = Path(__file__).parent / "corpora"
LIMITS = ("-timeout=300", "-rss_limit_mb=2048", "-print_final_stats=1", "-max_len=16384")
"""Of libFuzzer: one input takes at most 2 GB, and 300 s of wall time, which on a busy machine are few of CPU time."""
MAX_CPU_S = 10.0
"""CPU time that one input may take."""
NATIVE = {"rings": "fuzz_core", "events": "fuzz_traces"}
"""Corpora of the readers in C, and their fuzzers with AddressSanitizer (native/tests/): what a program may write into its
rings; traces of other tools."""
Reader = Callable[[bytes], object]


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def in_file(read: Callable[[Path], object], name: str = "data") -> Reader:
    """A reader that is given the path of a file with the data."""
    folder = Path(tempfile.mkdtemp(prefix="perflaw-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    atexit.register(shutil.rmtree, folder)

    def call(data: bytes) -> object:
        (folder / name).write_bytes(data)
        return read(folder / name)

    return call


def readers() -> dict[str, Reader]:
    """All readers by the name of their corpus."""
    from perflaw.api.laws import load_laws
    from perflaw.explore.study_file import read_study
    from perflaw.imports.formats import ForeignFile
    from perflaw.imports.registry import read_benchmarks, read_trace
    from perflaw.imports.runs import core_file
    from perflaw.imports.uftrace import Tasks, parse_dump
    from perflaw.laws.reading import parse
    from perflaw.mine.messages import Measurement, Request
    from perflaw.record.compiled.dwarf import functions_at
    from perflaw.record.compiled.gcov_files import read_header
    from perflaw.record.compiled.inject.relocation import Unpatchable, patch_of
    from perflaw.record.php.trace import XdebugTrace, no_functions
    from perflaw.record.tree.records import DefinitionsReader, ProcessIdentity
    from perflaw.record.workload_file import read_workloads
    from perflaw.specs.files import parse_specs
    from perflaw.store.checksums import sealed
    from perflaw.store.csv_files import parse_csv
    from perflaw.store.experiment import read_manifest
    from perflaw.store.remote import _decoded
    from perflaw.store.tables import read_table
    from perflaw.wire.channel import UNGREETED, Decoder, MessageLimits

    def elf(path: Path) -> None:
        functions_at(path, [0, 4096, 0x1129])

    def manifest(path: Path) -> None:
        with contextlib.suppress(ValueError, RecursionError):  # what is no JSON is refused as it is
            document = json.loads(path.read_bytes())
            if isinstance(document, dict):  # else every change would end at the checksum
                path.write_text(json.dumps(sealed(document)))
        read_manifest(path.parent)

    def definitions(path: Path) -> None:
        known = DefinitionsReader(path).update()
        known.lanes()
        known.line_at(1, 2)

    def php(path: Path) -> None:
        if trace := XdebugTrace.of(path):
            trace.recorded(None, 1, ProcessIdentity(1, 0, ()), no_functions)

    def messages(data: bytes) -> None:
        kind = Request if data[:1] == b"r" else Measurement
        kind.from_json(text_of(data[1:]), "stub")

    def frames(limits: MessageLimits) -> Reader:
        def read(data: bytes) -> None:
            decoder = Decoder(limits)
            for at in range(0, len(data), 7):
                decoder.feed(data[at : at + 7])
                while decoder.begun and not decoder.wanted():
                    decoder.take()

        return read

    def twin(path: Path) -> None:
        load_laws(str(path))

    def pushed(data: bytes) -> None:
        with contextlib.suppress(ValueError, RecursionError):
            document = json.loads(data)
            if isinstance(document, dict) and isinstance(document.get("run"), dict):
                data = json.dumps(sealed({**document, "run": sealed(document["run"])})).encode()
        _decoded("000001", data, "place")

    def code(data: bytes) -> None:
        with contextlib.suppress(Unpatchable):
            patch_of(data, 0x401000)

    library = core_file(len)

    def streamed(path: Path) -> None:
        for process in read_trace(path, library).processes:
            process.tree(library, 1)

    trace = in_file(streamed)
    return {
        "laws": lambda data: parse(text_of(data)),
        "specs": lambda data: parse_specs(text_of(data), "specs"),
        "studies": in_file(read_study, "study.yaml"),
        "workloads": in_file(read_workloads, "workloads.toml"),
        "csv": lambda data: parse_csv("data.csv", text_of(data)),
        "traces": trace,
        "otlp": trace,
        "benchmarks": in_file(lambda path: read_benchmarks(ForeignFile.open(path))),
        "uftrace": lambda data: parse_dump(io.StringIO(text_of(data)), Tasks({}, {9: "program"})),
        "elf": in_file(elf),
        "gcov": in_file(read_header),
        "definitions": in_file(definitions),
        "php": in_file(php),
        "messages": messages,
        "manifests": in_file(manifest, "run.json"),
        "tables": in_file(lambda path: read_table(path.parent, "components"), "components.parquet"),
        "twins": in_file(twin, "perf.law.json"),
        "pushed": pushed,
        "code": code,
        "frames": frames(MessageLimits()),
        "greetings": frames(UNGREETED),
    }


def instrumented() -> dict[str, Reader]:
    """The readers of this process, whose branches libFuzzer sees."""
    import atheris

    with atheris.instrument_imports(include=["perflaw"]):
        return readers()


def fuzz(read: Reader, options: list[str]) -> None:
    """Fuzz one reader in this process, which does not return."""
    import atheris

    from perflaw.errors import PerflawError

    def one(data: bytes) -> None:
        begun = time.process_time()
        with contextlib.suppress(PerflawError):
            read(data)
        if (took := time.process_time() - begun) > MAX_CPU_S:
            raise TimeoutError(f"{took:.1f} s of CPU time for one input")

    atheris.Setup([sys.argv[0], *options], one)
    atheris.Fuzz()


def forked(read: Reader, options: list[str], folder: str) -> tuple[int, str]:
    """Exit status and standard error of a child that fuzzes one reader."""
    with tempfile.TemporaryFile("w+", errors="replace") as told:
        child = os.fork()
        if child == 0:
            try:
                os.chdir(folder)
                os.dup2(told.fileno(), 1)
                os.dup2(told.fileno(), 2)
                fuzz(read, options)
            finally:  # of C: libFuzzer keeps the input there; of Python, the child would remove its parent's folders
                ctypes.CDLL(None).exit(1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        told.seek(0)
        return status, told.read()


def native(name: str) -> str:
    """The fuzzer of a reader in C, built by clang."""
    built = CACHE / "native"
    fuzzer = str(built / NATIVE[name])
    command = ["make", "-s", "-C", str(ROOT / "native"), f"BUILD={built}", fuzzer]
    subprocess.run(command, check=True, stdout=sys.stderr)
    return fuzzer


def run(name: str, read: Reader | None, seconds: int, found: Path) -> tuple[int, int, str]:
    """Executions, branches reached, and the message of a fault, of one reader; without ``read`` of one in C."""
    with tempfile.TemporaryDirectory() as grown:
        options = [f"-max_total_time={seconds}", f"-artifact_prefix={found}/{name}-", *LIMITS]
        options += [grown, str(CORPORA / name)]
        if read:
            status, told = forked(read, options, grown)
        else:
            command = [native(name), *options]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=grown)
            status, told = done.returncode, done.stderr
    executed = re.findall(r"number_of_executed_units: (\d+)", told)
    covered = re.findall(r"cov: (\d+)", told)
    lines = [line for line in told.splitlines() if re.match(r".*(Error|Exception|ERROR|artifact)", line)]
    fault = "" if not status else " | ".join(lines[-8:])[:1500] or told[-800:]
    return int(executed[-1]) if executed else 0, int(covered[-1]) if covered else 0, fault


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("readers", nargs="*", help="names of folders of corpora/; all by default")
    parser.add_argument("--seconds", type=int, default=60, help="for all readers together")
    options = parser.parse_args()
    names = options.readers or sorted(path.name for path in CORPORA.iterdir())
    found = CACHE / "fuzz"
    found.mkdir(parents=True, exist_ok=True)
    for name in NATIVE.keys() & set(names):
        native(name)  # compiling is no part of the seconds
    reads = instrumented() if set(names) - NATIVE.keys() else {}
    bars, total, faults = Bars(), 0, 0
    for name in names:
        executed, covered, fault = run(name, reads.get(name), max(1, options.seconds // len(names)), found)
        total, faults = total + executed, faults + bool(fault)
        print(
            f"{name:10} {executed:9,} executions, {covered:5} branches" + f", FAULT: {fault}" * bool(fault), flush=True
        )
        if not executed and not fault:
            sys.exit(f"{name}: nothing was executed")
    beside = bars.check("readers with a fault", faults, 0)
    print(f"{total:,} executions of {len(names)} readers; with a fault {faults}  {beside}")
    bars.leave()


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
