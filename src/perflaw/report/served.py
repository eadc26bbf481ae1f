"""Pages that a server keeps up to date: the index of experiments, a report, and their states in words."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any, Final

from perflaw.report.mine.journal import DECISION_HEADS
from perflaw.report.overview import checks_data
from perflaw.report.page.page import asset, encodable, filled, program
from perflaw.report.quantity import counted
from perflaw.types.documents import Document

POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content security policy of the pages: they ask their own server and nobody else."""
MAX_DECISIONS: Final = 50
"""Decisions of mining that a page without a report shows."""
MAX_CHECKS: Final = 100
"""Checks of all experiments that the index shows, the newest ones."""
_HEADER: Final = '<header id="header">'


def index_page() -> str:
    """The list of all experiments, which asks for ``/state``."""
    css = "".join(asset(f"{name}.css") for name in ("page", "index"))
    return filled("index.html", css=css, js=program(["dom", "quantity", "index"]))


def live_page(page: str, version: str, index: str = "") -> str:
    """A report that follows the state at its own address plus ``/state``, with a link to the ``index`` if there is one.

    The page of a file asks nobody; here its policy lets it ask the server that it came from.
    """
    link = f'<a href="{html.escape(index)}">all experiments</a>' if index else ""
    bar = (
        f'<div id="live" data-version="{html.escape(version)}">{link}<span class="live-text" role="status"></span>'
        '<span class="live-error" role="alert" hidden></span></div>'
    )
    page = page.replace("default-src 'none';", "default-src 'none'; connect-src 'self';", 1)
    page = page.replace("</style>", f"{asset('live.css')}</style>", 1).replace(_HEADER, _HEADER + bar, 1)
    before, end, after = page.rpartition("</body>")
    return f'{before}<script>\n(() => {{\n"use strict";\n{asset("live.js")}}})();\n</script>\n{end}{after}'


def waiting_page(name: str, decisions: Sequence[Sequence[str]] = ()) -> str:
    """The page of an experiment without a report; the live page's bar says why.

    It shows the ``decisions`` of mining so far, as the report does (:func:`journal_data`), the latest first.
    """
    return filled("waiting.html", title=html.escape(encodable(f"{name} – perflaw")), name=html.escape(name),
                  decisions=_decisions(decisions) if decisions else "", css=asset("page.css"))  # fmt: skip


def _decisions(decisions: Sequence[Sequence[str]]) -> str:
    """A card with the latest decisions."""
    heads = "".join(f'<th scope="col">{head}</th>' for head in DECISION_HEADS)
    latest = decisions[: -MAX_DECISIONS - 1 : -1]
    rows = ("".join(f"<td>{html.escape(encodable(cell))}</td>" for cell in row) for row in latest)
    told = f"{counted(len(decisions), 'decision')} so far, the latest first"
    table = f"<thead><tr>{heads}</tr></thead><tbody>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody>"
    return (
        f'<section id="decisions"><h2>How the running program is measured</h2><p class="quiet">{told}</p>'
        '<div class="graph-scroll" tabindex="0" role="region" aria-label="Decisions">'
        f'<table class="plain">{table}</table></div></section>'
    )


def experiment_row(state: Mapping[str, Any], error: str, report: str) -> Document:
    """An experiment in the index: what it holds, what is going on, the latest check, and how its report is."""
    checks = checks_data(state["checks"][-1:])
    latest = f"{checks[0]['text']}{f' at {commit}' if (commit := checks[0]['commit']) else ''}" if checks else ""
    return {
        "name": state["name"],
        "target": state["target"],
        "holds": holds_text(state),
        "now": now_text(state),
        "changed": round(state["changed"]),
        "check": latest,
        "error": error,
        "report": report,
    }


def holds_text(state: Mapping[str, Any]) -> str:
    """``3 runs, 1 unfinished``; ``17 trials``."""
    parts = [counted(state["trials"], "trial")] if state["trials"] is not None else [counted(state["runs"], "run")]
    parts += [f"{state['abandoned']} unfinished"] if state["abandoned"] else []
    parts += ["decisions of mining"] if state["mined"] else []
    return ", ".join(parts)


def now_text(state: Mapping[str, Any]) -> str:
    """``recording run 0004``, ``exploring``, ``mining``, several of them, or nothing."""
    recording: Sequence[str] = state["recording"]
    parts = [f"recording run{'s' * (len(recording) > 1)} {', '.join(recording[:3])}"] if recording else []
    parts += ["exploring"] if state["explored"] else []
    parts += ["mining"] if state["is_mined_now"] else []
    return ", ".join(parts)


def checks_by_time(states: Sequence[Mapping[str, Any]]) -> list[Document]:
    """The checks of all experiments, the newest first."""
    rows = [{**shown, "experiment": one["name"], "at": check["when"]} for one in states
            for check in one["checks"] for shown in checks_data([check])]  # fmt: skip
    rows.sort(key=lambda row: str(row["at"]), reverse=True)
    return rows[:MAX_CHECKS]
