"""How long a person's first time takes: install, record, show, laws and the page of a real program.

first_time.py: installs perflaw into a new virtual environment, without anything compiled or kept from before, runs the
commands of docs/tutorial.md up to the page in an empty folder, and prints each with its time, and the sum. The bar is two
minutes.
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
    print(f"load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder) / "venv"
        env = os.environ | {"PATH": f"{new}/bin:{os.environ['PATH']}", "PERFLAW_CACHE": f"{folder}/cache"}
        install = [f"{sys.executable} -m venv venv", f"pip install --quiet --disable-pip-version-check {ROOT}"]
        for command in [*install, *commands()]:
            began = time.monotonic()
            done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True)
            took = time.monotonic() - began
            total += took
            print(f"{took:6.1f} s  {command[:90]}", flush=True)
            if done.returncode:
                sys.exit(done.stdout + done.stderr)
    print(f"{total:6.1f} s  in all, {bars.check('the first time, in seconds', total, BAR_S)}")
    bars.leave()
