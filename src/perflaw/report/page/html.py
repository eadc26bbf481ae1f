"""The report as one self-contained HTML file: no network, no build step, every name in it shown as plain text."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from importlib.resources import files

from perflaw.confidence import LOW, WORDS, normal_quantile
from perflaw.report.page.data import document
from perflaw.report.page.model import Page

_SCRIPTS = (
    "dom",
    "data",
    "evaluate",
    "labels",
    "quantity",
    "header",
    "outcomes",
    "table",
    "filters",
    "theme",
    "scopes",
    "lines",
    "points",
    "axes",
    "chart",
    "density",
    "residuals",
    "facts",
    "ask",
    "held",
    "detail",
    "trend_model",
    "trend_size",
    "trend_list",
    "trend_chart",
    "trend_detail",
    "trend_source",
    "trend",
    "views",
    "select",
    "state",
    "page",
)
"""Files of the page's program, in the order they are joined: each uses only the ones before it when it loads."""

_VARIANCE = ("layout", "graph", "bars", "curve", "screen", "list", "since")
"""Those of the variance view, which only pages with that view carry."""

_MINE = ("graph", "histogram", "screen", "merges", "list")
"""Those of the call-path view."""

_ESCAPES = {c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def render(page: Page) -> str:
    """The report as HTML text, to be written as UTF-8.

    The chart library (about 4.8 MB) is embedded once; the rest stays under 3 MB for 500 components.
    """
    parts = {
        "title": html.escape(_encodable(f"{page.target} – perflaw")),
        "css": "".join(asset(f"{name}.css") for name in _styles(page)),
        "data": as_json(document(page)),
        "plotly": _plotly() if page.annotations or page.trend else "",
        "js": program(_scripts(page)),
    }
    # One pass with a function: what was put in is not searched again, and backslashes stay what they are.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found.group(1)], asset("page.html"))


def program(scripts: Iterable[str]) -> str:
    """The page's program: the confidence level, then the files of these names."""
    level = {"words": WORDS, "low": LOW, "z": normal_quantile(6)}
    return "\n".join([f"const CONFIDENCE = {as_json(level)};", *(asset(f"{name}.js") for name in scripts)])


def _scripts(page: Page) -> list[str]:
    """The page's program: the start comes last."""
    own = [*(f"variance_{name}" for name in _VARIANCE), "variance"] if page.variance else []
    if page.mine:
        # Both views draw with the same shapes and tables.
        shared = [] if page.variance else ["variance_layout", "variance_graph", "variance_bars"]
        own += [*shared, *(f"mine_{name}" for name in _MINE), "mine"]
    return [*_SCRIPTS[:-1], *own, _SCRIPTS[-1]]


def _styles(page: Page) -> list[str]:
    """Names of the style sheets."""
    return ["page", "trend", *["variance"] * bool(page.variance or page.mine), *["mine"] * bool(page.mine)]


def as_json(value: object) -> str:
    r"""JSON that can stand inside a ``<script>`` element whatever its strings contain.

    >>> print(as_json({"name": "</script>"}))
    {"name":"\u003c/script\u003e"}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda found: _ESCAPES[found.group()], _encodable(text))


def _encodable(text: str) -> str:
    """Lone surrogates (of undecodable file names) as escapes, which JSON reads back and UTF-8 can hold."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def asset(name: str) -> str:
    """Text of a file of the page."""
    return (files("perflaw.report") / "page" / name).read_text(encoding="utf-8")


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    source: str = get_plotlyjs()
    return source.replace("</script", "<\\/script").replace("<!--", "<\\!--")
