"""Stands in for the build backend of the same name where a package's sources are wanted and nothing is built.

``pip download`` asks a backend for the package's name and version. The real one asks cargo, which asks crates.io for all
that the package depends on.
"""

from __future__ import annotations

import tomllib
from pathlib import Path


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: object = None) -> str:
    """The metadata that pip compares with what it asked for."""
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    folder = Path(metadata_directory, f"{name}-{version}.dist-info")
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return folder.name
