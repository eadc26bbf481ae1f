"""The do-nothing tracer: enters the target like the real one and records nothing. What is left is the floor of the cost."""

from __future__ import annotations

import atexit
import sys
import time

from _perflaw_spool import Spool


def start(settings: dict[str, str]) -> None:
    """Say that the recording began, and at exit that it ended."""
    spool = Spool(settings["PERFLAW_TARGET_SPOOL"])
    spool.define("start", time.perf_counter_ns(), 0, 0, sys.version.split()[0])
    atexit.register(lambda: spool.define("end", time.perf_counter_ns(), 0, 0, "", 0, 0, ()))
