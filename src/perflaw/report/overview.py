"""What the overview of the page tells: what matters at ten times the sizes recorded, and what changed in the newest run.

It is put together from the documents of ``annotate`` and ``compare``; what is sometimes slow, what the checks said and
which lines grow together, the page takes from its other views.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from perflaw.report import law_words as words
from perflaw.report.annotations import execution, predicted_text
from perflaw.report.comparison import SMALL_CHANGE, calls_text, ratio_text
from perflaw.report.quantity import NOTHING, UNKNOWN, interval, is_known, number, percent, quantity
from perflaw.types.documents import Document, document

if TYPE_CHECKING:
    from perflaw.types.programs import GrowthSource, Outlook

WHOLE: Final = 0.95
"""Part of the larger run from which a function is around all of it, unless the cost is its own: it does not tell where."""
MIN_PART: Final = 0.02
"""Part of the larger run from which a function is listed."""
MAX_CHECKS: Final = 200
"""Checks that the history shows, the newest ones."""
MAX_ROWS: Final = 8
"""Functions that the overview lists at most."""


def overview_data(
    laws: Document, keys: Sequence[str], outlook: Outlook | None, changed: Document | None, command: str
) -> Document:
    """The page's data of the overview; ``keys`` are the names by which links find the components of ``laws``.

    ``command`` adds runs of other sizes, or tells the laws of a suite of tests.
    """
    if command.startswith("perflaw annotate"):
        why = "A suite of tests has no size. Its functions have laws by what they are called with."
    else:
        why = "A run's cost at other sizes is not known: every recorded run has the same size."
    return {
        "matters": _matters(laws, keys, outlook) if outlook and laws["program"] else None,
        "next": {"why": why, "command": command},
        "changed": _changed(changed) if changed else None,
    }


def _matters(laws: Document, keys: Sequence[str], outlook: Outlook) -> Document:
    annotations, program, whole = laws["annotations"], laws["program"], outlook.predicted
    unit, metric = annotations[0]["unit"], annotations[0]["metric"]
    sure = whole.mean > 0 and is_known(whole.mean, whole.mean_low, whole.mean_high)
    rows, around = [], []
    for one, key in zip(annotations, keys, strict=True):
        far = _known_prediction(one, whole.features)
        if not sure or not far:
            continue  # nobody knows which part of an unknown cost it is
        part = min(far["mean"] / whole.mean, 1.0)  # laws are learnt apart: a part may exceed the whole by a little
        if part >= WHOLE and one["self_share"] < 0.5:
            around.append(one["component"])
        elif part >= MIN_PART:
            rows.append((part, one["self_share"], _row(one, key, part, far, unit)))
    rows.sort(key=lambda row: (-row[0], -row[1]))
    return {
        "point": words.features_text(whole.features) + ("" if laws["at"] else ", ten times what was recorded"),
        "metric": metric,
        "whole": quantity(whole.mean, unit) if sure else UNKNOWN,
        "interval": f"({interval(whole.mean_low, whole.mean_high, unit)})" if sure else "",
        "recorded": f"{execution(laws['per'])} ({words.features_text(program['features']) or 'all alike'}) cost "
        f"{quantity(program['measured'], unit)}",
        "rows": [row for *_, row in rows[:MAX_ROWS]],
        "sources": [_source(one) for one in outlook.sources[:3]],
        "around": f"around all of it: {', '.join(around)}" if around else "",
    }


def _known_prediction(annotation: Document, point: Mapping[str, float]) -> Document | None:
    """The prediction at the point, if its interval says where the mean is."""
    law = annotation["run_law"]
    for one in [*law["predictions"], annotation["predicted"]] if law else []:
        if one and one["features"] == point:
            ends = [one[end] for end in ("mean", "mean_low", "mean_high")]
            return one if None not in ends and is_known(*ends) else None
    return None


def _row(one: Document, key: str, part: float, far: Document, unit: str) -> Document:
    law = one["run_law"]
    return {
        "component": one["component"],
        "key": key,
        "law": one["shown"]["laws"][0]["law"] if one["shown"]["per"] == "run" else law["expression"],
        "grows": one["shown"]["growth"],
        "now": percent(one["share"]),
        "share": part,
        "then": percent(part),
        "cost": predicted_text(far, unit),
    }


def _source(source: GrowthSource) -> Document:
    stated = document(source)
    line = f":{stated['line']}" if stated["line"] > 0 else ""
    place = f"{words.short_path(stated['file'])}{line}" if stated["file"] else ""  # a program without debug information
    return {
        "place": place,
        "caller": stated["caller"],
        "callee": stated["callee"],
        "share": percent(source.share),
        "growth": f"more often as {source.feature} grows ({source.feature}^{source.exponent:.1f}: "
        f"{number(source.few)} times a call at the smallest size, {number(source.many)} at the largest)",
    }


def checks_data(checks: Sequence[Document]) -> list[Document]:
    """The history of checks: each with its verdicts in words."""
    return [
        {
            "when": one["when"][:16].replace("T", " "),
            "commit": one["commit"],
            "laws": one["laws"],
            "counts": one["counts"],
            "text": " · ".join(f"{n} {verdict}" for verdict, n in one["counts"].items() if n) or "nothing compared",
            "violated": one["violated"][:MAX_ROWS],
        }
        for one in checks[-MAX_CHECKS:]
    ]


def _changed(compared: Document) -> Document:
    unit, whole = compared["unit"], compared["whole"]
    largest = max(whole.values()) or 1.0
    old, new = compared["old_runs"], compared["new_runs"]
    size = f" ({words.features_text(new[0]['features'])})" if new[0]["features"] else ""
    rows = [one for one in compared["functions"] if abs(one["change"]) >= SMALL_CHANGE * largest]
    return {
        "text": f"run {old[0]['id']} → run {new[0]['id']}"
        f"{size}: {compared['metric']} "
        f"{quantity(whole['old'], unit)} → {quantity(whole['new'], unit)} ({ratio_text(whole['old'], whole['new'])})",
        "rows": [
            {
                "component": one["component"],
                "before": quantity(one["old"]["own"], unit) if one["old"] else NOTHING,
                "after": quantity(one["new"]["own"], unit) if one["new"] else NOTHING,
                "factor": ratio_text(one["old"] and one["old"]["own"], one["new"] and one["new"]["own"]),
                "calls": calls_text(one["old"], one["new"]),
            }
            for one in rows[:MAX_ROWS]
        ],
    }
