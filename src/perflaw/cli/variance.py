"""``perflaw variance``: which calls, in which context, make a function's cost vary."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.cli.options import experiment_option, json_option, metric_option, parse_number
from perflaw.errors import StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perflaw.learn.variance.options import Options
    from perflaw.store.experiment import Recording
    from perflaw.types import Component
    from perflaw.types.call_trees import CallTree
    from perflaw.types.variance import PatternChange, Variance

_UNITS = {"": 1.0, "ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9}
_TIME = re.compile(r"([\d._]+(?:e[+-]?\d+)?)\s*([a-zµ]*)")


@click.command("variance", short_help="which calls, in which context, make a function's cost vary")
@experiment_option
@metric_option
@click.option(
    "--pressure", "--similarity", "pressure", default=0.4, show_default=True, metavar="0…1",
    type=click.FloatRange(0, 1), help="Merge patterns that differ by up to this much (τ_S).",
)  # fmt: skip
@click.option(
    "--trim", "--beta", "trim", default=0.1, show_default=True, metavar="0…1",
    type=click.FloatRange(0, 1, max_open=True), help="Leave out what matters less than this part of the most (β).",
)  # fmt: skip
@click.option(
    "--cov", default=0.4, show_default=True, metavar="NUMBER", type=click.FloatRange(0, min_open=True),
    help="CoV (σ over the mean) from which on variance is high.",
)  # fmt: skip
@click.option("--deadline", "deadlines", multiple=True, metavar="TIME", help="How often calls take longer: 20ms, 1.5s.")
@click.option(
    "--probability", "probabilities", multiple=True, metavar="P", type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="The deadline that this part of calls exceeds.",
)  # fmt: skip
@click.option("--against", metavar="NAME", help="What changed since the recordings of this experiment.")
@click.option("--paper", is_flag=True, help="The choices of the paper where ours differ.")
@json_option
@click.option("--dot", metavar="FILE", help="Write the patterns as a graph for Graphviz.")
@click.option(
    "--perfetto", metavar="FILE", help="Write the worst and some random calls as a trace for ui.perfetto.dev."
)
@click.option("-o", "--output", metavar="FILE.html", help="Write patterns and functions as a page.")
@click.argument("arguments", nargs=-1, metavar="[COMPONENT] [RUN]...")
def command(
    experiment: str,
    metric: str,
    pressure: float,
    trim: float,
    cov: float,
    deadlines: tuple[str, ...],
    probabilities: tuple[float, ...],
    against: str | None,
    paper: bool,
    as_json: bool,
    dot: str | None,
    perfetto: str | None,
    output: str | None,
    arguments: tuple[str, ...],
) -> int:
    """Tell which functions' cost varies highly and where that comes from, over all recordings (or the RUNs named).

    With a COMPONENT, why this function is sometimes slow: its name, or the end of it.
    """
    from perflaw.learn.variance.analyse import variance
    from perflaw.learn.variance.options import Options
    from perflaw.store.call_trees import read_call_tree
    from perflaw.store.evidence import measured
    from perflaw.store.experiment import open_experiment

    runs = tuple(word for word in arguments if word.isdigit())
    names = [word for word in arguments if not word.isdigit()]
    recordings = open_experiment(experiment).recordings(runs)
    tree = read_call_tree(recordings, measured(recordings, metric))
    asked = _component(tree, names)
    options = Options(cov, pressure=pressure, trim=trim, paper=paper)
    options = replace(options, probabilities=probabilities or options.probabilities)
    read = parse_time if tree.metric.unit == "ns" else partial(parse_number, what="--deadline")
    found = variance(tree, options, asked, [read(text) for text in deadlines])
    _write(found, dot, perfetto, recordings)
    if output:
        from perflaw.cli.pages import write_variance

        write_variance(output, experiment, recordings, metric, options, asked, against)
    changes = _changes(against, found, metric, options) if against else None
    if as_json:
        from perflaw.report.documents import variance_document
        from perflaw.types.documents import dumps

        click.echo(dumps(variance_document(found, [one.run for one in recordings], changes)))
    elif changes is not None:
        from perflaw.report.variance.table import changes_text

        click.echo(changes_text(changes, found.metric.unit), nl=False)
    else:
        from perflaw.report.variance.table import provenance

        if told := provenance([one.run for one in recordings]):
            click.echo(told)
        _print(found, asked is not None or bool(deadlines or probabilities), names)
    return 0


def parse_time(text: str) -> float:
    """A time with its unit, in ns; UsageError otherwise.

    >>> parse_time("20ms"), parse_time("1.5s"), parse_time("300")
    (20000000.0, 1500000000.0, 300.0)
    """
    match = _TIME.fullmatch(text)
    if not match or match[2] not in _UNITS:
        raise UsageError(f"--deadline {text}", "it is no time such as 20ms, 1.5s or 300us", "--deadline 20ms")
    return parse_number(match[1], "--deadline") * _UNITS[match[2]]


def _changes(against: str, found: Variance, metric: str, options: Options) -> Sequence[PatternChange]:
    """What became of the patterns of another experiment."""
    from perflaw.learn.variance.analyse import variance
    from perflaw.learn.variance.compare import compare
    from perflaw.store.call_trees import read_call_tree
    from perflaw.store.evidence import measured
    from perflaw.store.experiment import open_experiment

    recordings = open_experiment(against).recordings()
    return compare(variance(read_call_tree(recordings, measured(recordings, metric)), options), found)


def _component(tree: CallTree, names: Sequence[str]) -> Component | None:
    """The component of that name, or whose name ends so; UsageError where there is none or several."""
    if not names:
        return None
    if len(names) > 1:
        why = "one function is explained at a time"
        raise UsageError(f"two components: {names[0]}, {names[1]}", why, f"perflaw variance {names[0]}")
    name = names[0]
    known = {one.name: one for one in tree.components}
    if name in known:
        return known[name]
    ending = sorted(one for one in known if one.endswith(f".{name}"))
    if len(ending) == 1:
        return known[ending[0]]
    if ending:
        raise UsageError(f"component {name!r}", f"it may be {', '.join(ending[:8])}", f"perflaw variance {ending[0]}")
    close = ", ".join(sorted(one for one in known if name.lower() in one.lower())[:8])
    why = f"recorded are {close}" if close else f"none of {len(known)} recorded functions is called so"
    raise UsageError(f"no component {name!r}", why, "perflaw variance (lists what varies)")


def _print(found: Variance, explained: bool, names: Sequence[str]) -> None:
    colour = sys.stdout.isatty()
    if explained and found.explanation:
        from perflaw.report.variance.screen import variance_screen

        click.echo(variance_screen(found.explanation, colour), nl=False)
    elif names:
        click.echo(f"{names[0]}: no call of it completed")
    else:
        from perflaw.report.variance.table import variance_table

        click.echo(variance_table(found, colour), nl=False)


def _write(found: Variance, dot: str | None, perfetto: str | None, recordings: Sequence[Recording]) -> None:
    """Write the files asked for; StoreError where the disk refuses."""
    if dot:
        from perflaw.report.variance.graphs import variance_dot

        _save(dot, variance_dot(found))
    if perfetto:
        from perflaw.report.variance.graphs import perfetto as trace
        from perflaw.store.call_trees import worst_calls

        if not found.explanation:
            raise UsageError(
                "--perfetto", "no function's cost varies highly", "perflaw variance COMPONENT --perfetto FILE"
            )
        _save(perfetto, trace(found.explanation, worst_calls(recordings, found.explanation.component)))


def _save(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path}: cannot be written", error.strerror or str(error), "another path") from error
