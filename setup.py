"""Beside pyproject.toml only this: an installed perflaw carries the C sources, for it compiles them where it runs.

And the file by which a Python that starts with ``PERFLAW_LISTEN=1`` listens for recorders, and, if ``PERFLAW_PYTHONS`` lists
interpreters (``scripts/wheels.sh``), compiled libraries.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
PYTHONS = os.environ.get("PERFLAW_PYTHONS", "").split()
LISTEN = ROOT / "src" / "perflaw-listen.pth"
ROOMS = ("core", "python", "compiled", "meters", "include")  # the last is what perflaw --cflags names


class BuildWithSources(build_py):
    """Puts ``native/`` beside the modules of the package; an editable installation reads it where it stands.

    The file that makes programs listen goes beside the package, where Python reads it; an editable installation has none.
    """

    def run(self) -> None:
        """Build as always, then copy and compile."""
        super().run()
        if self.editable_mode:
            return
        for path in (*native_files(), LISTEN):
            self.copy_file(str(path), str(self.place_of(path)), preserve_mode=False)
        if PYTHONS:
            code = "import sys; from perflaw.record.build import ship; ship(sys.argv[1:])"
            # The built package compiles its own sources, by whose digest it will know the libraries.
            environment = {**os.environ, "PYTHONPATH": self.build_lib, "PYTHONDONTWRITEBYTECODE": "1"}
            subprocess.run([sys.executable, "-c", code, *PYTHONS], env=environment, check=True)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """What was built, the sources among it."""
        ours = [] if self.editable_mode else [str(self.place_of(path)) for path in (*native_files(), LISTEN)]
        return [*super().get_outputs(include_bytecode), *ours]

    def place_of(self, path: Path) -> Path:
        """Where a file goes."""
        place = Path(self.build_lib, path.name if path == LISTEN else Path("perflaw", path.relative_to(ROOT)))
        place.parent.mkdir(parents=True, exist_ok=True)
        return place


class PlatformWheel(bdist_wheel):
    """A wheel with compiled libraries fits one platform and every Python: what it has no tracer for is compiled."""

    def get_tag(self) -> tuple[str, str, str]:
        """The tags of the file name."""
        return ("py3", "none", super().get_tag()[2])


class Package(Distribution):
    """What is built."""

    def has_ext_modules(self) -> bool:
        """Whether it is for one platform."""
        return bool(PYTHONS)


def native_files() -> list[Path]:
    """The C sources and the lists of them."""
    files = (path for room in ROOMS for path in (ROOT / "native" / room).rglob("*"))
    return sorted(path for path in files if path.suffix in {".c", ".h"} or path.name == "SOURCES")


setup(distclass=Package, cmdclass={"build_py": BuildWithSources, "bdist_wheel": PlatformWheel})
