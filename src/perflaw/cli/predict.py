"""``perflaw predict``: the cost that laws predict for inputs that were not recorded."""

from __future__ import annotations

import sys

import click

from perflaw.cli.options import json_option, parse_number, print_document, store_option
from perflaw.errors import UsageError


@click.command("predict", short_help="predict the cost of inputs that were not recorded")
@click.option(
    "-e", "--experiment", default="default", show_default=True, metavar="NAME", help="Experiment, without LAWS."
)
@click.option(
    "--metric", default="time", show_default=True, metavar="NAME", help="Metric, if laws are an experiment's."
)
@click.option("--all", "every", is_flag=True, help="Also list functions of small cost.")
@store_option
@json_option
@click.argument("words", nargs=-1, required=True, metavar="[LAWS] NAME=NUMBER[,NAME=NUMBER]...")
def command(experiment: str, metric: str, every: bool, as_json: bool, words: tuple[str, ...]) -> int:
    """Predict from LAWS (a .law file, its twin, or an experiment) what functions cost at points: n=1e6, or x=3 z=10.

    Without LAWS, the laws are those of the experiment that -e names.

    A name is a feature of runs and of calls. A function's own parameter may have the name of a feature of the runs: then
    n=1e6 sets that of the run, and FUNCTION.n=30 that of the function's calls.

    The first interval is that of the expected cost, the second that of one new run or call. Intervals widen outside the
    range of the data; a law of uncertain shape makes no prediction there.

    \b
    perflaw predict -e nightly n=1e6 --metric cpu
    perflaw predict perf.law n=1e5 n=1e6
    perflaw predict perf.law n=1e6 handle.n=30
    """
    from perflaw.api.predictions import predict_costs
    from perflaw.report.annotations import forecast_table
    from perflaw.report.documents import predict_document

    laws, points = (experiment, words) if "=" in words[0] else (words[0], words[1:])
    if not points:
        why = f"after {laws} there is no point, which has the form NAME=NUMBER"
        raise UsageError("nothing to predict", why, f"perflaw predict {laws} n=1e6")
    forecasts = predict_costs(laws, _points(points), metric)
    document = predict_document(forecasts.functions, forecasts.whole, forecasts.per)
    if as_json:
        print_document(document)
    else:
        click.echo(forecast_table(document, sys.stdout.isatty(), every), nl=False)
    return 0


def _points(texts: tuple[str, ...]) -> list[dict[str, float]]:
    """The points of all arguments such as ``n=1e6,docs.len=3`` (a name may be in backquotes): one until a name recurs."""
    points: list[dict[str, float]] = []
    for text in texts:
        point: dict[str, float] = {}
        for part in text.split(","):
            name, equals, value = part.rpartition("=")
            if not equals or not name.strip():
                why = "a point has the form NAME=NUMBER"
                raise UsageError(f"{text} is not a point", why, "perflaw predict n=1e6")
            name = name.strip().strip("`")
            point[name] = parse_number(value, f"predict: {name}")
        if points and not points[-1].keys() & point.keys():
            points[-1] |= point
        else:
            points.append(point)
    return points
