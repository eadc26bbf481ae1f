"""Single bits of a recording's files are changed: is another answer ever given unnoticed: corruption.py [TRIALS] [SEED].

Each trial changes one bit of one file, chosen by its share of the recording's bytes, reads what that file holds, and puts
the bit back. The reader must refuse it, or give exactly what the unchanged file gives.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from shared import Bars, recorded

from perflaw.errors import StoreError
from perflaw.store.experiment import open_experiment, read_manifest
from perflaw.store.tables import read_table

PROGRAM = """
def inner(n): return sum(range(n))
def outer(n): return [inner(k) for k in range(n)]
for n in range(60): outer(n)
"""


def read(path: Path) -> object:
    """What a file of a recording holds."""
    if path.name == "run.json":
        return read_manifest(path.parent)
    return list(read_table(path.parent, path.stem))


def changed(path: Path, bit: int, expected: object) -> str:
    """What comes of a changed bit: refused, the same, or SILENT."""
    with path.open("r+b") as file:
        file.seek(bit // 8)
        before = file.read(1)
        os.pwrite(file.fileno(), bytes([before[0] ^ 1 << bit % 8]), bit // 8)
        try:
            return "the same" if read(path) == expected else "SILENT"
        except StoreError:
            return "refused"
        finally:
            os.pwrite(file.fileno(), before, bit // 8)


def main(trials: int = 10_000, seed: int = 1) -> None:
    bars, chance = Bars(), random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "app.py").write_text(PROGRAM)
        subprocess.run(recorded("--", sys.executable, "app.py"), cwd=folder, check=True, capture_output=True)
        (recording,) = open_experiment("default", folder).recordings()
        files = sorted(path for path in recording.folder.iterdir() if path.is_file())
        expected = {path: read(path) for path in files}
        sizes = [path.stat().st_size for path in files]
        outcomes = {"refused": 0, "the same": 0, "SILENT": 0}
        for path in chance.choices(files, sizes, k=trials):
            bit = chance.randrange(path.stat().st_size * 8)
            outcome = changed(path, bit, expected[path])
            outcomes[outcome] += 1
            if outcome == "SILENT":
                print(f"  {path.name}, bit {bit}")
        assert {path: read(path) for path in files} == expected
    beside = bars.check("silent changes", outcomes["SILENT"], 0)
    print(f"{trials:,} changed bits in {len(files)} files, {sum(sizes):,} bytes: {outcomes}; silent changes {beside}")
    bars.leave()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
