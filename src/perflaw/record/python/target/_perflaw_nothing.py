"""The do-nothing tracer: enters the program like the real one and records nothing. Its cost is the floor of overheads."""

from __future__ import annotations

import atexit
import sys
import time

from _perflaw_spool import Spool


def start(settings: dict[str, str]) -> None:
    """Define the beginning of the recording, and at exit its end."""
    spool = Spool(settings["PERFLAW_TARGET_SPOOL"])
    spool.define("start", time.perf_counter_ns(), 0, 0, sys.version.split()[0])
    atexit.register(lambda: spool.define("end", time.perf_counter_ns(), 0, 0, "", 0, ()))
