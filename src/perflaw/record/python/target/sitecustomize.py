"""Python imports it when it starts, because its folder is first on PYTHONPATH; ``_perflaw_begin`` does all the work.

It is short, because what comes before its first line counts as the program's: its own compilation does, where Python may
not keep bytecode (PYTHONDONTWRITEBYTECODE).
"""

from time import process_time_ns

_entered_ns = process_time_ns()

import sys  # noqa: E402 (the clock is read first)

import _perflaw_begin  # noqa: E402 (the clock is read first)

del sys.modules["_perflaw_begin"]
_perflaw_begin.begin(_entered_ns)
_perflaw_begin.hand_over()
