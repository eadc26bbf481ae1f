"""A profile as its document and as text: the call tree with shares, the costliest functions, and allocations by line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perflaw.report.advice import command
from perflaw.report.law_words import features_text, short_path
from perflaw.report.quantity import NOTHING, count, counted, duration, percent, quantity
from perflaw.report.tables import clipped, paragraph, printable, text_table, width
from perflaw.types import Run
from perflaw.types.documents import Document, document
from perflaw.types.profiles import Profile
from perflaw.types.recordings import MOST_QUEUED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SMALL_SHARE: Final = 0.01
"""Contexts below this share of the cost are counted and not listed, unless all are asked for."""
MAX_CONTEXTS, MAX_FUNCTIONS, MAX_SITES = 40, 10, 10
"""Rows of the tables, unless all are asked for."""
PASSED_ON: Final = 0.95
"""A context that leaves at least this part of its cost to one callee passes it on."""
ALLOCATED: Final = "allocated_bytes"
ENOUGH_SIZES: Final = 4
"""Sizes of a feature from which laws can be learnt in plain cases."""
_STEPS: Final = (1, 3, 10, 30, 100)
"""Sizes to record, as multiples of a hundredth of the size that was recorded."""
_NUMBER: Final = re.compile(r"[1-9]\d{0,11}")
_INTERPRETER: Final = re.compile(r"(python|pypy|php)[\d.]*")
_WAYS: Final = {
    "annotate": "laws",
    "record": "record at other sizes, and laws can be learnt",
    "import": f"import traces of {ENOUGH_SIZES} sizes or more, each with its size, and laws can be learnt",
}
"""Verb of the command that leads to laws → what is said before it."""
_NAMES: Final = {"time": "time", "allocated_bytes": "allocated", "allocated_blocks": "blocks", "events": "calls"}


def show_document(profile: Profile, metric: str, sizes: Mapping[str, Sequence[float]], experiment: str) -> Document:
    """``perflaw.show/1``: contexts, functions and call sites, each sorted by cost in the metric.

    ``sizes``: values of each feature over the runs of the experiment.
    """
    whole = profile.whole(metric)

    def share(value: float) -> float:
        return value / whole if whole > 0 else 0.0

    def costs(values: Mapping[str, NDArray[np.float64]], place: int) -> dict[str, float]:
        return {name: float(column[place]) for name, column in values.items()}

    own, total = profile.function_own[metric], profile.function_total[metric]
    functions = [
        {
            "component": one.name,
            "file": one.file,
            "line": one.line,
            "calls": int(profile.function_calls[place]),
            "share": share(float(total[place])),
            "own_share": share(float(own[place])),
            "total": costs(profile.function_total, place),
            "own": costs(profile.function_own, place),
        }
        for place, one in enumerate(profile.components)
    ]
    tree = [
        {
            "id": node,
            "parent": parent if parent >= 0 else None,
            "component": profile.components[function].name,
            "calls": int(profile.calls[node]),
            "share": share(float(profile.total[metric][node])),
            "total": costs(profile.total, node),
            "own": costs(profile.own, node),
        }
        for node, (parent, function) in enumerate(zip(profile.parent.tolist(), profile.component.tolist(), strict=True))
    ]
    sites = [
        {
            "file": one.caller.file,
            "line": one.line,
            "component": one.caller.name,
            "callee": one.callee.name,
            "calls": one.calls,
            "share": share(one.total[metric]),
            "total": dict(one.total),
        }
        for one in profile.sites
    ]
    run = next((run for run in profile.runs if not run.parent), profile.runs[0])
    return {
        "schema": "perflaw.show/1",
        "metric": metric,
        "unit": profile.metrics[metric].unit,
        "metrics": {name: each.unit for name, each in profile.metrics.items()},
        "runs": [{**_run(each), "slowdown": document(each)["slowdown"]} for each in profile.runs],
        "whole": {name: profile.whole(name) for name in profile.metrics},
        "queued": profile.queued,
        "functions": sorted(functions, key=lambda row: (-row["own"][metric], row["component"])),
        "tree": tree,
        "sites": sorted(sites, key=lambda row: (-row["total"][metric], row["file"], row["line"])),
        "next": next_command(run, sizes, experiment),
    }


def _run(run: Run) -> Document:
    return {
        "id": run.id,
        "target": run.target,
        "features": dict(run.features),
        "started": run.started,
        "wall_ns": run.wall_ns,
        "calls": run.calls,
        "complete": run.complete,
        "ended": run.ended,
        "parent": run.parent,
    }


def next_command(run: Run, sizes: Mapping[str, Sequence[float]], experiment: str) -> str:
    """The command that leads from this run to laws: ``annotate`` where there are enough sizes, else a ``record``.

    The number that stands in the command is varied; where several do, the largest. A suite of tests has no size, and its
    functions are called at many. Nobody knows how a trace that was imported is recorded, so there it is an ``import`` of
    traces of other sizes, each with its size.
    """
    varied = {name: sorted(set(values)) for name, values in sizes.items() if len(set(values)) >= ENOUGH_SIZES}
    if varied:
        name, values = max(varied.items(), key=lambda item: len(item[1]))
        return command("annotate", experiment, f"--at {name}={10 * values[-1]:g}")
    if run.is_suite:
        return command("annotate", experiment)
    if run.is_imported:
        size = next(iter(run.features), "n")
        return command("import", experiment, f"--feature {size}=SIZE TRACE-OF-THAT-SIZE")
    words = [shlex.quote(word) for word in run.typed or _guessed(run.command)]
    numbers = [place for place, word in enumerate(words) if place and _NUMBER.fullmatch(word)]
    if not numbers:
        return command("record", experiment, f"--vary n=100,300,1000,3000,10000 -- {' '.join(words)} {{n}}")
    place = max(numbers, key=lambda place: int(words[place]))
    largest = int(words[place])
    steps = sorted({max(1, round(float(f"{largest * step / 100:.2g}"))) for step in _STEPS})
    steps = steps if len(steps) > ENOUGH_SIZES else [largest * step for step in (1, 2, 4, 8, 16)]
    words[place] = "{n}"
    return command("record", experiment, f"--vary n={','.join(map(str, steps))} -- {' '.join(words)}")


def _guessed(words: Sequence[str]) -> list[str]:
    """What was probably typed for a command line: by the person who started a process, or in an older recording."""
    if len(words) > 1 and _INTERPRETER.fullmatch(Path(words[0]).name):
        return list(words[1:])
    return [
        Path(word).name if not place and Path(word).parent.name == "bin" else word for place, word in enumerate(words)
    ]


def show_text(page: Document, colour: bool, every: bool = False) -> str:
    """The document of ``show`` for a terminal."""
    parts = [_heading(page), tree_text(page, every), functions_text(page, colour, every)]
    if ALLOCATED in page["metrics"]:
        parts.append(sites_text(page, colour, every))
    laws = next(words for verb, words in _WAYS.items() if page["next"].startswith(f"perflaw {verb} "))
    return "\n".join(filter(None, parts)) + f"\n{laws}:\n  {printable(page['next'])}\n"


def _heading(page: Document) -> str:
    programs = [run for run in page["runs"] if not run["parent"]] or page["runs"]
    children = len(page["runs"]) - len(programs)
    first = programs[0]
    if len(programs) == 1:
        features = f" ({features_text(first['features'])})" if first["features"] else ""
        what = f"run {first['id']} of {printable(first['target'])}{features}"
    else:
        what = f"{counted(len(programs), 'run')} of {printable(first['target'])}, summed"
    parts = [what, duration(sum(run["wall_ns"] for run in programs))]
    if "cpu" in page["whole"]:
        parts.append(f"{duration(page['whole']['cpu'])} on a CPU")
    if page["queued"] > MOST_QUEUED * (page["queued"] + page["whole"].get("cpu", 0.0)):
        parts.append(f"{duration(page['queued'])} in which the busy machine had no CPU for it, left out below")
    parts.append(counted(sum(run["calls"] for run in page["runs"]), "call"))
    parts.append(f"slowdown {max(run['slowdown'] for run in page['runs']):.1f}x")
    parts += [counted(children, "child process")] * bool(children)
    parts += [f"{run['id']} is incomplete: {run['ended']}" for run in programs if not run["complete"]][:1]
    return paragraph(" · ".join(parts))


def tree_text(page: Document, every: bool) -> str:
    """The call tree: contexts by cost, each below its caller; chains that pass their cost on are folded."""
    metric, unit = page["metric"], page["unit"]
    nodes = sorted(page["tree"], key=lambda node: (-node["total"][metric], node["id"]))
    # A caller costs at least what its callees cost, so the costliest contexts are a tree.
    shown = nodes if every else [node for node in nodes if node["share"] >= SMALL_SHARE][:MAX_CONTEXTS]
    kept = {node["id"] for node in shown}
    below: dict[int | None, list[Document]] = {}
    for node in shown:
        below.setdefault(node["parent"], []).append(node)
    room = width() - 18
    lines = [f"{_NAMES.get(metric, metric):>9}  share  called from above"]
    for node, text, folded in _branches(below, None, "", every):
        amount = quantity(node["total"][metric], unit)
        calls = "" if node["calls"] == 1 or folded else f"  {count(node['calls'])} calls"
        name = printable(node["component"]) if not folded else f"… {counted(folded, 'context')} in between"
        space = max(room - len(text) - len(calls), 12)
        lines.append(f"{amount:>9}  {percent(node['share']):>5}  {text}{clipped(name, space)}{calls}".rstrip())
    if left := len(nodes) - len(kept):
        lines.append(f"{counted(left, 'further context')} of less than the above (--all lists them)")
    return "\n".join(lines) + "\n"


def _branches(
    below: Mapping[int | None, Sequence[Document]], parent: int | None, indent: str, every: bool
) -> Iterator[tuple[Document, str, int]]:
    """Contexts below a context, what stands before the name of each, and how many contexts a row folds (0: none)."""
    waiting = [(node, indent, place == len(below[parent]) - 1, parent is None)
               for place, node in reversed(list(enumerate(below.get(parent, ()))))]  # fmt: skip
    while waiting:
        node, before, last, first = waiting.pop()
        folded = 0
        while not every and not first and (following := _passes_on(node, below)) and _passes_on(following, below):
            node, folded = following, folded + 1
        branch = "" if first else "└─ " if last else "├─ "
        after = "" if first else "   " if last else "│  "
        if folded > 1:
            yield node, before + branch, folded + 1
            waiting.append((below[node["id"]][0], before + after, True, False))
            continue
        yield node, before + branch, 0
        children = below.get(node["id"], ())
        waiting += [
            (child, before + after, place == len(children) - 1, False)
            for place, child in reversed(list(enumerate(children)))
        ]


def _passes_on(node: Document, below: Mapping[int | None, Sequence[Document]]) -> Document | None:
    """The one callee that a context leaves nearly all of its cost to; None if there is none."""
    children = below.get(node["id"], ())
    if len(children) != 1 or children[0]["share"] < PASSED_ON * node["share"]:
        return None
    return children[0]


def functions_text(page: Document, colour: bool, every: bool) -> str:
    """The functions that cost most themselves, with their calls and allocations."""
    metric, unit = page["metric"], page["unit"]
    memory = ALLOCATED in page["metrics"] and metric != ALLOCATED
    rows = page["functions"] if every else page["functions"][:MAX_FUNCTIONS]
    cells = []
    for row in rows:
        calls = row["calls"]
        cells.append([
            quantity(row["own"][metric], unit),
            percent(row["own_share"]),
            quantity(row["total"][metric], unit),
            count(calls),
            quantity(row["own"][metric] / calls, unit) if calls else NOTHING,
            *([quantity(row["own"][ALLOCATED], "bytes")] if memory else []),
            row["component"],
        ])  # fmt: skip
    headings = ["own", "share", "with callees", "calls", "own a call", *["allocates"] * memory, "function"]
    name = len(headings) - 1
    text = text_table(headings, cells, right=range(name), colour=colour, names={name: (".", "_")})
    if left := len(page["functions"]) - len(rows):
        text += f"{counted(left, 'further function')} (--all lists them)\n"
    return text


def sites_text(page: Document, colour: bool, every: bool) -> str:
    """The lines whose calls allocate most, the calls below them included."""
    sites = [site for site in page["sites"] if site["total"].get(ALLOCATED)]
    sites.sort(key=lambda site: -site["total"][ALLOCATED])
    rows = sites if every else sites[:MAX_SITES]
    if not rows:
        return ""
    cells = [
        [
            quantity(site["total"][ALLOCATED], "bytes"),
            count(site["total"].get("allocated_blocks")),
            count(site["calls"]),
            f"{short_path(site['file'])}:{site['line']}",
            site["callee"],
        ]
        for site in rows
    ]
    headings, names = ["allocated", "blocks", "calls", "line", "by the call of"], {3: ("/", "_"), 4: (".", "_")}
    text = text_table(headings, cells, right=(0, 1, 2), colour=colour, names=names)
    if left := len(sites) - len(rows):
        text += f"{counted(left, 'further line')} (--all lists them)\n"
    return text
