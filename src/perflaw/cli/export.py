"""``perflaw export``: recordings as files of other tools."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflaw.api.reading import read_recordings
from perflaw.cli.options import experiment_option
from perflaw.cli.progress import tell
from perflaw.errors import StoreError, UsageError
from perflaw.report.quantity import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perflaw.store.experiment import Recording

PROFILES = ("collapsed", "speedscope", "pprof", "perfetto", "prometheus", "otlp")
"""Formats with sums over calls, written to one file."""
TABLES = ("csv", "parquet")
"""Formats of the tables, a file each, in a folder."""


@click.command("export", short_help="write recordings as files of other tools")
@experiment_option
@click.option("--to", "form", type=click.Choice([*PROFILES, *TABLES]), required=True, help="Format to write.")
@click.option("--metric", metavar="NAME", help="Cost in collapsed stacks, speedscope and Perfetto.  [default: time]")
@click.option("-o", "--output", metavar="FILE", help="File to write; a folder for csv and parquet.  [default: -]")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
def command(experiment: str, form: str, metric: str | None, output: str | None, runs: tuple[str, ...]) -> int:
    """Write the newest run, or the RUNs named together, for another tool.

    collapsed for flamegraph.pl, speedscope, pprof for go tool pprof, perfetto (with the longest calls as they ran),
    prometheus (text) and otlp (metrics with the longest calls as exemplars) hold sums over calls; csv and parquet hold
    every table of the recordings.

    \b
    perflaw export --to speedscope -o profile.speedscope.json
    perflaw export --to pprof -o profile.pb.gz && go tool pprof -top profile.pb.gz
    perflaw export --to csv -o tables/
    """
    recordings = read_recordings(experiment, runs)
    if form in TABLES:
        if not output or output == "-":
            why = "it has a file for each table"
            raise UsageError(f"--to {form} writes a folder", why, f"perflaw export --to {form} -o tables/")
        files = _write_tables(recordings, form, Path(output))
        tell(f"wrote {counted(files, 'table')} of {counted(len(recordings), 'run')} → {output}")
        return 0
    if not runs:
        from perflaw.store.profiles import newest_execution

        recordings = newest_execution(recordings)
    data = _profile(recordings, form, metric)
    if not output or output == "-":
        sys.stdout.buffer.write(data)
        return 0
    try:
        Path(output).write_bytes(data)
    except OSError as error:
        raise StoreError(f"{output}: cannot be written", (error.strerror or "").lower(), "-o another/file") from error
    tell(f"wrote {output}")
    return 0


def _profile(recordings: Sequence[Recording], form: str, metric: str | None) -> bytes:
    """The file of a format with sums over calls; UsageError where the runs lack the metric."""
    from perflaw.report import profile_files
    from perflaw.store.call_trees import worst_calls
    from perflaw.store.profiles import read_profile

    profile = read_profile(recordings)
    chosen = metric or ("time" if "time" in profile.metrics else next(iter(profile.metrics)))
    if chosen not in profile.metrics:
        why = f"the runs have {', '.join(profile.metrics)}"
        raise UsageError(f"--metric {chosen}: not measured", why, f"perflaw record --metric {chosen} -- …")
    if form == "pprof":
        return profile_files.pprof(profile)
    if form == "perfetto":
        return profile_files.perfetto(profile, chosen, lambda component: worst_calls(recordings, component))
    if form == "collapsed":
        text = profile_files.collapsed(profile, chosen)
    elif form == "speedscope":
        text = profile_files.speedscope(profile, chosen)
    elif form == "prometheus":
        text = profile_files.prometheus(profile)
    else:
        metrics = profile_files.otlp_metrics(profile, lambda component: worst_calls(recordings, component))
        text = json.dumps(metrics, ensure_ascii=False)
    return text.encode()


def _write_tables(recordings: Sequence[Recording], form: str, folder: Path) -> int:
    """Write each table of the recordings, merged, and gives their number."""
    from perflaw.store.merge import merge
    from perflaw.store.tables import connect, escaped, write_tables

    tables = recordings[0].tables() if len(recordings) == 1 else merge([one.tables() for one in recordings])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_tables(folder, tables)
        if form == "csv":
            for name in tables:
                source, target = folder / f"{name}.parquet", folder / f"{name}.csv"
                connect().execute(f"COPY (FROM '{escaped(source)}') TO '{escaped(target)}' (FORMAT csv, HEADER)")
                source.unlink()
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written", (error.strerror or "").lower(), "-o another/folder") from error
    return len(list(tables))
