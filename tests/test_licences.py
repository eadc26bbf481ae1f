"""docs/licences.md names every package that perflaw depends on."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_dependency_has_its_licence():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = ("cluster", "paper", "fleet", "postgres", "explore", "lsp", "s3")
    wanted = [*project["dependencies"], *(name for extra in extras for name in project["optional-dependencies"][extra])]
    told = (ROOT / "docs" / "licences.md").read_text().lower()
    missing = [name for name in wanted if re.split(r"[\[<>=]", name)[0].lower() not in told]
    assert not missing
