"""A study's page as one self-contained HTML file: no network, no chart library, small enough to be written after each trial."""

from __future__ import annotations

import html
import re

from perflaw.report.html import as_json, asset
from perflaw.report.page_explore import explore_data
from perflaw.types.explored import Explored

_SCRIPTS = (
    "dom",
    "tokens",
    "evaluate",
    "quantity",
    "explore_basics",
    "explore_result",
    "explore_bars",
    "explore_maps",
    "explore_law",
    "explore_progress",
    "explore_front",
    "explore_trials",
    "explore",
)
"""Files of the page's program, each using only those before it when it loads."""


def render_study(found: Explored, seed: int = 0) -> str:
    """The page as HTML text, to be written as UTF-8; of an unfinished study it reloads itself."""
    parts = {
        "title": html.escape(f"{found.study.name} – perflaw explore"),
        "css": asset("page.css") + asset("explore.css"),
        "data": as_json(explore_data(found, seed)),
        "js": "\n".join(asset(f"{name}.js") for name in _SCRIPTS),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match.group(1)], asset("explore.html"))
