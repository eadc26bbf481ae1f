"""A PostgreSQL server of Debian's package, on loopback over a database of its own; it is killed and started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

START_S = 60.0


class PostgresServer:
    """A running server."""

    def __init__(self) -> None:
        self._programs = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)
        assert self._programs, "PostgreSQL is missing; run: sh scripts/servers.sh tests"
        # It refuses to run as root, who starts it as the user that Debian's package made for it.
        self._as = {"user": "postgres", "group": "postgres", "extra_groups": ()} if os.getuid() == 0 else {}
        self.folder = Path(tempfile.mkdtemp(prefix="perflaw-postgres-", dir="/var/tmp"))
        if self._as:
            shutil.chown(self.folder, "postgres", "postgres")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.url = f"postgresql://perflaw@127.0.0.1:{self._port}/postgres"
        make = ["initdb", "-D", str(self.folder / "data"), "-U", "perflaw", "-A", "trust", "--no-sync"]
        subprocess.run(
            [self._programs / make[0], *make[1:]], cwd=self.folder, check=True, stdout=subprocess.DEVNULL, **self._as
        )
        self._process = None
        self.start()

    def start(self) -> None:
        """Start it, and return when it answers; a killed server's processes may take a moment to go."""
        deadline = time.monotonic() + START_S
        while not self._is_ready():
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            if self._process is None or self._process.poll() is not None:
                words = ["-D", "data", "-p", str(self._port), "-c", "listen_addresses=127.0.0.1"]
                words += ["-c", f"unix_socket_directories={self.folder}"]
                with (self.folder / "log").open("a") as log:
                    self._process = subprocess.Popen(
                        [self._programs / "postgres", *words], cwd=self.folder, stdout=log, stderr=log, **self._as
                    )
            time.sleep(0.2)

    def _is_ready(self) -> bool:
        words = [self._programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self._port)]
        return subprocess.run(words).returncode == 0

    def kill(self) -> None:
        """kill -9 of the server and of all its processes."""
        assert self._process
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        for pid in (self._process.pid, *map(int, children)):
            os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """End it, and remove its folder."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
