"""The state of a fleet in the terminal, and on the controller's page.

The page shows processes, what is measured where and why, cost against the budget, and specifications as they form. The
controller sends whole tables, and the page's few lines of script ask for them anew. All names are shown as plain text.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final
from urllib.parse import quote

from perflaw.report.quantity import NOTHING, count, percent, quantity
from perflaw.report.tables import paragraph, printable, text_table
from perflaw.types.documents import Document

STUB_HEADINGS = ("host", "program", "pid", "heard", "spent", "stub's CPU", "waiting")
MEASURE_HEADINGS = ("host", "pid", "measures", "because")
FUNCTION_HEADINGS = ("function", "calls", "hosts", "borders", "groups", "stable")
_HEARD_S = 120.0


def heard_text(seconds: float) -> str:
    """How long ago a stub was heard of."""
    return "never" if seconds > 1e9 else f"{seconds:.0f} s ago" if seconds < _HEARD_S else f"{seconds / 60:.0f} min ago"


def stub_row(stub: Document) -> list[str]:
    """The cells of one stub: what it spent of its process's CPU time in the latest ten seconds, and took itself, among them."""
    return [
        stub["host"], stub["program"], str(stub["pid"] or NOTHING), heard_text(stub["heard_s"]),
        _share(stub["spent"]), _share(stub["own"]), count(stub["spooled"]),
    ]  # fmt: skip


def measure_rows(stub: Document) -> list[list[str]]:
    """The cells of what one stub measures and why, and of what it refused to measure."""
    home = [stub["host"], str(stub["pid"] or NOTHING)]
    rows = [[*home, ", ".join(one["functions"]) or "where it spends its time", one["why"]] for one in stub["measures"]]
    refused = [[*home, ", ".join(stub["refused"][:3]), "refused: not allowed"]] if stub["refused"] else []
    return rows + refused


def function_row(function: Document) -> list[str]:
    """The cells of one function; specifications are known while the controller serves."""
    borders = function["borders"]
    known = borders is not None
    return [
        function["component"], count(function["calls"]), str(function["hosts"]),
        (", ".join(quantity(one, "ns") for one in borders) or "none") if known else NOTHING,
        str(function["groups"]) if known else NOTHING, ("yes" if function["stable"] else "no") if known else NOTHING,
    ]  # fmt: skip


def not_allowed_text(service: Document) -> str:
    """Where nothing was measured although the time goes into functions that may not be: which ones these are; else empty."""
    if service["functions"] or not service["not_allowed"]:
        return ""
    names = ", ".join(f"{one['component']} ({percent(one['share'])})" for one in service["not_allowed"])
    return (
        f"No function is measured yet. Most of the time goes into functions that the allow-list does not have: {names}"
    )


def fleet_text(document: Document, colour: bool = False) -> str:
    """A table of stubs and one of functions for each service."""
    parts = []
    for service in document["services"]:
        allow = ", ".join(map(printable, service["allow"]))
        parts.append(
            paragraph(f"{printable(service['service'])}: budget {percent(service['budget'])}, allowed {allow}")
        )
        parts.append(text_table(STUB_HEADINGS, [stub_row(one) for one in service["stubs"]], (2, 4, 5, 6), colour))
        if rows := [row for one in service["stubs"] for row in measure_rows(one)]:
            parts.append("\n" + text_table(MEASURE_HEADINGS, rows, (1,), colour, {2: (" ", ".", "_")}))
        if text := not_allowed_text(service):
            parts.append("\n" + paragraph(printable(text)))
        if service["functions"]:
            rows = [function_row(one)[:3] for one in service["functions"]]
            parts.append("\n" + text_table(FUNCTION_HEADINGS[:3], rows, (1, 2), colour))
    return "".join(parts) or "no service is enrolled\n"


# ---- the page ----

