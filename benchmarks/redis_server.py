"""Redis of Debian, built with -finstrument-functions, recorded while its own load generator drives it from another process."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from debian_source import fetch
from quota import quota

COMMANDS = ["set", "get", "incr", "lpush", "rpush", "lpop", "sadd", "hset", "zadd", "lrange_100", "mset"]
"""Each sent by a process of its own, all at once: a server's clients do not take turns."""
FLAGS = ["MALLOC=libc", "OPTIMIZATION=-O2", "CFLAGS=-g -finstrument-functions"]
PATIENCE_S = 120


def build(folder: Path) -> Path:
    """The folder of redis-server, redis-cli and redis-benchmark; a minute on two cores."""
    source = fetch("redis", folder) / "src"
    make = ["make", f"-j{os.cpu_count()}", *FLAGS, "redis-server", "redis-cli", "redis-benchmark"]
    done = subprocess.run(make, cwd=source, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(make)}\n{done.stderr[-2000:]}")
    return source


def record(
    programs: Path,
    folder: Path,
    experiment: str,
    requests: int,
    share: float | None = None,
    select: Sequence[str] = (),
) -> None:
    """One run under load, with call paths; ``share`` of one processor for the server, None for all of it."""
    port = str(free_port())
    server = [str(programs / "redis-server"), "--port", port, "--save", "", "--appendonly", "no", "--daemonize", "no"]
    perflaw = [sys.executable, "-m", "perflaw", "record", "--collect", "paths", "-e", experiment]
    perflaw += [word for name in select for word in ("--select", name)] + ["--"]
    client = [str(programs / "redis-cli"), "-p", port]
    load = [str(programs / "redis-benchmark"), "-p", port, "-q", "-c", "2", "-r", "1000", "-n", str(requests), "-t"]
    with subprocess.Popen(perflaw + server, cwd=folder, stdout=subprocess.DEVNULL) as recording:
        pid = _ready(client, recording)
        with quota(pid, share) if share else contextlib.nullcontext():
            clients = [subprocess.Popen([*load, command], stdout=subprocess.DEVNULL) for command in COMMANDS]
            if any(each.wait(PATIENCE_S * 5) for each in clients):
                sys.exit("the load generator failed")
            subprocess.run([*client, "shutdown", "nosave"], stdout=subprocess.DEVNULL, check=True, timeout=PATIENCE_S)
            _gone(pid)
        if recording.wait(PATIENCE_S):
            sys.exit("the recording failed")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _ready(client: list[str], recording: subprocess.Popen[bytes]) -> int:
    """The server's pid, once it answers."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and recording.poll() is None:
        told = subprocess.run([*client, "info", "server"], capture_output=True, text=True, timeout=PATIENCE_S).stdout
        for line in told.splitlines():
            if line.startswith("process_id:"):
                return int(line.partition(":")[2])
        time.sleep(0.1)
    sys.exit("the server does not answer")


def _gone(pid: int) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and Path(f"/proc/{pid}").exists():
        time.sleep(0.05)
