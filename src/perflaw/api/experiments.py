"""``perflaw.load``: an experiment as programs and notebooks read it. Each verb answers as on the command line."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from perflaw.api.answers import Answer
from perflaw.api.frames import Frame
from perflaw.api.reading import find_component, read_recordings
from perflaw.store.experiment import located_by, open_experiment

if TYPE_CHECKING:
    from perflaw.report.drawing import Plot
    from perflaw.store.experiment import Recording
    from perflaw.types import Annotation, CheckVerdict, Forecast
    from perflaw.types.profiles import Profile
    from perflaw.types.specifications import MinedSpec
    from perflaw.types.trends import Cluster
    from perflaw.types.variance import Pattern

Method = TypeVar("Method", bound=Callable[..., Any])


def load(name: str = "default", *runs: str, store: str | None = None) -> Experiment:
    """The experiment of that name under ``.perflaw/`` in the working folder, or of it the runs named.

    With a ``store`` it is the one that was pushed to that URL (``s3://bucket/prefix``, ``file:///folder``), as it is now.
    StoreError if it has no recordings, or one cannot be read.
    """
    found = Experiment(name, runs, _mirrored(store) if store else None)
    with found.located():
        open_experiment(name).recordings(runs)
    return found


def _mirrored(url: str) -> Callable[[str], Path]:
    from perflaw.notices import progress
    from perflaw.record.cache import mirrors_folder
    from perflaw.store.remote import mirrored

    return mirrored(url, mirrors_folder(), progress)


def _where_it_is(method: Method) -> Method:
    """The same method of an experiment, for which all experiments are where this one is."""

    @wraps(method)
    def call(self: Experiment, *arguments: Any, **named: Any) -> Any:
        with self.located():
            return method(self, *arguments, **named)

    return cast("Method", call)


@dataclass(frozen=True, slots=True)
class Experiment:
    """The recordings of a program. They are read anew by each call, so runs that are added meanwhile count."""

    name: str
    """Name of the experiment."""
    chosen: tuple[str, ...] = ()
    """Ids of the runs; empty: all runs of the newest version of the program."""
    place: Callable[[str], Path] | None = field(default=None, repr=False)
    """The folder of an experiment by its name; None: below the working folder."""

    def _repr_html_(self) -> str:
        return self.runs._repr_html_()

    def located(self) -> AbstractContextManager[None]:
        """While entered, experiments are where this one is."""
        return located_by(self.place) if self.place else nullcontext()

    @property
    @_where_it_is
    def recordings(self) -> list[Recording]:
        """The recordings: manifests, and folders of tables."""
        return read_recordings(self.name, self.chosen)

    @property
    @_where_it_is
    def runs(self) -> Frame:
        """A row for each run, with a column for each feature."""
        runs = [one.run for one in self.recordings]
        fields = ("id", "target", "started", "wall_ns", "calls", "functions", "complete", "ended", "slowdown", "parent")
        columns: dict[str, Sequence[Any]] = {name: [getattr(run, name) for run in runs] for name in fields}
        for name in dict.fromkeys(feature for run in runs for feature in run.features):
            columns[name if name not in columns else f"feature.{name}"] = [run.features.get(name) for run in runs]
        return Frame(columns)

    @property
    @_where_it_is
    def components(self) -> Frame:
        """A row for each run and function."""
        return self._table("components", with_run=True)

    @property
    @_where_it_is
    def invocations(self) -> Frame:
        """A row for each sampled invocation, with the function's name and a column for each feature that was read."""
        from perflaw.store.tables import read_table

        columns: dict[str, list[Any]] = {"run": [], "component": [], "started": [], "time": [], "cpu": [], "calls": []}
        rows = 0
        for recording in self.recordings:
            names: dict[int, str] = dict(read_table(recording.folder, "components", ("component", "name")))
            wanted = ("run", "sequence", "component", "started", "x", "x_cpu", "x_events")
            places: dict[tuple[Any, Any], int] = {}
            for run, sequence, component, *costs in read_table(recording.folder, "invocations", wanted):
                places[run, sequence] = rows
                for column, value in zip(columns.values(), (run, names[component], *costs), strict=False):
                    column.append(value)
                rows += 1
            for run, sequence, feature, value, text in read_table(recording.folder, "features"):
                column = columns.setdefault(f"feature.{feature}", [])
                column += [None] * (rows - len(column))
                if (run, sequence) in places:
                    column[places[run, sequence]] = text if value is None else value
        return Frame({name: [*column, *[None] * (rows - len(column))] for name, column in columns.items()})

    def _table(self, name: str, *, with_run: bool) -> Frame:
        from perflaw.store.schema import SCHEMA
        from perflaw.store.tables import read_table

        columns: dict[str, list[Any]] = {column: [] for column in (*["run"] * with_run, *SCHEMA[name])}
        for recording in self.recordings:
            for row in read_table(recording.folder, name):
                for column, value in zip(columns.values(), (*[recording.run.id] * with_run, *row), strict=True):
                    column.append(value)
        return Frame(columns)

    @_where_it_is
    def profile(self) -> Profile:
        """Where the cost of the newest run went, or that of the runs chosen: contexts, functions, call sites."""
        from perflaw.store.profiles import newest_execution, read_profile

        recordings = self.recordings
        return read_profile(recordings if self.chosen else newest_execution(recordings))

    @_where_it_is
    def show(self, metric: str = "time") -> str:
        """The call tree and the costliest functions of the newest run, as ``perflaw show`` prints them."""
        from perflaw.api.profiles import profile_document
        from perflaw.report.profile import show_text

        return show_text(profile_document(self.name, self.chosen, metric), False)

    @_where_it_is
    def annotate(self, metric: str = "time", *, at: Mapping[str, float] | None = None) -> Answer[Annotation]:
        """The law of each function's cost, ranked by share, or by cost at the point ``at``."""
        from perflaw.api.laws import learn_experiment
        from perflaw.report.annotation_parts import part_html
        from perflaw.report.annotations import annotations_text
        from perflaw.report.law_words import features_text
        from perflaw.report.plots import law_or_total
        from perflaw.report.quantity import NOTHING, estimate, percent

        learnt = learn_experiment(self.name, self.chosen, at, metric)
        document = learnt.document(at)
        rows = []
        for row in document["annotations"]:
            laws = "; ".join(part["law"] for part in row["shown"]["laws"])
            told = row["predicted"]
            cost = estimate(told["mean"], told["mean_low"], told["mean_high"], row["unit"]) if told else NOTHING
            rows.append([percent(row["share"]), row["component"], laws, row["shown"]["growth"], *[cost] * bool(at)])
        headings = ["share", "function", f"{metric} per {_per(document)}", "grows as"]
        headings += [f"at {features_text(at)}"] if at else []
        nouns = learnt.annotations
        text = annotations_text(document, False)
        return Answer(
            nouns, document, text, headings, rows, lambda place: law_or_total(nouns[place]), show_part=part_html
        )

    @_where_it_is
    def trend(self, *, at: Mapping[str, float] | None = None) -> Answer[Cluster]:
        """Clusters of places whose counts grow together, the costliest first."""
        from perflaw.api.trends import TrendRequest, learn_trend, read_trend_input
        from perflaw.report.documents import trend_document
        from perflaw.report.quantity import count, percent
        from perflaw.report.trend.table import trend_table

        request = TrendRequest(self.name, self.chosen, at=[at] if at else ())
        view = learn_trend(read_trend_input(request), request)
        document, clusters = trend_document(view), view.trends.clusters
        rows = [
            [one.rank, row["locations"][0], len(one.members), percent(one.share), count(one.max_cost)]
            for one, row in zip(clusters, document["clusters"], strict=True)
        ]
        headings = ["rank", "place", "places", "share", "largest count"]

        def draw(place: int) -> Plot:
            from perflaw.report.drawing import Series, line_plot

            cluster = clusters[place]
            feature = next(iter(view.matrix.features), "run")
            values = view.matrix.features.get(feature, range(len(cluster.costs)))
            points = [(float(x), y) for x, y in zip(values, cluster.costs, strict=True)]
            series = Series("runs", [x for x, _ in points], [y for _, y in points])
            return line_plot(rows[place][1], feature, "", [series])

        return Answer(clusters, document, trend_table(document, False), headings, rows, draw)

    @_where_it_is
    def variance(self, component: str | None = None, metric: str = "time") -> Answer[Pattern]:
        """Patterns of variance, most important first; with a ``component``, ``document["function"]`` explains it."""
        from perflaw.learn.variance.analyse import variance
        from perflaw.notices import progress
        from perflaw.report.documents import variance_document
        from perflaw.report.quantity import quantity
        from perflaw.report.variance.text import variance_screen, variance_table
        from perflaw.store.call_trees import read_call_tree
        from perflaw.store.evidence import find_metric

        recordings = self.recordings
        with progress("reading call trees") as show:
            tree = read_call_tree(recordings, find_metric(recordings, metric), show)
        known = {one.name: one for one in tree.components}
        asked = known[find_component(component, known, "variance")] if component else None
        with progress("finding patterns of variance") as show:
            found = variance(tree, component=asked, tell=show)
        document, unit = variance_document(found, [one.run for one in recordings]), tree.metric.unit
        explains = bool(component and document["function"])
        text = variance_screen(document, False) if explains else variance_table(document, False, self.name)
        nodes = [pattern.nodes[0] for pattern in found.patterns]
        rows = [[one.component.name, one.n, quantity(one.mean, unit), f"{one.cov:.2f}", one.cause] for one in nodes]

        def draw(place: int) -> Plot:
            from perflaw.report.drawing import bar_plot

            bars = [(one.component.name, one.cov * one.mean) for one in found.patterns[place].nodes]
            return bar_plot(f"standard deviation below {rows[place][0]}", unit, bars)

        headings = ["function", "calls", "mean", "σ / mean", "cause"]
        return Answer(found.patterns, document, text, headings, rows, draw, explains)

    @_where_it_is
    def mine(self, *components: str, metric: str = "time") -> Answer[MinedSpec]:
        """What durations each function has on each call path; recorded with ``--collect paths``."""
        from perflaw.api.mining import MiningRequest, mine_specs
        from perflaw.learn.paths import MiningOptions
        from perflaw.report.documents import mine_document
        from perflaw.report.mine.text import mine_text
        from perflaw.report.quantity import duration

        request = MiningRequest(self.name, metric, self.chosen, components, MiningOptions(), time.time_ns())
        file = mine_specs(request).file
        document = mine_document(file, ())
        rows = [
            [one.spec.component, one.spec.points, ", ".join(map(duration, one.spec.borders)), len(one.spec.groups)]
            for one in file.specs
        ]

        def draw(place: int) -> Plot:
            from perflaw.report.drawing import bar_plot

            groups = file.specs[place].spec.groups
            return bar_plot(
                f"calls of {rows[place][0]} by group", "", [(one.id, float(sum(one.counts))) for one in groups]
            )

        text = mine_text(document, False, True)
        return Answer(file.specs, document, text, ["function", "calls", "borders", "groups"], rows, draw)

    @_where_it_is
    def check(self, laws: str | Path, metric: str = "time") -> Answer[CheckVerdict]:
        """Verdicts of these recordings on a law file or another experiment; runs behind the laws are left out."""
        from perflaw.api.checks import check_recordings
        from perflaw.check.judge import CheckOptions
        from perflaw.report.documents import check_document
        from perflaw.report.verdicts import law_verdicts_text

        verdicts, recordings, left_out = check_recordings(str(laws), self.name, self.chosen, metric, CheckOptions())
        document = check_document(verdicts, [one.run.id for one in recordings], left_out)
        rows = [
            [row["verdict"], row["component"], row["metric"], _factor(row["effect"])] for row in document["verdicts"]
        ]

        def draw(place: int) -> Plot:
            from perflaw.report.drawing import bar_plot

            known = [at for at, one in enumerate(document["verdicts"]) if one["effect"] is not None]
            bars = [(f"{rows[at][1]} ({rows[at][0]})", float(document["verdicts"][at]["effect"])) for at in known]
            return bar_plot("cost over what the law says", "", bars, known.index(place) if place in known else None)

        text = law_verdicts_text(document, False)
        return Answer(verdicts, document, text, ["verdict", "function", "metric", "times the law"], rows, draw)

    @_where_it_is
    def predict(self, metric: str = "time", **point: float) -> Answer[Forecast]:
        """What each function costs at a point that was not recorded: ``predict(n=1e6)``."""
        from perflaw.api.predictions import predict_costs
        from perflaw.report.annotations import forecast_table
        from perflaw.report.documents import predict_document
        from perflaw.report.quantity import estimate

        costs = predict_costs(self.name, [point], metric)
        forecasts, document = costs.functions, predict_document(costs.functions, costs.whole, costs.per)
        rows = [
            [one.component.name, one.of, estimate(one.mean, one.mean_low, one.mean_high, one.metric.unit), one.message]
            for one in forecasts
        ]

        def draw(place: int) -> Plot:
            from perflaw.report.drawing import bar_plot

            unit, of = forecasts[place].metric.unit, forecasts[place].of
            known = [at for at, one in enumerate(forecasts) if one.of == of and one.mean is not None]
            bars = [(forecasts[at].component.name, forecasts[at].mean or 0.0) for at in known]
            return bar_plot(f"cost of a {of}", unit, bars, known.index(place) if place in known else None)

        return Answer(
            forecasts, document, forecast_table(document, False), ["function", "of", "cost", "remark"], rows, draw
        )


def _per(document: Mapping[str, Any]) -> str:
    return next((str(one["shown"]["per"]) for one in document["annotations"]), "call")


def _factor(effect: float | None) -> str:
    return f"{effect:.2f}" if effect is not None else "—"
