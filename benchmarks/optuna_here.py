"""Optuna for the benchmarks: installed once into a folder under build/, which git ignores, where the environment has none."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

from shared import CACHE


def optuna_here() -> None:
    """See to it that ``import optuna`` works."""
    folder = CACHE / f"optuna-{sys.version_info.major}.{sys.version_info.minor}"
    if importlib.util.find_spec("optuna"):
        return
    if not (folder / "installed").exists():
        print("installing optuna", file=sys.stderr)
        pip = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--target", str(folder)]
        subprocess.run([*pip, "optuna>=4"], check=True)
        (folder / "installed").touch()
    sys.path.append(str(folder))  # behind the environment's own packages: NumPy stays the one that is loaded
