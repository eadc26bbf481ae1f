"""A share of one processor for a process that runs, by the kernel's quota (cgroups of version 2 or 1; needs root)."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

PERIOD_US = 20_000
V1, V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")


@contextlib.contextmanager
def quota(pid: int, share: float) -> Iterator[None]:
    """The process and its threads, and those that it starts, get this share of one processor while entered."""
    version_2 = (V2 / "cgroup.controllers").exists()
    group = (V2 if version_2 else V1) / f"perflaw-{os.getpid()}"
    group.mkdir()
    try:
        if version_2:
            (V2 / "cgroup.subtree_control").write_text("+cpu")
            (group / "cpu.max").write_text(f"{round(PERIOD_US * share)} {PERIOD_US}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(round(PERIOD_US * share)))
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for left in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):  # it has just ended
                (group.parent / "cgroup.procs").write_text(left)
        group.rmdir()
