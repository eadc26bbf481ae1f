"""Every plot of a report as a picture: laws, clusters, variance, call paths, exploration and the history of checks."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, count, pairwise
from typing import Final

import numpy as np

from perflaw.laws.evaluation import evaluate
from perflaw.report.drawing import COLOURS, MAX_BARS, Plot, Series, bar_plot, heat_map, histogram, line_plot
from perflaw.report.graph_drawing import call_path_plot, flame_plot, pattern_plot
from perflaw.report.law_words import law_text
from perflaw.report.mine.call_path_graph import call_path_graph
from perflaw.report.mine.page import histogram_data
from perflaw.report.mine.text import edge_names
from perflaw.report.page.page import Page, encodable
from perflaw.report.quantity import counted, percent, quantity, significant
from perflaw.report.trend.view import TrendView, best_feature, title
from perflaw.report.variance.page import LABELS, VarianceView, deadlines_data
from perflaw.report.variance.text import last_name, part_name
from perflaw.types import Annotation, Law
from perflaw.types.documents import Document
from perflaw.types.specifications import MinedSpec
from perflaw.types.studies import Value
from perflaw.types.variance import Explanation

SUBJECTS: Final[Mapping[str, str]] = {
    "profile": "flame graph of the newest run: as wide as the cost, callees below their callers",
    "law": "law of a function: its calls, the mean and the interval of the mean",
    "cluster": "cluster of lines: the count of each run, its law and the interval of the mean",
    "variance": "variance: patterns; of each function a histogram of its cost, and where the variance comes from",
    "paths": "call paths of a function, and durations of its calls by group of call paths",
    "exploration": "study: progress, importance, a metric over each knob, the Pareto front, maps of two knobs",
    "checks": "history of checks",
}
"""First word of the files' names → what these plots show."""
MIN_VALUES: Final = 3
"""Values of a feature from which on calls without a law are shown over it."""
MAX_NAME: Final = 70
"""Characters of a file's name after its first word: the last ones of what the plot shows; 255 bytes are allowed."""
MAX_CLUSTERS: Final = 150
"""Clusters that are drawn, as many as the page draws."""
RUN_POINTS: Final = 60
"""Intervals between the points of the law of a run."""
MAX_PATTERNS: Final = 20
"""Patterns of variance that are drawn, the most important ones."""
MAX_LABELS: Final = 8
"""Checks, or settings of a knob, with words on the axis."""
_STYLE: Final = (
    "body { font: 16px sans-serif; max-width: 1340px; margin: 1em auto } img { width: 640px; max-width: 100% }"
)
_VERDICTS: Final[Mapping[str, str]] = {
    "violated": COLOURS[1],
    "inconclusive": COLOURS[4],
    "out of scope": "#9aa0a6",
    "holds": COLOURS[2],
}
"""Verdict → its colour in the history of checks."""


@dataclass(frozen=True, slots=True)
class NamedPlot:
    """A plot with the name that its files have."""

    subject: str
    """One of :data:`SUBJECTS`."""
    name: str
    """Name of its files without the ending, unique among those of a page where letters of either case are one."""
    title: str
    """What it shows."""
    plot: Plot
    """The picture."""


def page_plots(page: Page) -> list[NamedPlot]:
    """Every plot of a page, by subject. Variance is that of the page's first metric."""
    found: list[tuple[str, str, Plot]] = []  # subject, what it shows, the picture
    found += (("law", one.component.name, plot) for one in page.annotations if (plot := law_plot(one)))
    if not found and page.annotations:  # runs of one size
        found.append(("law", "functions", _totals_plot(page.annotations)))
    if page.profile and (flames := flame_plot(page.profile)):
        found.append(("profile", "flame graph", flames))
    if page.trend:
        found += (("cluster", *one) for one in _cluster_plots(page.trend))
    for view in page.variance[:1]:
        found += (("variance", *one) for one in _variance_plots(view))
    for mined in page.mine.file.specs if page.mine else ():
        found += (("paths", *one) for one in _path_plots(mined))
    if page.exploration:
        found += (("exploration", *one) for one in _study_plots(page.exploration))
    if page.checks:
        found.append(("checks", "history", checks_plot(page.checks)))
    names: set[str] = set()
    plots = []
    for subject, words, plot in found:
        tail = re.sub(r"[^\w.-]+", "_", words)[-MAX_NAME:].strip("._")
        stem = f"{subject}_{tail or 'plot'}"
        name = next(name for i in count(1) if (name := stem if i == 1 else f"{stem}_{i}").lower() not in names)
        names.add(name.lower())
        plots.append(NamedPlot(subject, name, words, plot))
    return plots


