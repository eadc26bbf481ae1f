"""Spools of the native tracer written by hand: folders of processes, rings of threads (native/core/base/ring.h)."""

import struct

import numpy as np

from perflaw.record.tree.records import ENTER, EXIT, RECORD, THREAD

START, CAPACITY = 4096, 1024
WRITTEN, READ, STOP = 64, 128, 192
NO_PROCESS = 1 << 22
"""Numbers of processes from here on are never given."""


def write_ring(path, events, capacity=CAPACITY, read=0):
    """A ring into which the events were written, the last ``capacity`` of them being there."""
    head = bytearray(START)
    struct.pack_into("<QII", head, 0, 0x31474E4952465250, 1, capacity)
    struct.pack_into("<Q", head, WRITTEN, len(events))
    struct.pack_into("<Q", head, READ, read)
    records = np.zeros(capacity, RECORD)
    for place, event in enumerate(events):
        records[place % capacity] = event
    path.write_bytes(bytes(head) + records.tobytes())


def word(path, offset, kind="<Q"):
    return struct.unpack_from(kind, path.read_bytes(), offset)[0]


def calls(count, start=0, cost=10, code=1):
    """Events of a thread that calls a function again and again."""
    events = [(1, 0, 0, -1, -1, THREAD)]
    for number in range(count):
        begin = start + number * cost
        events += [(begin, number + 1, code, -1, -1, ENTER), (begin + cost, number + 1, code, -1, -1, EXIT)]
    return events


def write_process(spool, pid, ppid, events, argv=("python", "app.py"), serial=1, began=0, ended=None):
    """The folder of a process with one ring; ``ended``: its clock at its end, None if it never came to that."""
    folder = spool / f"{pid}-{serial}"
    folder.mkdir(parents=True)
    lines = [
        ("process", pid, ppid, tuple(argv)),
        ("start", began, 20, 0, "3.13.0"),
        ("code", 1, "app.f", "app.py", 1, "own", (), ()),
    ]
    lines += [("end", ended, 0, 0, "", 0, ())] if ended is not None else []
    (folder / "definitions").write_text("".join(f"{line!r}\n" for line in lines))
    if events:
        write_ring(folder / "0001.ring", events)
    return folder
