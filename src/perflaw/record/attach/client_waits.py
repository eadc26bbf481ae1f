"""Whether a thread that sleeps waits for a client: for a connection that was made to the program, or for the next one.

How long such a wait takes is decided by the client and says nothing of the program. A wait for an answer of another server,
for a file or for another thread is a part of what the program does. Of a wait for several files at once one such connection
is enough, because a client can end it.
"""

from __future__ import annotations

import os
import platform
import re
import struct
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from perflaw.record.tree.path_tables import wilson

MATTERS: Final = 0.02
"""Part of a function's time: clients that wait ten times as long then make it slower by a fifth."""
_ONE: Final = frozenset(
    (
        *(0, 19, 45, 47, 299),  # read, readv, recvfrom, recvmsg, recvmmsg
        *(1, 20, 40, 44, 46, 307),  # write, writev, sendfile, sendto, sendmsg, sendmmsg
        *(43, 288),  # accept, accept4
    )
)
"""Numbers of the system calls of x86-64 that wait for the file of their first argument."""
_POLL: Final = frozenset((7, 271))
_SELECT: Final = frozenset((23, 270))
_EPOLL: Final = frozenset((232, 281, 441))
_MACHINE: Final = "x86_64"
_MOST_FILES: Final = 1024
"""Files of a wait that are looked at."""
_POLL_BYTES: Final = 8
_READ_S: Final = 0.5
"""Least time between two looks at the system's connections."""
_REST: Final = 20
"""Times as long as a look takes that the next one waits: a busy machine has many connections."""
_EPOLL_INODE: Final = re.compile(r"\bino:([0-9a-f]+)")
_SOCKET: Final = re.compile(r"socket:\[([0-9]+)\]")
_LISTENS: Final = "0A"
"""State of a TCP socket that waits for connections."""
_ACCEPTS: Final = 1 << 16
"""Flag of a Unix socket that waits for connections."""


class ClientWaits:
    """Knows which of a process's sockets are connections of clients."""

    def __init__(self, pid: int, memory: int) -> None:
        """``memory``: descriptor of the process's memory."""
        self.pid, self.memory = pid, memory
        self._is_client: dict[int, bool] = {}
        """Inode of a socket → whether a client made the connection, or will."""
        self._next_read = 0.0

    def is_one(self, call: bytes) -> bool:
        """Whether a system call, as the kernel tells it, waits for a client. OSError if the process has ended."""
        if platform.machine() != _MACHINE or not call:
            return False
        number, *words = call.split()
        arguments = [int(word, 16) for word in words]
        try:
            inodes = self._inodes(int(number), arguments)
        except (ValueError, OverflowError, struct.error):  # the memory has changed
            return False
        now = time.monotonic()
        if now >= self._next_read and not inodes <= self._is_client.keys():
            self._is_client = client_sockets(self.pid)
            ended = time.monotonic()
            self._next_read = ended + max(_READ_S, _REST * (ended - now))
        return any(self._is_client.get(inode, False) for inode in inodes)

    def _inodes(self, number: int, arguments: list[int]) -> set[int]:
        """The sockets that a system call waits for."""
        if number in _EPOLL:
            entries = Path(f"/proc/{self.pid}/fdinfo/{arguments[0]}").read_text()
            return {int(inode, 16) for inode in _EPOLL_INODE.findall(entries)[:_MOST_FILES]}
        files: list[int] = []
        if number in _ONE:
            files = [arguments[0]]
        elif number in _POLL:
            count = min(arguments[1], _MOST_FILES)
            data = os.pread(self.memory, _POLL_BYTES * count, arguments[0])
            files = [file for file, _, _ in struct.iter_unpack("<ihh", data)]
        elif number in _SELECT and arguments[1]:
            data = os.pread(self.memory, (min(arguments[0], _MOST_FILES) + 7) // 8, arguments[1])
            bits = int.from_bytes(data, "little")
            files = [file for file in range(arguments[0]) if bits >> file & 1]
        inodes = set()
        for file in files:
            with suppress(FileNotFoundError):
                if socket := _SOCKET.fullmatch(str(Path(f"/proc/{self.pid}/fd/{file}").readlink())):
                    inodes.add(int(socket[1]))
        return inodes


class ClientShares:
    """How much of their time functions wait for clients, over all threads of a program."""

    def __init__(self) -> None:
        self._looks: defaultdict[str, float] = defaultdict(float)
        self._waits: defaultdict[str, float] = defaultdict(float)

    def add(self, stack: Iterable[str], looks: float, *, is_wait: bool) -> None:
        """So many looks met a thread in these functions; ``is_wait``: waiting for a client."""
        for name in set(stack):
            self._looks[name] += looks
            if is_wait:
                self._waits[name] += looks

    def functions(self) -> frozenset[str]:
        """Functions that certainly wait for clients for a part of their time that matters."""
        shares = ((name, waits / self._looks[name], self._looks[name]) for name, waits in self._waits.items())
        return frozenset(name for name, share, looks in shares if wilson(share, looks) >= MATTERS)


def client_sockets(pid: int) -> dict[int, bool]:
    """Inode of each TCP and Unix socket that a process could have → whether it is a server's end of connections.

    A TCP connection is one if the same port of this machine waits for connections, and a Unix one if it has the path of a
    socket that does: a client's end has none.
    """
    rows = [row for name in ("tcp", "tcp6") for row in _rows(Path(f"/proc/{pid}/net/{name}"))]
    ports = {row[1].rpartition(":")[2] for row in rows if row[3] == _LISTENS}
    found = {int(row[9]): row[1].rpartition(":")[2] in ports for row in rows}
    local = [(int(row[6]), bool(int(row[3], 16) & _ACCEPTS), row[7:]) for row in _rows(Path(f"/proc/{pid}/net/unix"))]
    paths = {path[0] for _, accepts, path in local if accepts and path}
    return found | {inode: bool(path) and path[0] in paths for inode, _, path in local}


def _rows(path: Path) -> list[list[str]]:
    """Words of the lines below the first; none where the kernel has no such sockets."""
    with suppress(FileNotFoundError):
        return [line.split() for line in path.read_text(errors="replace").splitlines()[1:]]
    return []
