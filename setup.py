"""Beside pyproject.toml only this: an installed perflaw carries the C sources, for it compiles them where it runs.

And the file by which a Python that starts with ``PERFLAW_LISTEN=1`` listens for recorders.
"""

from __future__ import annotations

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
LISTEN = ROOT / "src" / "perflaw-listen.pth"
ROOMS = ("core", "python", "compiled", "meters", "include")  # the last is what perflaw --cflags names


class BuildWithSources(build_py):
    """Puts ``native/`` beside the modules of the package; an editable installation reads it where it stands.

    The file that makes programs listen goes beside the package, where Python reads it; an editable installation has none.
    """

    def run(self) -> None:
        """Build as always, then copy."""
        super().run()
        if self.editable_mode:
            return
        for path in (*native_files(), LISTEN):
            self.copy_file(str(path), str(self.place_of(path)), preserve_mode=False)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """What was built, the sources among it."""
        ours = [] if self.editable_mode else [str(self.place_of(path)) for path in (*native_files(), LISTEN)]
        return [*super().get_outputs(include_bytecode), *ours]

    def place_of(self, path: Path) -> Path:
        """Where a file goes."""
        place = Path(self.build_lib, path.name if path == LISTEN else Path("perflaw", path.relative_to(ROOT)))
        place.parent.mkdir(parents=True, exist_ok=True)
        return place


def native_files() -> list[Path]:
    """The C sources and the lists of them."""
    files = (path for room in ROOMS for path in (ROOT / "native" / room).rglob("*"))
    return sorted(path for path in files if path.suffix in {".c", ".h"} or path.name == "SOURCES")


setup(cmdclass={"build_py": BuildWithSources})
