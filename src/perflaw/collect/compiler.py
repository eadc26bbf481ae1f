"""The C compiler: which one there is, and shared libraries made by it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FLAGS = ("-O2", "-std=gnu11", "-D_GNU_SOURCE", "-fPIC", "-fvisibility=hidden")
_COMPILERS = ("cc", "gcc", "clang")


def compiler() -> tuple[str, ...]:
    """``$CC`` with its options, else the first compiler on PATH; empty where there is none."""
    wanted = shlex.split(os.environ.get("CC", ""))
    for head, *options in [wanted] if wanted else [[name] for name in _COMPILERS]:
        if found := shutil.which(head):
            return (found, *options)
    return ()


def state(command: Sequence[str]) -> str:
    """Tells one version of a compiler from another without starting it."""
    if not command:
        return ""
    found = Path(command[0]).resolve()
    about = found.stat()
    return f"{command} {found} {about.st_size} {about.st_mtime_ns}"


def make_shared(command: Sequence[str], sources: Sequence[Path], folders: Sequence[Path], part: Path) -> str:
    """Compile the sources side by side and link them to ``part``, beside which object files are left.

    Gives the first command that failed and its words; empty if none did.
    """
    objects = [str(part.parent / f"{number}.o") for number in range(len(sources))]
    head = [*command, *FLAGS, *(f"-I{path}" for path in folders)]
    commands = [[*head, "-c", str(path), "-o", to] for path, to in zip(sources, objects, strict=True)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for said in pool.map(run, commands):
            if said:
                pool.shutdown(cancel_futures=True)
                return said
    return run([*command, *FLAGS, "-shared", *objects, "-lm", "-o", str(part)])


def run(command: Sequence[str]) -> str:
    """Run a command; it and its words where it failed, empty if it did not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    except OSError as error:
        return f"{shlex.join(command)}\nerror: {error}\n"
    said = (done.stderr or done.stdout).strip() or f"exit status {done.returncode}"
    return f"{shlex.join(command)}\n{said}\n" if done.returncode else ""
