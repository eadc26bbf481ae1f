"""What earlier recordings have left in a compiled program: the jumps of recorders that were killed, and agents to use again.

The agent is the library that was loaded into the program. It keeps a directory at a fixed address (``Directory`` of
native/compiled/inject/mirror.c), because it is loaded under a name of its own and nobody else has a handle of it.
"""

from __future__ import annotations

import hashlib
import os
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perflaw.record.attach.patching import JUMP

_ADDRESS: Final = 0x5FFF00000000
_HEAD: Final = struct.Struct("<QQQ")
_MAGIC: Final = int.from_bytes(b"PRFMDIR3", "little")
_JUMP_TABLE: Final = np.dtype([("rows", "<u8"), ("count", "<u8"), ("is_over", "<u8")])
_COPY: Final = np.dtype([("leave", "<u8"), ("attach", "<u8"), ("build", "<u8"), ("state", "<u8")])
_JUMP_TABLES, _COPIES = 1024, 1024
_MOST_JUMPS: Final = 1 << 22
"""Of a table; a larger number is none of ours."""
_FREE, _ENDS = 1, 2
"""``COPY_IS_FREE`` and ``COPY_ENDS`` of native/compiled/inject/mirror.h."""
_PATIENCE_S: Final = 10.0
"""Time in which an agent that ends a recording has to be free."""
_PAUSE_S: Final = 0.001


def build_of(library: Path) -> str:
    """What tells one build of the agent from another: 16 hexadecimal digits."""
    return hashlib.sha256(library.read_bytes()).hexdigest()[:16]


def agents(pid: int) -> int:
    """How many copies of the agent were loaded into a process."""
    return len(_copies(pid))


def free_agent(pid: int, build: str) -> int:
    """The address of the function by which an agent of this build records again; 0 if there is none.

    Waits for all that are about to end a recording: only then is it known which jumps a killed recorder has left.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while ((copies := _copies(pid))["state"] == _ENDS).any() and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
    free = copies[(copies["build"] == int(build, 16)) & (copies["state"] == _FREE)]
    return int(free["attach"][0]) if len(free) else 0


def left_behind(pid: int) -> NDArray[np.void]:
    """The jumps that recorders have written which were killed, rows ``JUMP`` in order of address."""
    tables: list[NDArray[np.void]] = []
    content = _content(pid)
    # It has ended meanwhile.
    with suppress(OSError), (Path("/proc") / str(pid) / "mem").open("rb", buffering=0) as memory:
        found = np.frombuffer(content, _JUMP_TABLE, _JUMP_TABLES, _HEAD.size) if content else ()
        for rows, count, is_over in found:
            if 0 < count <= _MOST_JUMPS and is_over:
                tables.append(np.frombuffer(os.pread(memory.fileno(), int(count) * JUMP.itemsize, int(rows)), JUMP))
    rows = np.concatenate([np.empty(0, JUMP), *tables])
    return rows[np.argsort(rows["address"], kind="stable")]


def _copies(pid: int) -> NDArray[np.void]:
    """Rows ``Copy``, of every copy of the agent in the process."""
    content = _content(pid)
    if not content:
        return np.empty(0, _COPY)
    count = min(_HEAD.unpack_from(content)[1], _COPIES)
    return np.frombuffer(content, _COPY, count, _HEAD.size + _JUMP_TABLES * _JUMP_TABLE.itemsize)


def _content(pid: int) -> bytes:
    """The directory; empty if no code was injected into the process before, or it has ended."""
    with suppress(OSError), (Path("/proc") / str(pid) / "mem").open("rb", buffering=0) as memory:
        size = _HEAD.size + _JUMP_TABLES * _JUMP_TABLE.itemsize + _COPIES * _COPY.itemsize
        content = os.pread(memory.fileno(), size, _ADDRESS)
        if len(content) == size and _HEAD.unpack_from(content)[0] == _MAGIC:
            return content
    return b""
