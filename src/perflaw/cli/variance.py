"""``perflaw variance``: which calls, in which context, make a function's cost vary."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from perflaw.api.reading import find_component, read_recordings, write_text
from perflaw.cli.options import (
    cluster_option,
    experiment_option,
    json_option,
    metric_option,
    parse_number,
    print_document,
)
from perflaw.cli.progress import step
from perflaw.cluster import on_cluster
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perflaw.store.experiment import Recording
    from perflaw.types.variance import Variance

_UNITS_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9}
_TIME = re.compile(r"([\d._]+(?:e[+-]?\d+)?)\s*([a-zµ]*)")


@click.command("variance", short_help="find the calls that make a function sometimes slow")
@experiment_option
@metric_option
@click.option(
    "--pressure", "--similarity", "pressure", default=0.4, show_default=True, metavar="0…1",
    type=click.FloatRange(0, 1), help="Merge patterns that differ by up to this much (τ_S).",
)  # fmt: skip
@click.option(
    "--trim", "--beta", "trim", default=0.1, show_default=True, metavar="0…1",
    type=click.FloatRange(0, 1, max_open=True), help="Leave out what has less impact than this fraction of the greatest (β).",
)  # fmt: skip
@click.option(
    "--cov", default=0.4, show_default=True, metavar="NUMBER", type=click.FloatRange(0, min_open=True),
    help="Coefficient of variation (σ/mean) from which variance counts as high.",
)  # fmt: skip
@click.option(
    "--deadline", "deadlines", multiple=True, metavar="TIME", help="Say how often calls take longer: 20ms, 1.5s."
)
@click.option(
    "--probability", "probabilities", multiple=True, metavar="P", type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Say which deadline this fraction of calls exceeds.",
)  # fmt: skip
@click.option("--against", metavar="NAME", help="Show what changed since the recordings of this experiment.")
@click.option("--keep-outliers", is_flag=True, help="Keep the interruptions in CPU time, which a note lists otherwise.")
@click.option("--paper", is_flag=True, help="Use the paper's choices where ours differ.")
@cluster_option
@json_option
@click.option("--dot", metavar="FILE", help="Write the patterns as a graph for Graphviz.")
@click.option(
    "--perfetto", metavar="FILE", help="Write the slowest and some random calls as a trace for ui.perfetto.dev."
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
    keep_outliers: bool,
    paper: bool,
    cluster: str | None,
    as_json: bool,
    dot: str | None,
    perfetto: str | None,
    output: str | None,
    arguments: tuple[str, ...],
) -> int:
    """Show which functions' cost varies highly, and where that comes from, over all recordings (or the RUNs named).

    With a COMPONENT (the name of a function, or the end of it): why this function is sometimes slow.

    \b
    perflaw variance
    perflaw variance handle --deadline 20ms
    perflaw variance handle --perfetto slowest.json
    """
    from perflaw.learn.variance.analyse import variance
    from perflaw.learn.variance.tree import Options
    from perflaw.store.call_trees import read_call_tree
    from perflaw.store.evidence import find_metric

    runs = tuple(word for word in arguments if word.isdigit())
    names = [word for word in arguments if not word.isdigit()]
    if len(names) > 1:
        why = "one function is explained at a time"
        raise UsageError(f"two components: {names[0]}, {names[1]}", why, f"perflaw variance {names[0]}")
    recordings = read_recordings(experiment, runs)
    with on_cluster(cluster):
        with step("reading call trees") as show:
            tree = read_call_tree(recordings, find_metric(recordings, metric), show)
        known = {component.name: component for component in tree.components}
        component = known[find_component(names[0], known, "variance")] if names else None
        options = Options(cov, pressure=pressure, trim=trim, paper=paper, keep_outliers=keep_outliers)
        options = replace(options, probabilities=probabilities or options.probabilities)
        read = parse_time if tree.metric.unit == "ns" else partial(parse_number, subject="--deadline")
        with step("finding patterns of variance") as show:
            found = variance(tree, options, component, [read(text) for text in deadlines], show)
        _write_graphs(found, dot, perfetto, recordings)
        if output:
            from perflaw.cli.pages import write_variance

            write_variance(output, experiment, recordings, metric, options, component, against)
        changes = None
        if against:
            from perflaw.learn.variance.analyse import compare

            before = read_recordings(against)
            changes = compare(variance(read_call_tree(before, find_metric(before, metric)), options), found)
    from perflaw.report.documents import variance_document

    document = variance_document(found, [each.run for each in recordings], changes)
    if as_json:
        print_document(document)
        return 0
    from perflaw.report.variance.text import changes_text, variance_screen, variance_table

    colour = sys.stdout.isatty()
    if changes is not None:
        click.echo(changes_text(document), nl=False)
        return 0
    if document["shown"]["runs"]:
        click.echo(document["shown"]["runs"])
    if document["function"] and (component or deadlines or probabilities):
        click.echo(variance_screen(document, colour), nl=False)
    elif names:
        click.echo(f"{names[0]}: no call was completed")
    else:
        click.echo(variance_table(document, colour, experiment), nl=False)
    return 0


def parse_time(text: str) -> float:
    """Read a time with its unit, in ns; UsageError otherwise.

    >>> parse_time("20ms"), parse_time("1.5s"), parse_time("0")
    (20000000.0, 1500000000.0, 0.0)
    """
    match = _TIME.fullmatch(text)
    if match and not match[2] and parse_number(match[1], "--deadline"):
        raise UsageError(f"--deadline {text}", "a time needs its unit: ns, us, ms, s or min", f"--deadline {text}ms")
    if not match or match[2] not in {"", *_UNITS_NS}:
        raise UsageError(f"--deadline {text}", "it is not a time such as 20ms, 1.5s or 300us", "--deadline 20ms")
    return parse_number(match[1], "--deadline") * _UNITS_NS.get(match[2], 1.0)


def _write_graphs(found: Variance, dot: str | None, perfetto: str | None, recordings: Sequence[Recording]) -> None:
    """Write the files of ``--dot`` and ``--perfetto``; StoreError where they cannot be written."""
    from perflaw.report.variance.graphs import perfetto as perfetto_trace
    from perflaw.report.variance.graphs import variance_dot
    from perflaw.store.call_trees import worst_calls

    if dot:
        write_text(dot, variance_dot(found))
    if perfetto:
        if not found.explanation:
            why = "no function's cost varies highly"
            raise UsageError("--perfetto", why, "perflaw variance COMPONENT --perfetto FILE")
        calls = worst_calls(recordings, found.explanation.component)
        write_text(perfetto, perfetto_trace(found.explanation, calls))
