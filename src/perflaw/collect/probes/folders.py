"""Where areas are: the folder that programs are told of, else one of the user's own in shared memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from perflaw.collect.probes.areas import VARIABLE, start_time

_SHARED: Final = Path("/dev/shm")
_OURS: Final = "record"
"""Folders of recordings are named ``record.<pid>.<start time>-…``: one whose recorder has gone is litter."""


def standing_folder() -> Path:
    """Where programs that nobody tells otherwise make their areas."""
    told = os.environ.get(VARIABLE)
    return Path(told) if told else _SHARED / f"perflaw-{os.getuid()}"


def recording_folder(spool: Path) -> Path:
    """A folder for the areas of one recording, in shared memory, which never reaches a disk; else in its spool."""
    base = _SHARED / f"perflaw-{os.getuid()}"
    prefix = f"{_OURS}.{os.getpid()}.{start_time(os.getpid())}-"
    try:
        base.mkdir(mode=0o700, exist_ok=True)
        if base.stat().st_uid != os.geteuid():
            raise PermissionError(base)  # somebody made a folder of this name before us
        _sweep(base)
        return Path(tempfile.mkdtemp(prefix=prefix, dir=base))
    except OSError:
        folder = spool / "probes"
        folder.mkdir(mode=0o700)
        return folder


def _sweep(base: Path) -> None:
    """Remove what recorders left that were killed."""
    for folder in base.glob(f"{_OURS}.*.*-*"):
        _, pid, began = folder.name.partition("-")[0].split(".")
        if pid.isdigit() and start_time(int(pid)) != int(began or 0):
            shutil.rmtree(folder, ignore_errors=True)


def folders(base: Path | None = None) -> list[Path]:
    """The standing folder and those of recordings that go on now."""
    base = base or standing_folder()
    with suppress(OSError):
        return [base, *sorted(path for path in base.iterdir() if path.is_dir() and not path.is_symlink())]
    return [base]


def area_files(places: Iterable[Path]) -> list[Path]:
    """Files in these folders that are named as areas are."""
    found: list[Path] = []
    for folder in places:
        with suppress(OSError):
            found += (path for path in folder.iterdir() if path.name.replace(".", "").isdigit() and path.name[0] != ".")
    return sorted(found)
