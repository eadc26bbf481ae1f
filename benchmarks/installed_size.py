"""What `pip install perflaw` puts on the disk: installed_size.py [--wheel dist/perflaw-….whl].

The wheel, or one that is built of this checkout, is installed in an empty environment without pip. Sizes are the blocks
that the files take, in megabytes of 2²⁰ bytes, by the top-level names in site-packages; the bytecode that pip compiles
counts. Bar: 250 MB. Status 1 where it is missed, or where SciPy is among the packages.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from shared import ROOT, Bars

BAR_MB = 250.0
SHOWN_MB = 1.0


def installed(wheel: Path | None, folder: Path) -> Path:
    """The site-packages with the wheel and what it depends on, and nothing else."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    if wheel is None:
        subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", folder, ROOT], check=True)
        (wheel,) = folder.glob("perflaw-*.whl")
    subprocess.run([*pip, "--python", folder / "env" / "bin" / "python", "install", wheel], check=True)
    (site,) = (folder / "env").glob("lib/python*/site-packages")
    return site


def sizes(site: Path) -> Counter[str]:
    """Megabytes by package: top-level names, without what follows their first dot or hyphen."""
    found: Counter[str] = Counter()
    for path in site.rglob("*"):
        if path.is_file():
            top = path.relative_to(site).parts[0].lstrip("_")
            found[top.split(".")[0].split("-")[0]] += path.stat().st_blocks * 512
    return Counter({name: size / 2**20 for name, size in found.items()})


def main() -> None:
    """Print the sizes beside the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=Path, help="the wheel; by default one is built, without compiled libraries")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = sizes(installed(options.wheel, Path(folder)))
    for name, size in found.most_common():
        if size >= SHOWN_MB:
            print(f"{name:20}{size:7.1f} MB")
    bars = Bars()
    total = found.total()
    print(f"{'all':20}{total:7.1f} MB {bars.check('installed size', total, BAR_MB)}")
    if "scipy" in found:
        bars.check("SciPy", found["scipy"], 0.0)
    bars.leave()


if __name__ == "__main__":
    main()
