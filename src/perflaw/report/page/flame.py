"""The page of ``perflaw show -o``: a flame graph of calling contexts, and the costliest functions and lines."""

from __future__ import annotations

import html

from perflaw.report.page.page import PROFILE, as_json, asset, encodable, filled, program
from perflaw.types.documents import Document

_START = """
startProfile(JSON.parse(document.getElementById("data").textContent), document.getElementById("profile"));
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => { document.documentElement.dataset.theme = dark.matches ? "dark" : "light"; };
dark.addEventListener("change", follow);
follow();
"""


def flame_page(page: Document) -> str:
    """The document of ``show`` as HTML text, to be written as UTF-8. It carries no library and needs no network."""
    return filled(
        "flame.html",
        title=html.escape(encodable(f"{page['runs'][0]['target']} – perflaw show")),
        css=asset("page.css") + asset("flame.css"),
        data=as_json(page),
        js=program(["dom", "quantity", PROFILE], _START),
    )
