"""Building what stands in ``native/``."""

from __future__ import annotations

import subprocess
from pathlib import Path

NATIVE = Path(__file__).parents[2] / "native"


def make(folder: Path, *targets: str) -> None:
    """Build targets of ``native/Makefile`` in a folder."""
    command = ["make", "--no-print-directory", "-j2", "-C", str(NATIVE), f"BUILD={folder}", *targets]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
