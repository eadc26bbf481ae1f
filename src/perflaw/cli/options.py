"""Options that several verbs share, and the readers of their values."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from perflaw.errors import UsageError
from perflaw.types.documents import dumps
from perflaw.types.recordings import FEATURE_NAME

F = TypeVar("F", bound=Callable[..., Any])


def _read_from(context: click.Context, parameter: click.Parameter, url: str | None) -> None:
    if url and not context.resilient_parsing:
        from perflaw.notices import progress
        from perflaw.record.cache import mirrors_folder
        from perflaw.store.experiment import located_by
        from perflaw.store.remote import mirrored

        context.meta[READS_STORE] = url
        context.with_resource(located_by(mirrored(url, mirrors_folder(), progress)))


def check_store(url: str | None) -> None:
    """UsageError if what will be recorded could never be pushed there."""
    if url:
        from perflaw.store.remote import open_store

        open_store(url)


READS_STORE = "perflaw.store"
"""Key of the URL of ``--store`` in the context of a verb that reads experiments from there."""


def refuse_store(context: click.Context, option: str) -> None:
    """UsageError if a verb that would record now was told to read from object storage."""
    if url := context.meta.get(READS_STORE):
        why = "what is recorded is kept here"
        raise UsageError(f"{option} with --store", why, f"leave --store out, then perflaw push EXPERIMENT {url}")


store_option = click.option(
    "--store", metavar="URL", expose_value=False, callback=_read_from,
    help="Read experiments that were pushed there: s3://bucket/prefix, file:///folder.",
)  # fmt: skip
push_option = click.option(
    "--store", metavar="URL", help="Push the new recordings there when they are made: s3://bucket/prefix."
)
own_experiment_option = click.option(
    "-e", "--experiment", default="default", show_default=True, metavar="NAME", help="Experiment under .perflaw/."
)


def experiment_option(function: F) -> F:
    """Add the options of a verb that reads an experiment: its name, and where it is."""
    return own_experiment_option(store_option(function))


json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
metric_option = click.option(
    "--metric", default="time", show_default=True, metavar="NAME", help="Cost to learn: time, cpu, events, …"
)
cluster_option = click.option(
    "--cluster", metavar="ADDRESS", help="Learn on a Dask cluster: a scheduler's address, or local:4 for 4 processes."
)
at_option = click.option(
    "--at", "at", multiple=True, metavar="NAME=NUMBER", help="Predict at this point (several features: x=1e6,z=3)."
)


def server_options(function: F) -> F:
    """Add the options of a verb that listens for clients: address, token, certificate and key."""
    file = click.Path(path_type=Path)
    for option in (
        click.option("--key", required=True, type=file, help="Private key of the certificate."),
        click.option("--cert", required=True, type=file, help="Certificate that clients verify."),
        click.option("--token-file", required=True, type=file, help="File with the secret that clients must show."),
        click.option(
            "--listen", required=True, metavar="HOST:PORT", help="Address to listen on; port 0: any free port."
        ),
    ):
        function = option(function)
    return function


def remote_options(function: F) -> F:
    """Add the options that name collectors on other hosts."""
    for option in (
        click.option("--ca", metavar="FILE", help="Certificate to trust."),
        click.option("--token-file", metavar="FILE", help="File with the secret of the collector."),
        click.option("--remote", multiple=True, metavar="HOST:PORT", help="Use the collector that listens there."),
    ):
        function = option(function)
    return function


budget_of_option = click.option(
    "--budget-of", default="throughput", show_default=True, type=click.Choice(("throughput", "cpu")),
    help="What the budget is a part of; cpu: CPU time, perflaw's own included.",
)  # fmt: skip


def budget_options(function: F) -> F:
    """Add the options that say what measuring a running program may take."""
    help_text = "Part of the running program's throughput that measuring may take.  [default: 5%]"
    return click.option("--budget", metavar="SHARE", help=help_text)(budget_of_option(function))


def selection_options(function: F) -> F:
    """Add the options that name the functions to record."""
    for option in (
        click.option("--exclude", multiple=True, metavar="GLOB", help="Never record these functions."),
        click.option("--select", multiple=True, metavar="GLOB", help="Record these functions only, wherever they are."),
    ):
        function = option(function)
    return function


def recording_options(function: F) -> F:
    """Add the options that say what is recorded of a program, besides the functions."""
    for option in (
        click.option("--per", default="", metavar="FUNCTION",
                     help="Make each call of this function an observation, as a request of a server is one."),
        click.option("--paths", multiple=True, metavar="GLOB",
                     help="Collect paths, and keep these functions' durations however little of the time is theirs."),
        click.option("--collect", multiple=True, metavar="WHAT,…",
                     help="branches: which way each branch of the person's own functions went; lines: how often each line"
                     " ran; paths: how long calls took by call path, for mine; probes: records of perflaw.h and"
                     " perflaw.probes, of a program that record starts. [default: calls]"),
        click.option("--metric", multiple=True, metavar="NAME,…",
                     help="Measure cpu, memory, gc, lock_wait, switches, faults, or a plug-in's."),
        click.option("--no-arguments", is_flag=True,
                     help="Keep no argument of the program; by default what looks like a secret is masked."),
        click.option("--budget", default="2x", show_default=True, metavar="TIMES",
                     help="How many times as long work may take: "
                     "tiny library functions are counted, not timed, beyond it."),
    ):  # fmt: skip
        function = option(function)
    return selection_options(function)


own_option = click.option(
    "--own", metavar="PACKAGE,…", help="Record the program's own functions and these packages, but no other library."
)


def parse_own(own: str | None) -> tuple[str, ...] | None:
    """The packages of ``--own``; None without that option."""
    return None if own is None else tuple(filter(None, own.split(",")))


def print_document(document: object) -> None:
    """Print one JSON document: a noun, or a mapping that holds nouns."""
    click.echo(dumps(document))


def _split(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not FEATURE_NAME.fullmatch(name) or not value:
        raise UsageError(f"{option} {text}", "it is not of the form NAME=VALUE", f"{option} n=1000")
    return name, value


def parse_assignments(texts: tuple[str, ...], option: str) -> dict[str, tuple[str, ...]]:
    """Read assignments such as ``n=1,2``; a name that is given twice gets the values of both.

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


