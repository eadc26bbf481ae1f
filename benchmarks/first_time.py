"""How long a person's first time takes: record, show, laws and the page of a real program, with perflaw installed already.

first_time.py: runs the commands of docs/tutorial.md up to the page in an empty folder, prints each with its time, and the
sum. The bar is two minutes, less what installing takes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from shared import ROOT, Bars

BAR_S = 120.0


def commands() -> list[str]:
    """The commands of the tutorial's blocks, up to its last section."""
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8").split("## 3.")[0]
    return [line[2:] for line in text.splitlines() if line.startswith("$ ")]


if __name__ == "__main__":
    bars, total = Bars(), 0.0
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    print(f"load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        for command in commands():
            began = time.monotonic()
            done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True)
            took = time.monotonic() - began
            total += took
            print(f"{took:6.1f} s  {command[:90]}", flush=True)
            if done.returncode:
                sys.exit(done.stdout + done.stderr)
    print(f"{total:6.1f} s  in all, {bars.check('the first time, in seconds', total, BAR_S)}")
    bars.leave()
