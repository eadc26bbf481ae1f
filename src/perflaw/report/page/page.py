"""The report as one self-contained HTML file: no network, no build step, every name in it shown as plain text."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from perflaw.confidence import WORDS, normal_quantile
from perflaw.laws.distributions import FAMILIES
from perflaw.report import law_words as words
from perflaw.report.documents import annotate_document
from perflaw.report.mine.page import mine_data
from perflaw.report.mine.text import MineView
from perflaw.report.page import packed
from perflaw.report.page.laws import laws_data
from perflaw.report.quantity import count, duration
from perflaw.report.trend.page import trend_data
from perflaw.report.trend.view import TrendView
from perflaw.report.variance.page import VarianceView, variance_data
from perflaw.report.verdicts import verdicts_data
from perflaw.types import Annotation, ProgramForecast
from perflaw.types.documents import Document

_SCRIPTS = (
    *("dom", "quantity", "evaluate", "labels", "report", "header", "plots", "chart"),
    *("verdicts", "laws_table", "laws_model", "laws_chart", "laws_residuals", "laws_detail", "laws_select"),
    *("trend", "trend_list", "trend_chart", "trend_source"),
    *("variance_graph", "variance_screen", "variance", "mine_graph", "mine_screen", "mine", "overview", "views"),
)
"""Files of the page's program in the order in which they are joined: each uses only earlier ones when it loads."""
STUDY = ("startStudy(study, embedded)", ("explore_study", "explore_result", "explore_charts", "explore"))
"""A study, which is also a page of its own, as a function: its names are none of the report's."""
PROFILE = ("startProfile(data, root)", ("flame",))
"""The profile, likewise."""
_STYLES = ("page", "trend", "variance", "mine", "explore", "flame")
_START = "page"
"""The file that starts the program; it comes last."""
_ESCAPES = {c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


@dataclass(frozen=True, slots=True)
class Page:
    """What a report shows."""

    target: str
    """Name of the program, the page's title."""
    experiment: str
    """Name of the experiment."""
    command: str
    """Command that was recorded."""
    created: str
    """When the newest run was recorded, as ISO text."""
    runs: Sequence[Mapping[str, Any]]
    """One mapping a run: ``id``, ``features``, ``wall_ns``, ``complete``, ``calls``."""
    annotations: Sequence[Annotation]
    """The laws, in the order of their ranking."""
    slowdown: str = ""
    """How much the recording slowed the program, such as ``slowdown 1.4x``."""
    lost: str = ""
    """What the recording lost, such as ``nothing lost``."""
    left_out: str = ""
    """What was not recorded, and why."""
    at: Mapping[str, float] | None = None
    """Workload that the person asked predictions for."""
    program: ProgramForecast | None = None
    """Cost of whole runs, with its parts that are no functions; None where it is not known."""
    laws: Document | None = None
    """Document of ``perflaw annotate --json`` of the laws, where it is at hand."""
    trend: TrendView | None = None
    """Clusters of locations, beside the laws or alone; None where they are not shown."""
    variance: Sequence[VarianceView] = ()
    """Patterns of variance, a view for each metric, the first shown first; empty where they are not shown."""
    mine: MineView | None = None
    """Specifications of call paths; None where they are not shown."""
    verdicts: Mapping[str, Any] | None = None
    """Document of ``perflaw check --json`` or ``perflaw diff --json`` to show beside the laws."""
    overview: Document | None = None
    """What the overview tells (`perflaw.report.overview`); None for a page of single views."""
    exploration: Document | None = None
    """The page's data of a study; None where the experiment is none."""
    profile: Document | None = None
    """Document of ``perflaw show`` of the newest run; None where it is not shown."""
    checks: Sequence[Document] = ()
    """Earlier checks, the oldest first: when, commit, laws, counts of verdicts."""


def page_data(page: Page) -> Document:
    """Everything that the page shows, as JSON values without NaN or infinity."""
    runs = [str(run.get("id", "")) for run in page.runs]
    runs += [run for annotation in page.annotations if annotation.points for run in annotation.points.run]
    runs = list(dict.fromkeys(runs))
    stated = page.laws or annotate_document(page.annotations, (), page.at, page.program)
    laws = laws_data(page.annotations, stated, runs, page.at)
    verdicts = [row["verdict"] for row in laws["rows"]]
    header = {
        "target": page.target,
        "experiment": page.experiment,
        "command": page.command,
        "created": f"{page.created[:16].replace('T', ' ')} UTC",
        "notes": [note for note in (page.slowdown, page.lost, page.left_out) if note],
        "calls": count(sum(annotation.calls for annotation in page.annotations)),
        "components": len({annotation.component for annotation in page.annotations}),
        "verdicts": {verdict: verdicts.count(verdict) for verdict in ("law", "inconclusive", "none")},
        "runs": [
            {
                "id": str(run.get("id", "")),
                "features": words.features_text(run.get("features") or {}),
                "wall": duration(run.get("wall_ns")),
                "calls": count(run.get("calls")),
                "complete": bool(run.get("complete", True)),
            }
            for run in page.runs
        ],
    }
    return {
        "header": header,
        "runs": runs,
        **laws,
        "trend": trend_data(page.trend) if page.trend else None,
        "variance": variance_data(page.variance, page.slowdown or "unknown") if page.variance else None,
        "mine": mine_data(page.mine) if page.mine else None,
        "overview": page.overview,
        "exploration": page.exploration,
        "profile": packed(page.profile) if page.profile else None,
        "checks": list(page.checks) or None,
        "outcomes": verdicts_data(page.verdicts, page.annotations) if page.verdicts else None,
    }


def render(page: Page) -> str:
    """The report as HTML text, to be written as UTF-8.

    Without data it is about 0.25 MB; it stays under 3 MB for 500 components.
    """
    return filled(
        "page.html",
        title=html.escape(encodable(f"{page.target} – perflaw")),
        css="".join(asset(f"{name}.css") for name in _STYLES),
        data=as_json({**(data := page_data(page)), "rows": _columns(data["rows"])}),
        js=program([*_SCRIPTS, STUDY, PROFILE, _START]),
    )


def _columns(rows: Sequence[Document]) -> Document:
    """Rows of the same fields with the names of the fields once, without what only a row's details show."""
    names = [name for name in rows[0] if name not in ("text", "unit", "total", "predicted")] if rows else []
    words = list(rows[0]["text"]) if rows else []
    values = [[row[name] for name in names] for row in rows]
    return {"names": names, "values": values, "words": words, "texts": [list(row["text"].values()) for row in rows]}


def program(scripts: Iterable[str | tuple[str, Sequence[str]]], end: str = "") -> str:
    """The page's program: the confidence level and the distributions' formulas, the files of these names, and ``end``.

    A pair is a function of which the files are the body. Comments and indentation are left out: they are for readers of
    the sources.
    """
    level = {"words": WORDS, "z": normal_quantile(6)}
    formulas = {name: asdict(family.page) for name, family in FAMILIES.items()}
    constants = [f"const CONFIDENCE = {as_json(level)};", f"const DISTRIBUTIONS = {as_json(formulas)};"]
    parts: list[str] = []
    for script in scripts:
        head, names = (None, (script,)) if isinstance(script, str) else script
        body = [asset(f"{name}.js") for name in names]
        parts += body if head is None else [f"function {head} {{", *body, "}"]
    lines = (line.strip() for part in [*parts, end] for line in part.splitlines())
    return "\n".join([*constants, *(line for line in lines if line and not line.startswith("//"))])


def filled(template: str, **parts: str) -> str:
    """An HTML template with its ``{{name}}`` replaced, in one pass: what is put in is not searched again."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found.group(1)], asset(template))


def as_json(value: object) -> str:
    r"""JSON that can stand inside a ``<script>`` element whatever its strings contain.

    >>> print(as_json({"name": "</script>"}))
    {"name":"\u003c/script\u003e"}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda found: _ESCAPES[found.group()], encodable(text))


def encodable(text: str) -> str:
    """Lone surrogates (of undecodable file names) as escapes, which JSON reads back and UTF-8 can hold."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def asset(name: str) -> str:
    """Text of a file of the page."""
    return (files("perflaw.report") / "page" / name).read_text(encoding="utf-8")
