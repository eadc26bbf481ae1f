"""What a process that runs already got of the machine, by the kernel's account."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from perflaw.record.machine import RunningMeter

BUSY = "import sys\nprint(flush=True)\nwhile True: pass"


def test_the_time_that_a_running_process_queues_for_a_cpu_is_known():
    """Of two that share a CPU each one waits for about half of the time."""
    cpu = max(os.sched_getaffinity(0))
    pair = [
        subprocess.Popen(
            [sys.executable, "-c", BUSY], stdout=subprocess.PIPE, preexec_fn=lambda: os.sched_setaffinity(0, {cpu})
        )
        for _ in range(2)
    ]
    try:
        for one in pair:
            one.stdout.readline()
        meter = RunningMeter(pair[0].pid)
        time.sleep(0.25)
        machine = meter.read()
        assert machine.queued_ns > 40_000_000
        assert machine.queued_share > 0.2
        assert machine.involuntary_switches > 0
        assert machine.others_ns >= 0
    finally:
        for one in pair:
            one.kill()
            one.wait()
            one.stdout.close()
    assert meter.read() is None  # it has ended
