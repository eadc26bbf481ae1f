"""Data of uftrace: a folder that the tool itself turns into trace-event JSON."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from perflaw.errors import DataError, TargetError


def is_data(path: Path) -> bool:
    """Whether a folder is what ``uftrace record`` writes."""
    return path.is_dir() and (path / "info").is_file() and (any(path.glob("*.dat")) or (path / "task.txt").exists())


def dumped(path: Path) -> bytes:
    """The JSON of such a folder; TargetError where uftrace is not installed, DataError where it refuses."""
    tool = shutil.which("uftrace")
    if tool is None:
        why = "only uftrace itself reads its data, and it is not installed here"
        raise TargetError(f"{path}: data of uftrace", why, f"uftrace dump --chrome -d {path} > trace.json")
    done = subprocess.run([tool, "dump", "--chrome", "-d", str(path)], capture_output=True, check=False)
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip()[:200] or f"exit status {done.returncode}"
        raise DataError(f"{path}: uftrace cannot read its data", why, f"uftrace info -d {path}")
    return done.stdout
