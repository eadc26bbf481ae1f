"""What MkDocs is told beside ``mkdocs.yml``: pages that stand outside ``docs/`` become pages of the site as well.

In the repository their links work from where they stand; here each is written anew for where its page is on the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
"""Page in the repository → page of the site."""
_LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)\s]*)?\))")


def moved() -> dict[str, str]:
    """Every file outside ``docs/`` that the site has, with its place there."""
    examples = (path for path in (ROOT / "examples").rglob("*") if path.suffix in (".md", ".yaml", ".toml"))
    return {**OUTSIDE, **{one: one for path in sorted(examples) for one in [path.relative_to(ROOT).as_posix()]}}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages and files outside ``docs/``."""
    for source, target in moved().items():
        files.append(File.generated(config, target, content=(ROOT / source).read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Write the links of a page anew."""
    places = {target: source for source, target in moved().items()}
    here = page.file.src_uri
    source = places.get(here, f"docs/{here}")

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[2]))
        if target == "examples":
            target = "docs/examples.md"
        on_site = moved().get(target, target.removeprefix("docs/"))
        return f"{found[1]}{posixpath.relpath(on_site, posixpath.dirname(here) or '.')}{found[3]}"

    return _LINK.sub(link, markdown)
