"""What it costs on this machine to visit and to free objects of Python, by how many live.

While they fit in the caches, that is four times cheaper than beyond. A program at ten times the size often has left the
caches, and nothing in its small runs tells what that costs; the machine does. It is measured once and kept.
"""

from __future__ import annotations

import json
import platform
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from perflaw.record.cache import keep, read_kept
from perflaw.types.recordings import HeapCosts

_MEASURE: Final = """
import gc, json, sys, time
gc.disable()

class Node:
    pass

def garbage(nodes):
    root = Node()
    root.all = []
    for i in range(nodes):
        node = Node()
        node.root, node.name, node.items, node.rest = root, f"n{i}", [], {"i": i + 1000}
        root.all.append(node)
    return root

rows = []
for nodes, rounds in ((14_000, 6), (43_000, 3), (130_000, 2)):
    costs = []
    for _ in range(rounds):
        before = sys.getallocatedblocks(), len(gc.get_objects())
        root = garbage(nodes)
        blocks, objects = sys.getallocatedblocks() - before[0], len(gc.get_objects()) - before[1]
        begun = time.process_time_ns()
        gc.collect()
        visited = time.process_time_ns()
        del root
        freed = time.process_time_ns()
        gc.collect()
        costs.append(((visited - begun) / objects, (time.process_time_ns() - freed) / blocks))
    rows.append((blocks, objects, min(visit for visit, _ in costs), min(free for _, free in costs)))
print(json.dumps(dict(zip(("blocks", "objects", "visit_ns", "free_ns"), zip(*rows)))))
"""
_MAX_S: Final = 20.0


@cache
def heap_costs() -> HeapCosts | None:
    """The costs on this machine; None if they cannot be measured. A second of CPU time, once for each machine."""
    name = f"heap-{_identity()}.json"
    with suppress(ValueError, TypeError, KeyError):  # it was not measured yet, or is damaged
        return _read(read_kept(name) or b"")
    try:
        command = [sys.executable, "-I", "-S", "-c", _MEASURE]
        costs = _read(subprocess.run(command, capture_output=True, text=True, timeout=_MAX_S, check=True).stdout)
    except (OSError, ValueError, TypeError, KeyError, subprocess.SubprocessError):
        return None
    keep(name, json.dumps(asdict(costs)).encode())
    return costs


def _read(text: str | bytes) -> HeapCosts:
    columns = json.loads(text)
    whole = (tuple(map(int, columns[name])) for name in ("blocks", "objects"))
    return HeapCosts(*whole, *(tuple(map(float, columns[name])) for name in ("visit_ns", "free_ns")))


def _identity() -> str:
    """Distinguishes machines that share a folder, and versions of the measurement."""
    model = ""
    with suppress(OSError):  # no /proc
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line for line in lines if line.startswith("model name")), "")
    return sha256(f"{socket.gethostname()} {model} {platform.python_version()} {_MEASURE}".encode()).hexdigest()[:16]
