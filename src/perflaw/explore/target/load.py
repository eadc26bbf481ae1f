"""Load beside the target, as a neighbour would make it: CPU, memory, disk (SPEX, §3.1). Each kind is a process of its own.

The module is run as a program, ``load.py cpu 0.5``, ``load.py memory 1073741824``, ``load.py disk 50000000 FOLDER``, and
therefore imports the standard library alone.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping

_SLICE_S = 0.02
_PAGE = mmap.PAGESIZE
_BLOCK = 1 << 16


def start_load(load: Mapping[str, float], folder: str) -> list[subprocess.Popen[bytes]]:
    """Start processes that make this load: ``cpu`` in cores, ``memory`` in bytes, ``disk`` in bytes a second."""
    words: list[list[str]] = []
    cores = load.get("cpu", 0.0)
    while cores > 1e-3:
        words.append(["cpu", str(min(cores, 1.0))])
        cores -= 1.0
    words += [[kind, str(int(load[kind])), folder] for kind in ("memory", "disk") if load.get(kind, 0) >= 1]
    return [
        subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, *each], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for each in words
    ]  # fmt: skip


def end_load(processes: list[subprocess.Popen[bytes]]) -> None:
    """Kill the processes."""
    for process in processes:
        process.send_signal(signal.SIGKILL)
    for process in processes:
        process.wait()


def use_cpu(share: float) -> None:
    """Keep a core busy for a share of the time, for ever."""
    while True:
        busy = time.monotonic() + _SLICE_S * share
        while time.monotonic() < busy:
            pass
        if share < 1:
            time.sleep(_SLICE_S * (1 - share))


def use_memory(size: int) -> None:
    """Hold memory, and write to each of its pages again and again so that it stays resident."""
    room = mmap.mmap(-1, max(size, _PAGE))
    while True:
        for place in range(0, len(room), _PAGE):
            room[place] = (room[place] + 1) & 255
        time.sleep(0.1)


def use_disk(rate: int, folder: str) -> None:
    """Write ``rate`` bytes per second through to the disk, into a file without a name of at most 256 MiB."""
    descriptor = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)
    block, began, written = os.urandom(_BLOCK), time.monotonic(), 0
    while True:
        os.pwrite(descriptor, block, written % (1 << 28))
        written += _BLOCK
        if written % (1 << 20) == 0:
            os.fdatasync(descriptor)
        time.sleep(max(0.0, written / rate - (time.monotonic() - began)))


def _main(words: list[str]) -> None:
    """Make the load that the arguments name, until the agent ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    if words[0] == "cpu":
        use_cpu(float(words[1]))
    elif words[0] == "memory":
        use_memory(int(words[1]))
    else:
        use_disk(int(words[1]), words[2])


if __name__ == "__main__":
    _main(sys.argv[1:])