def plots_text(plots: Sequence[NamedPlot], folder: str) -> str:
    """What was written: how many plots of each subject, and how their files are named."""
    lines = [
        f"wrote {counted(len(plots), 'plot')} to {folder}, each as SVG and as PNG; {folder}/index.html shows them all"
    ]
    for subject, words in SUBJECTS.items():
        if number := sum(one.subject == subject for one in plots):
            lines.append(f"  {number:>4}  {subject}_…  {words}")
    return "\n".join(lines)


def plots_index(plots: Sequence[NamedPlot], heading: str) -> str:
    """A page for a browser that shows the pictures beside it, by subject."""
    head = html.escape(heading)
    parts = [f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{head}</title>', f"<style>{_STYLE}</style>"]
    parts.append(f"<h1>{head}</h1>")
    for subject, words in SUBJECTS.items():
        if some := [one for one in plots if one.subject == subject]:
            parts.append(f"<h2>{words[0].upper()}{words[1:]}</h2>")
            parts += [
                f'<a href="{one.name}.svg"><img src="{one.name}.svg" loading="lazy" alt="{html.escape(one.title)}"></a>'
                for one in some
            ]
    return encodable("\n".join(parts)) + "\n"


# ---- Laws and clusters of lines.


def law_plot(one: Annotation) -> Plot | None:
    """The points of a function with its law and the interval of its mean, over the first feature of the law.

    Where its calls have no law, that of a run; without that either, its calls over the first feature with enough values;
    None where no feature has them.
    """
    heading = f"{one.component.name}: {one.metric.name}"
    curve, read = next(iter(one.curves), None), one.points.features if one.points else {}
    if not curve and one.run_law and (plot := law_range_plot(f"{heading} per run", one.metric.unit, one.run_law)):
        return plot
    feature = curve.feature if curve else next((name for name in read if len({*read[name]} - {None}) >= MIN_VALUES), "")
    if not one.points or not feature:
        return None
    known = [(x, y) for x, y in zip(read.get(feature, ()), one.points.y, strict=feature in read) if x is not None]
    series = [Series("calls", [x for x, _ in known], [y for _, y in known])]
    if curve:
        series.append(Series("law", curve.x, curve.mean, line=True, low=curve.mean_low, high=curve.mean_high))
    return line_plot(heading, feature, one.metric.unit, series)


def law_or_total(one: Annotation) -> Plot:
    """The same, or else the cost of all runs together."""
    return law_plot(one) or _totals_plot([one])


def _totals_plot(annotations: Sequence[Annotation]) -> Plot:
    """The cost of functions in all runs together, the costliest first."""
    metric = annotations[0].metric
    ordered = sorted(annotations, key=lambda one: -one.total)[:MAX_BARS]
    return bar_plot(metric.name, metric.unit, [(last_name(one.component.name), float(one.total)) for one in ordered])


def law_range_plot(heading: str, unit: str, law: Law, per: str = "run") -> Plot | None:
    """The law of a run, or of a call, from the smallest size recorded to ten times the largest, if it has one feature."""
    if len(law.features) != 1:
        return None
    [feature] = law.features
    low, high = law.range[feature]
    sizes = [low + (10 * high - low) * (place / RUN_POINTS) ** 2 for place in range(RUN_POINTS + 1)]
    means = np.broadcast_to(evaluate(law.mean, {feature: np.array(sizes)}), len(sizes))
    return line_plot(heading, feature, unit, [Series(f"law of a {per}", sizes, means.tolist(), line=True)])


def _cluster_plots(view: TrendView) -> Iterator[tuple[str, Plot]]:
    """Each cluster over the features of its headline, else over the feature that explains it best."""
    for cluster in view.trends.clusters[:MAX_CLUSTERS]:
        place, best = title(cluster, view), best_feature(cluster) or next(iter(view.trends.values), None)
        features = cluster.law.features if cluster.law and cluster.law.features else filter(None, [best])
        for feature in features:
            values = view.trends.values.get(feature, ())
            known = [(x, y) for x, y in zip(values, cluster.costs, strict=bool(values)) if x is not None]
            series = [Series("runs", [x for x, _ in known], [y for _, y in known])]
            if curve := cluster.curves.get(feature):
                words = law_text(cluster.laws[feature], "") if feature in cluster.laws else "law"
                series.append(Series(words, curve.x, curve.mean, line=True, low=curve.mean_low, high=curve.mean_high))
            heading = f"cluster {cluster.rank}, {place}: {view.noun} executed in a run"
            yield f"{cluster.rank} {place} over {feature}", line_plot(heading, feature, "", series)


# ---- Variance and call paths.


def _variance_plots(view: VarianceView) -> Iterator[tuple[str, Plot]]:
    metric = LABELS.get(view.variance.metric.name, view.variance.metric.name)
    for number, pattern in enumerate(view.variance.patterns[:MAX_PATTERNS], 1):
        heading = f"pattern {number}: {pattern.root}"
        yield heading, pattern_plot(f"{heading}, {metric}", pattern, view.variance.metric.unit)
    for component, explanation in view.explanations.items():
        if plot := cost_histogram(explanation, metric):
            yield f"{component.name} {metric} histogram", plot
        sources = [(" > ".join(last_name(step.callee) for step in one.path), one.cf_net) for one in explanation.sources]
        sources = sources or [(part_name(one, explanation.parts), one.cf_net) for one in explanation.parts]
        largest = sorted(
            ((name, share) for name, share in sources if math.isfinite(share)), key=lambda one: -abs(one[1])
        )
        if largest:
            bars = [(name or "own code", 100 * share) for name, share in largest[:MAX_BARS]]
            heading = f"{component.name}: where the variance of its {metric} comes from"
            yield f"{component.name} {metric} sources", bar_plot(heading, "%", bars)


def cost_histogram(explanation: Explanation, metric: str) -> Plot | None:
    """How many calls of a function have which cost, on a logarithmic axis; None where samples do not say.

    The bars lie between the deadlines that the explanation holds, of which it knows how many calls exceed them.
    """
    curve = [point for point in explanation.deadlines if point.deadline > 0]
    if len(curve) < 2:
        return None
    of = explanation.latency or explanation
    unit = "ns" if explanation.latency else explanation.metric.unit
    shares = [max(one.observed - other.observed, 0.0) for one, other in pairwise(curve)]
    what = "latency" if explanation.latency else metric
    left = f"; {percent(1 - curve[0].observed)} below" if curve[0].observed < 0.9995 else ""
    ticks = [(math.log(tick["at"]), tick["text"]) for tick in deadlines_data(explanation)["ticks"]]
    return histogram(
        f"{explanation.component.name}: {what} of {counted(explanation.n, 'call')}",
        f"{what} of a call, mean {quantity(of.mean, unit)}, σ / mean {significant(of.cov)}{left}",
        [math.log(point.deadline) for point in curve],
        [("", shares)],
        ticks=_thinned(ticks),
        height=percent,
    )


def _path_plots(mined: MinedSpec) -> Iterator[tuple[str, Plot]]:
    name, groups = mined.spec.component, enumerate(mined.spec.groups, 1)
    names = [f"group {place}: {counted(sum(group.counts), 'call')}" for place, group in groups]
    if mined.spec.paths:
        graph = call_path_graph(mined.spec)
        yield f"{name} graph", call_path_plot(f"{name}: its call paths", graph, edge_names(mined.spec), names)
    data = histogram_data(mined)
    if data is None:
        return
    bars = len(data["groups"][0])
    names += ["call paths without a group"] * (len(data["groups"]) - len(names))
    zeros = f"; {data['zeros']} calls took no time by the clock" if data["zeros"] else ""
    yield (
        name,
        histogram(
            f"{name}: {LABELS.get(mined.spec.metric, mined.spec.metric)} of its calls by group of call paths",
            f"duration of a call{zeros}",
            [data["low"] + data["width"] * place for place in range(bars + 1)],
            list(zip(names, data["groups"], strict=True)),
            ticks=_thinned([(tick["at"], tick["text"]) for tick in data["ticks"]]),
            borders=[(border["at"], f"border {border['text']}") for border in data["borders"]],
            height=significant,
        ),
    )


def _thinned(ticks: Sequence[tuple[float, str]], ends: bool = False) -> Sequence[tuple[float, str]]:
    """At most a few of the ticks, evenly apart; with the last one if the axis ends there."""
    some = list(ticks[:: math.ceil(len(ticks) / MAX_LABELS) or 1])
    return [*some[:-1], ticks[-1]] if ends and some else some


# ---- A study, from the data of its page.


def _study_plots(study: Document) -> Iterator[tuple[str, Plot]]:
    knobs = {knob["name"]: knob for knob in study["knobs"]}
    trials = [trial for trial in study["trials"] if trial["counts"]]
    for metric in study["metrics"]:
        name = metric["name"]
        known = [trial for trial in trials if trial["metrics"].get(name) is not None]
        if not known:
            continue
        series = Series("trials", [trial["number"] for trial in known], _values(metric, known))
        numbers = [(float(trial["number"]), str(trial["number"])) for trial in known]
        progress = [series, *_best(metric, series)]
        heading = f"{name} of each trial"
        yield (
            f"{name} progress",
            line_plot(heading, "trial", metric["unit"], progress, x_ticks=_thinned(numbers, ends=True)),
        )
        if shares := (metric["importance"] or {}).get("shares"):
            bars = [(" × ".join(share["knobs"]), 100 * share["share"]) for share in shares[:MAX_BARS]]
            yield f"{name} importance", bar_plot(f"{name}: variance over the space that each knob explains", "%", bars)
        for knob in knobs.values():
            curve = next((one for one in study["curves"] if (one["metric"], one["knob"]) == (name, knob["name"])), None)
            yield f"{name} over {knob['name']}", _knob_plot(metric, knob, known, curve)
    goals = [metric for metric in study["metrics"] if metric["goal"]]
    for one, other in combinations(goals, 2):
        if study["pareto"]:
            yield f"Pareto front {one['name']} and {other['name']}", _front_plot(one, other, study["pareto"], trials)
    if surface := study["surface"]:
        metric = next(one for one in study["metrics"] if one["name"] == surface["metric"])
        yield from _map_plots(metric, surface)


def _values(metric: Document, trials: Sequence[Document]) -> list[float]:
    return [trial["metrics"][metric["name"]] * metric["factor"] for trial in trials]


def _best(metric: Document, series: Series) -> list[Series]:
    """The best value up to each trial; none without a goal."""
    if not metric["goal"]:
        return []
    best = list(accumulate(series.y, min if metric["goal"] == "min" else max))
    return [Series("best so far", series.x, best, line=True)]


def _knob_plot(metric: Document, knob: Document, trials: Sequence[Document], curve: Document | None) -> Plot:
    """The trials over a knob, whatever the other knobs were, and what is expected with them as in the best configuration."""
    levels = {level["value"]: level["text"] for level in knob["levels"]}
    words = not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in levels)
    places = {value: float(place) if words else float(value) for place, value in enumerate(levels)}

    def at(value: Value) -> float:
        return places.get(value, math.nan) if words else float(value)

    name, factor = knob["name"], metric["factor"]
    tried = [trial for trial in trials if name in trial["configuration"]]
    series = [Series("trials", [at(trial["configuration"][name]) for trial in tried], _values(metric, tried))]
    if curve:
        low, mean, high = ([one[end] * factor for one in curve["expected"]] for end in ("low", "value", "high"))
        legend = "expected, other knobs as in the best configuration"
        series.append(Series(legend, [at(value) for value in curve["values"]], mean, not words, low, high))
    ticks = _thinned([(places[value], text) for value, text in levels.items()]) if words else ()
    return line_plot(f"{metric['name']} over {name}", name, metric["unit"], series, x_ticks=ticks)


