"""``perflaw`` in a process of its own that need not import it: a fork of a server in which it is imported already.

The tests start ``perflaw record`` many hundred times, and two thirds of the CPU time of such a process, 0.2 of 0.3 s, are
imports. Tests that start a process in full (``subprocess`` and :func:`tests.conftest.started_perflaw`) see what those do.
"""

from __future__ import annotations

import atexit
import io
import multiprocessing
import os
import subprocess
import sys
from multiprocessing.context import ForkServerContext
from pathlib import Path
from tempfile import TemporaryDirectory

_PRELOADED = ("perflaw.cli.main", "perflaw.cli.record", "perflaw.record.session", "tests.forked")


def run_forked(folder: Path, words: list[str], timeout: float) -> subprocess.CompletedProcess[str]:
    """Run ``perflaw`` with these arguments in a folder, without standard input, as :func:`subprocess.run` would."""
    with TemporaryDirectory() as streams:
        names = [Path(os.devnull), Path(streams, "out"), Path(streams, "err")]
        process = _server().Process(target=_perflaw, args=(folder, words, dict(os.environ), names))
        process.start()
        try:
            process.join(timeout)
            if process.exitcode is None:
                raise subprocess.TimeoutExpired(words, timeout)
        finally:
            process.kill()
            process.join()
        out, err = (name.read_text(encoding="utf-8") for name in names[1:])
        return subprocess.CompletedProcess(["perflaw", *words], process.exitcode, out, err)


def _server() -> ForkServerContext:
    """The server of this process; it starts with the first call."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(list(_PRELOADED))
    return server


def _perflaw(folder: Path, words: list[str], environment: dict[str, str], names: list[Path]) -> None:
    """What the fork does: take the streams, folder and environment of the caller and be ``perflaw``."""
    for number, name in enumerate(names):
        opened = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.FileIO(number, mode, closefd=False), encoding="utf-8", write_through=number > 0)
        for number, mode in enumerate("rww")
    )
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["perflaw", *words]
    from perflaw.cli.main import main

    try:
        main(words)
    finally:
        atexit._run_exitfuncs()