_EVERY_MS: Final = 2000
_WIDTH, _HEIGHT, _FOOT = 640, 120, 24
_BEYOND: Final = 4.0
"""Multiple of the budget from which on points are rings at the upper end."""
_COST: Final = (
    "What counts against the budget, as a part of the process's CPU time; a point for ten seconds of a process."
)
_OWN: Final = (
    "Also as a part of the process's CPU time. It counts against budgets of CPU time alone "
    "(<code>stub --budget-of cpu</code>)."
)
POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'"
)
"""Content security policy of the page."""

_PAGE = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>perflaw fleet</title>
<style>
body {{ font: 14px/1.4 system-ui, sans-serif; margin: 1.5rem auto; max-width: 72rem; padding: 0 1rem; }}
div {{ overflow-x: auto; margin: .3rem 0 1rem; }} table {{ border-collapse: collapse; width: max-content; min-width: 100%; }}
th, td {{ text-align: left; padding: .15rem .7rem .15rem 0; vertical-align: top; max-width: 30rem; overflow-wrap: break-word; }}
th {{ font-weight: 600; border-bottom: 1px solid #8888; white-space: nowrap; }} h2 {{ overflow-wrap: anywhere; }}
.about {{ paint-order: stroke; stroke: Canvas; stroke-width: 4px; }}
svg {{ display: block; width: 100%; height: auto; max-width: {_WIDTH}px; overflow: visible; }}
.late {{ color: #c33; }} .budget {{ stroke: #c33; stroke-dasharray: 4 3; }} .axis {{ stroke: #8888; }} circle {{ fill: #37c; }}
.beyond {{ fill: none; stroke: #c33; stroke-width: 2px; }}
text {{ font-size: 11px; fill: currentColor; }} small {{ opacity: .75; }}
@media (max-width: {_WIDTH}px) {{ text {{ font-size: 20px; }} circle {{ r: 4px; }} }}
</style>
</head>
<body>
<h1>perflaw fleet</h1>
<p id="state" role="status" class="late" hidden>The controller does not answer; what is shown may be old.</p>
<main>@MAIN@</main>
<script>
// Whoever scrolls a table or goes through the page by the keyboard stays where they are, and text that is selected stays so.
const main = document.querySelector("main"), nameOf = (one) => one.getAttribute("aria-label") ?? one.getAttribute("href");
const places = () => [...main.querySelectorAll("[tabindex], a")];
function show(text) {{
  if (!getSelection().isCollapsed && main.contains(getSelection().anchorNode)) return;
  const before = new Map(places().map((one) => [nameOf(one), one.scrollLeft]));
  const focused = main.contains(document.activeElement) ? nameOf(document.activeElement) : null;
  main.innerHTML = text;
  for (const one of places()) {{
    one.scrollLeft = before.get(nameOf(one)) ?? 0;
    if (focused !== null && nameOf(one) === focused) one.focus({{ preventScroll: true }});
  }}
}}
setInterval(async () => {{
  try {{
    const answer = await fetch("/tables");
    if (!answer.ok) throw new Error(answer.status);
    show(await answer.text());
    document.getElementById("state").hidden = true;
  }} catch (error) {{
    document.getElementById("state").hidden = false;
  }}
}}, {_EVERY_MS});
</script>
</body>
</html>
"""


def fleet_page(document: Document) -> str:
    """The whole page."""
    return _PAGE.replace("@MAIN@", fleet_tables(document))


def fleet_tables(document: Document) -> str:
    """What the page asks for again and again: a section for each service."""
    return (
        "".join(map(_service, document["services"]))
        or "<p>No service is enrolled: <code>perflaw controller enrol</code></p>"
    )


def _pid_text(pid: int | None) -> str:
    """The number of a process; nothing where the controller does not know it any more."""
    return "" if pid is None else str(pid)


def _service(service: Document) -> str:
    name = escape(service["service"])
    functions = [[*function_row(one)] for one in service["functions"]]
    link = f'<p><a href="/specs/{quote(service["service"], safe="")}">specifications with their call paths</a></p>'
    decisions = [
        [heard_text(one["age_s"]), one["host"], _pid_text(one["pid"]), one["what"], one["why"], f"{one['utility']:.2f}"]
        for one in service["decisions"]
    ]
    parts = [
        f"<section aria-label=\"{name}\"><h2>{name} <small>budget {percent(service['budget'])}, may measure "
        f"{escape(', '.join(service['allow']))}</small></h2>",
        _table(name, "Processes", STUB_HEADINGS, [stub_row(one) for one in service["stubs"]]),
        _table(name, "What they measure", MEASURE_HEADINGS, [row for one in service["stubs"] for row in measure_rows(one)]),
        f"<p>{escape(text)}</p>" if (text := not_allowed_text(service)) else "",
        "<h3>Cost of measuring</h3>", f"<p>{_COST}</p>",
        _chart(service["spent"], "share", "Cost of measuring against the budget", service["budget"]),
        "<h3>CPU time of the stubs themselves</h3>", f"<p>{_OWN}</p>",
        _chart(service["spent"], "own", "CPU time of the stubs themselves"),
        _table(name, "Specifications", FUNCTION_HEADINGS, functions), link if functions else "",
        _table(name, "Decisions", ("when", "host", "pid", "measure", "because", "utility"), decisions), "</section>",
    ]  # fmt: skip
    return "".join(parts)


def _table(service: str, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table under its title, in a region of its own name that scrolls."""
    if not rows:
        return f"<h3>{title}</h3><p>none yet</p>"
    head = "".join(f"<th>{escape(one)}</th>" for one in headings)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    region = f'<div tabindex="0" role="region" aria-label="{title}, {service}">'
    return f"<h3>{title}</h3>{region}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _chart(spent: Sequence[Document], key: str, label: str, budget: float | None = None) -> str:
    """One point for each window of each process, and the budget as a line if there is one."""
    if not spent:
        return "<p>none yet</p>"
    longest = max(max(one["age_s"] for one in spent), 60.0)
    highest = max(one[key] for one in spent)
    # One window far beyond a budget, as the first one of a stub may be, would leave no height for the others.
    most = 1.15 * max(budget or 0.0, min(highest, _BEYOND * budget) if budget else highest) or 1.0

    def height(share: float) -> float:
        return _HEIGHT * max(1.0 - share / most, 0.0)

    points = "".join(
        f"<circle{' class=beyond' if one[key] > most else ''} "
        f'cx="{_WIDTH * (1.0 - one["age_s"] / longest):.1f}" cy="{height(one[key]):.1f}" r="2.5">'
        f"<title>{escape(one['host'])}: {_share(one[key])}, {heard_text(one['age_s'])}</title></circle>"
        for one in spent
    )
    line = "" if budget is None else (
        f'<line class="budget" x1="0" x2="{_WIDTH}" y1="{height(budget):.1f}" y2="{height(budget):.1f}"/>'
        f'<text class="about" x="2" y="{height(budget) - 3:.1f}">budget {percent(budget)}</text>'
    )  # fmt: skip
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + _FOOT}" role="img" aria-label="{escape(label)}">{points}{line}'
        f'<line class="axis" x1="0" x2="{_WIDTH}" y1="{_HEIGHT}" y2="{_HEIGHT}"/>'
        f'<text class="about" x="{_WIDTH}" y="{height(highest) - 5:.1f}" text-anchor="end">at most {_share(highest)}</text>'
        f'<text x="0" y="{_HEIGHT + _FOOT - 4}">{longest / 60:.0f} min ago</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT + _FOOT - 4}" text-anchor="end">now</text></svg>'
    )


def _share(share: float | None) -> str:
    """A part of a process's CPU time, as exact as a budget has to be kept."""
    return NOTHING if share is None else f"{100 * share:.1f} %"
