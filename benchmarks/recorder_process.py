"""``perflaw`` as a process that tells what it used: recorder_process.py REPORT DISTANCE ARGUMENT...

DISTANCE is how far links reach (16 as a rule, 0 for none), which no option of the product changes. REPORT, a file,
gets the CPU seconds and the peak memory of the recorder alone, without those of its target.
"""

import functools
import json
import resource
import sys
from pathlib import Path

from perflaw.cli.main import main
from perflaw.record.python import native_reader, tracers


def used() -> resource.struct_rusage:
    return resource.getrusage(resource.RUSAGE_SELF)


class Reader(native_reader.NativeReader):
    """Notes what it took until the target had ended."""

    recording_kb = 0

    def finish(self, pid):
        Reader.recording_kb = used().ru_maxrss
        return super().finish(pid)


def run(report: str, distance: str, *arguments: str) -> None:
    native_reader.Core = functools.partial(native_reader.Core, max_distance=int(distance))
    tracers.NativeReader = Reader
    try:
        main(list(arguments))
    finally:
        end = used()
        figures = {"cpu_s": end.ru_utime + end.ru_stime, "peak_kb": end.ru_maxrss, "recording_kb": Reader.recording_kb}
        Path(report).write_text(json.dumps(figures))


if __name__ == "__main__":
    run(*sys.argv[1:])
