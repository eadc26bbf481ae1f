"""Calls leaf and second; between them it forbids itself all system calls but a few (seccomp), as its argument says."""

import ctypes
import struct
import sys

# Reading, writing, memory, signals, threads and the end, which Python itself needs.
ALLOWED = (0, 1, 3, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 25, 28, 60, 72, 131, 202, 219, 230, 231, 262, 318)


def forbid(answer):
    rows = [(0x20, 0, 0, 0)]
    for number in ALLOWED:
        rows += [(0x15, 0, 1, number), (0x06, 0, 0, 0x7FFF0000)]
    rows.append((0x06, 0, 0, answer))
    text = b"".join(struct.pack("<HBBI", *row) for row in rows)
    code = ctypes.create_string_buffer(text, len(text))
    program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(rows), ctypes.addressof(code)), 16)
    library = ctypes.CDLL(None)
    assert library.prctl(38, 1, 0, 0, 0) == 0
    assert library.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program))) == 0


def leaf(n):
    return n + 1


def second(n):
    return leaf(n) + leaf(n)


for n in range(1000):
    leaf(n)
if sys.argv[1] != "free":
    forbid({"killed": 0x80000000, "trapped": 0x30000, "refused": 0x50001}[sys.argv[1]])
print(sum(second(n) for n in range(10_000)), flush=True)
