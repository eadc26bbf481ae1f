"""Recordings and functions by the names that a person gives them."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perflaw.errors import StoreError, UsageError
from perflaw.notices import notice, progress

if TYPE_CHECKING:
    from perflaw.store.experiment import Recording


def read_recordings(experiment: str, runs: Sequence[str] = (), without: Container[str] = ()) -> list[Recording]:
    """The recordings of an experiment that were named, else those of the latest version of its program.

    A note tells the runs of older versions. StoreError where there is no recording, or one cannot be read.
    """
    from perflaw.store.experiment import open_experiment, outdated

    with progress(f"reading the manifests of {experiment}"):
        recordings = open_experiment(experiment).recordings(tuple(runs))
    if runs:
        return recordings
    recordings = [one for one in recordings if one.run.id not in without]
    older = outdated([one.run for one in recordings])
    if older:
        files = ", ".join(sorted({Path(file).name for file in older.values()}))
        names = " to ".join(dict.fromkeys((min(older), max(older))))
        notice(f"runs of an older version of {files} are left out: {names}; name runs to use them")
    return [one for one in recordings if one.run.id not in older]


def find_component(name: str, known: Collection[str], verb: str) -> str:
    """The component with this name, or the only one whose name ends with it; UsageError otherwise.

    >>> find_component("parse", ["app.parse", "app.render"], "mine")
    'app.parse'
    """
    if name in known:
        return name
    candidates = sorted(each for each in known if each.endswith((f".{name}", f"::{name}")))
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        names = ", ".join(candidates[:8])
        raise UsageError(f"component {name!r} is ambiguous", f"it may be {names}", f"perflaw {verb} {candidates[0]}")
    close = ", ".join(sorted(each for each in known if name.lower() in each.lower())[:8])
    why = f"similar names: {close}" if close else f"recorded were {', '.join(sorted(known)[:8]) or 'no functions'}"
    raise UsageError(f"there is no component {name!r}", why, f"perflaw {verb}  (lists all)")


def write_text(path: str, text: str, remedy: str = "another path") -> None:
    """Write a file that an option names; StoreError where it cannot be written."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path}: cannot be written", error.strerror or str(error), remedy) from error
