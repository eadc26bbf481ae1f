"""Options that several verbs share, and the readers of their values."""

from __future__ import annotations

import math

import click

from perflaw.errors import UsageError
from perflaw.types.recordings import FEATURE_NAME

experiment_option = click.option(
    "-e", "--experiment", default="default", show_default=True, metavar="NAME", help="Experiment under .perflaw/."
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
metric_option = click.option(
    "--metric", default="time", show_default=True, metavar="NAME", help="The cost to learn: cpu, events, …"
)
at_option = click.option(
    "--at", "at", multiple=True, metavar="NAME=NUMBER", help="Predict at this point (several features: x=1e6,z=3)."
)


def _split(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not FEATURE_NAME.fullmatch(name) or not value:
        raise UsageError(f"{option} {text}", "it is not of the form NAME=VALUE", f"{option} n=1000")
    return name, value


def parse_assignments(texts: tuple[str, ...], option: str) -> dict[str, tuple[str, ...]]:
    """``n=1,2`` to name and values; a name given twice gets the values of both.

    >>> parse_assignments(("n=1,2", "kind=a"), "--vary")
    {'n': ('1', '2'), 'kind': ('a',)}
    """
    result: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, values = _split(text, option)
        parts = tuple(value.strip() for value in values.split(","))
        if not all(parts):
            raise UsageError(f"{option} {text}", "a value is empty", f"{option} {name}=100,1000")
        result[name] = result.get(name, ()) + parts
    return result


def parse_number(text: str, what: str) -> float:
    """A finite number such as ``1e6`` or ``1_000_000``; UsageError otherwise."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(
            f"{what}: {text!r} is no number",
            "a finite number such as 1e6 is wanted",
            f"{what.rpartition(' ')[0]} n=1e6",
        )
    return number


def parse_features(texts: tuple[str, ...]) -> dict[str, float]:
    """``bytes=123`` to name and number."""
    return dict(parse_feature(text, "--feature") for text in texts)


def parse_feature(text: str, option: str) -> tuple[str, float]:
    """``bytes=123`` of an option to name and number."""
    name, value = _split(text, option)
    return name, parse_number(value, f"{option} {name}")


def parse_points(texts: tuple[str, ...]) -> list[dict[str, float]]:
    """Points of ``--at``: each option is one, its features separated by commas.

    >>> parse_points(("n=1e3", "x=1,z=2"))
    [{'n': 1000.0}, {'x': 1.0, 'z': 2.0}]
    """
    points = []
    for text in texts:
        pairs = [_split(part, "--at") for part in text.split(",")]
        points.append({name: parse_number(value, f"--at {name}") for name, value in pairs})
    return points