def parse_number(text: str, subject: str) -> float:
    """Read a finite number such as ``1e6`` or ``1_000_000``; UsageError names ``subject`` (an option and a feature)."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        why = "expected a finite number such as 1e6"
        raise UsageError(f"{subject}: {text!r} is not a number", why, f"{subject.rpartition(' ')[0]} n=1e6")
    return number


def parse_features(texts: tuple[str, ...]) -> dict[str, float]:
    """Read several features such as ``bytes=123``."""
    return dict(parse_feature(text, "--feature") for text in texts)


def parse_feature(text: str, option: str) -> tuple[str, float]:
    """Read one feature such as ``bytes=123``."""
    name, value = _split(text, option)
    return name, parse_number(value, f"{option} {name}")


def parse_points(texts: tuple[str, ...]) -> list[dict[str, float]]:
    """Read the points of ``--at``: one point an option, its features separated by commas.

    >>> parse_points(("n=1e3", "x=1,z=2"))
    [{'n': 1000.0}, {'x': 1.0, 'z': 2.0}]
    """
    points = []
    for text in texts:
        pairs = [_split(part, "--at") for part in text.split(",")]
        points.append({name: parse_number(value, f"--at {name}") for name, value in pairs})
    return points


def parse_budget(budget: str) -> float:
    """The number of ``2x`` or ``1.5``; UsageError if it is none, or not above 1."""
    try:
        times = float(budget.removesuffix("x"))
    except ValueError:
        times = math.nan
    if not 1 < times < math.inf:
        why = "it says how many times as long a recorded run may take, a number above 1"
        raise UsageError(f"--budget {budget}", why, "--budget 2x")
    return times
