"""``perflaw predict``: what laws say of inputs that were not recorded."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from perflaw.cli.law_files import load_laws
from perflaw.cli.options import json_option, parse_number
from perflaw.errors import UsageError

if TYPE_CHECKING:
    from perflaw.check.claims import Claim


@click.command("predict", short_help="the cost of inputs that were not recorded")
@click.option("--metric", default="time", show_default=True, metavar="NAME", help="Where LAWS is an experiment.")
@click.option("--all", "every", is_flag=True, help="List functions of small cost as well.")
@json_option
@click.argument("laws", metavar="LAWS")
@click.argument("points", nargs=-1, required=True, metavar="NAME=NUMBER[,NAME=NUMBER]...")
def command(metric: str, every: bool, as_json: bool, laws: str, points: tuple[str, ...]) -> int:
    """Ask LAWS (a .law file, its twin, or an experiment) what functions cost at points, such as n=1e6 or x=3,z=10.

    The first interval is that of the expected cost, the second that of one new run or call. Outside what was learnt
    intervals widen; a law whose shape is in doubt refuses there.
    """
    from perflaw.check.predicting import forecast
    from perflaw.report.annotations.verdicts import forecast_text

    asked = [_point(text) for text in points]
    found = []
    for point in asked:
        claims = load_laws(laws, metric, at=point).claims
        _check_names(laws, claims, point)
        found += forecast(claims, [point])
    if not found:
        raise UsageError(
            f"no law of {laws} can be asked at {points[0]}", f"laws depend on {_needs(claims)}", "perflaw annotate"
        )
    if as_json:
        from perflaw.report.documents import predict_document
        from perflaw.types.documents import dumps

        click.echo(dumps(predict_document(found)))
    else:
        click.echo(forecast_text(found, sys.stdout.isatty(), every), nl=False)
    return 0


def _point(text: str) -> dict[str, float]:
    """``n=1e6,docs.len=3`` to names and numbers; any name of a feature will do, in backquotes or not."""
    point: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = part.rpartition("=")
        if not equals or not name.strip():
            raise UsageError(f"{text}: no point", "a point is of the form NAME=NUMBER", "perflaw predict LAWS n=1e6")
        name = name.strip().strip("`")
        point[name] = parse_number(value, f"predict: {name}")
    return point


def _check_names(laws: str, claims: Sequence[Claim], point: dict[str, float]) -> None:
    """Refuse a feature that no law knows: it is mistyped."""
    known = {name for claim in claims for name in claim.names | claim.ranges.keys()}
    for claim in claims:
        known |= set((claim.document or {}).get("features", ()))
    for name in point:
        if name not in known:
            there = ", ".join(sorted(known)[:8]) or "no features: every law in it is a constant"
            raise UsageError(
                f"{name}=…: {laws} knows no feature {name!r}", f"it has {there}", f"perflaw predict {laws}"
            )


def _needs(claims: Sequence[Claim]) -> str:
    sets = sorted({", ".join(sorted(claim.names)) for claim in claims if claim.names})
    return "; ".join(sets[:6]) or "nothing"