def _front_plot(one: Document, other: Document, front: Sequence[Document], trials: Sequence[Document]) -> Plot:
    """Two metrics of all trials, and of the points of the Pareto front with their intervals."""

    def column(metric: Document, point: Document) -> tuple[float, float, float]:
        low, high = point["intervals"][metric["name"]]
        return tuple(value * metric["factor"] for value in (point["metrics"][metric["name"]], low, high))

    both = [trial for trial in trials if None not in map(trial["metrics"].get, (one["name"], other["name"]))]
    x, x_low, x_high = zip(*(column(one, point) for point in front), strict=True)
    y, low, high = zip(*(column(other, point) for point in front), strict=True)
    series = [
        Series("trials", _values(one, both), _values(other, both)),
        Series("Pareto front, with the intervals of the expected values", x, y, False, low, high, x_low, x_high),
    ]
    heading = f"{other['name']} against {one['name']}: {counted(len(front), 'point')} of the Pareto front"
    return line_plot(heading, f"{one['name']} ({one['goal']})", other["unit"], series, x_unit=one["unit"])


def _map_plots(metric: Document, surface: Document) -> Iterator[tuple[str, Plot]]:
    """A map for each setting of the third knob; all have the same colours."""
    maps = [
        [
            [value if value is not None else guess for value, guess in zip(*rows, strict=True)]
            for rows in zip(measured, expected, strict=True)
        ]
        for measured, expected in zip(surface["measured"], surface["expected"], strict=True)
    ]
    known = [value for cells in maps for row in cells for value in row if value is not None]
    axes, text = (surface["x"], surface["y"]), surface["text"]
    for place, (cells, setting) in enumerate(zip(maps, text["facet"], strict=True)):
        shown = [
            [(value, _cell(metric, value, surface["measured"][place][j][i] is not None)) for i, value in enumerate(row)]
            for j, row in enumerate(cells)
        ]
        where = f", {surface['facet']} = {setting}" if surface["facet"] else ""
        heading = f"{metric['name']} over {axes[0]} and {axes[1]}{where}"
        note = "(in brackets: not measured, expected with the other knobs as in the best configuration)"
        ends = (min(known, default=0.0), max(known, default=0.0))
        yield f"map {heading}", heat_map(heading, axes, (text["x"], text["y"]), shown, ends, note)


def _cell(metric: Document, value: float | None, measured: bool) -> str:
    if value is None:
        return ""
    words = quantity(value * metric["factor"], metric["unit"]).removesuffix(metric["unit"]).strip()
    return words if measured else f"({words})"


# ---- The history of checks.


def checks_plot(checks: Sequence[Document]) -> Plot:
    """The verdicts of each check, the oldest on the left, named by its commit or its day."""
    shown = dict.fromkeys(verdict for verdict in _VERDICTS if any(one["counts"].get(verdict) for one in checks))
    stacks = [(verdict, [float(one["counts"].get(verdict, 0)) for one in checks]) for verdict in shown]
    ticks = [(place + 0.5, one["commit"] or one["when"][:10]) for place, one in enumerate(checks)]
    return histogram(
        f"{counted(len(checks), 'check')} from {checks[0]['when'][:10]} to {checks[-1]['when'][:10]}",
        "commit that was checked, the newest on the right",
        [float(place) for place in range(len(checks) + 1)],
        stacks,
        ticks=_thinned(ticks),
        colours=[_VERDICTS[verdict] for verdict in shown],
    )
