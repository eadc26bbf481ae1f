"""``perflaw predict``: the cost that laws predict for inputs that were not recorded."""

from __future__ import annotations

import sys

import click

from perflaw.cli.law_files import load_laws
from perflaw.cli.options import json_option, parse_number, print_document
from perflaw.errors import UsageError


@click.command("predict", short_help="predict the cost of inputs that were not recorded")
@click.option("--metric", default="time", show_default=True, metavar="NAME", help="Metric, if LAWS is an experiment.")
@click.option("--all", "every", is_flag=True, help="Also list functions of small cost.")
@json_option
@click.argument("laws", metavar="LAWS")
@click.argument("points", nargs=-1, required=True, metavar="NAME=NUMBER[,NAME=NUMBER]...")
def command(metric: str, every: bool, as_json: bool, laws: str, points: tuple[str, ...]) -> int:
    """Predict from LAWS (a .law file, its twin, or an experiment) what functions cost at points: n=1e6, or x=3 z=10.

    The first interval is that of the expected cost, the second that of one new run or call. Intervals widen outside the
    range of the data; a law of uncertain shape makes no prediction there.
    """
    from perflaw.check.forecasts import forecast
    from perflaw.report.annotations import forecast_table
    from perflaw.report.documents import predict_document

    forecasts = []
    for point in _points(points):
        loaded = load_laws(laws, metric, at=point)
        claims = loaded.claims
        # Refuse a feature that no law knows, because it is probably mistyped.
        known = {name for claim in claims for name in claim.names | claim.ranges.keys()}
        for claim in claims:
            known |= set((claim.document or {}).get("features", ()))
        for name in point:
            if name not in known:
                features = ", ".join(sorted(known)[:8])
                why = f"its features are {features}" if features else "every law in it is a constant"
                raise UsageError(f"{name}=…: {laws} has no feature {name!r}", why, f"perflaw predict {laws}")
        forecasts += forecast(claims, [point])
    if not any(one.features for one in forecasts):
        needed = sorted({", ".join(sorted(claim.names)) for claim in claims if claim.names})
        why = f"laws depend on {'; '.join(needed[:6]) or 'nothing'}"
        raise UsageError(f"no law of {laws} makes a prediction at {points[0]}", why, "perflaw annotate")
    document = predict_document(forecasts, loaded.per)
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
                raise UsageError(f"{text} is not a point", why, "perflaw predict LAWS n=1e6")
            name = name.strip().strip("`")
            point[name] = parse_number(value, f"predict: {name}")
        if points and not points[-1].keys() & point.keys():
            points[-1] |= point
        else:
            points.append(point)
    return points
