"""Experiments on disk: ``.perflaw/<experiment>/runs/<id>/`` with ``run.json`` and one Parquet file for each table.

``run.json`` is the manifest of a run. It is written last and whole; an unknown version is refused, never guessed.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from perflaw.bounds import read_file, read_json
from perflaw.errors import StoreError, UsageError
from perflaw.store.checksums import TABLES, check_seal, digest_of, digests_of, sealed
from perflaw.store.columns import Tables
from perflaw.store.schema import RUN_SCHEMA
from perflaw.store.tables import read_tables, write_tables
from perflaw.types import Clock, Collections, Losses, Machine, Metric, Run
from perflaw.types.recordings import HeapCosts, MachineLosses

T = TypeVar("T")
STORE: Final = ".perflaw"
MARK: Final = "unfinished"
"""File in the folder of a run until it and all its children are kept (``record/unfinished.py``)."""
IDENTITY: Final = ("host", "started", "pid", "command", "span_ns", "calls")
"""Fields whose values no two runs have in common, wherever they were recorded."""
ADDED_FIELDS: Final = ("workload", "planned", "machine", "collections", "sources")
"""Fields that the first manifests of this version did not have; where one is missing, its default holds."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def write_manifest(folder: Path, run: Run) -> None:
    """Write ``run.json`` with the digests of the tables beside it, visible only when it is whole.

    OSError if the disk refuses.
    """
    document = {"schema": RUN_SCHEMA, **asdict(run), TABLES: digests_of(folder)}
    stage_manifest(folder, document).replace(folder / "run.json")


def stage_manifest(folder: Path, document: Mapping[str, Any]) -> Path:
    """Write a manifest beside its place, the user's alone; OSError if the disk refuses, and nothing is left then."""
    part = folder / "run.json.part"
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(json.dumps(sealed(document), indent=1, allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        part.unlink(missing_ok=True)
        raise
    return part


def read_manifest(folder: Path) -> Run:
    """The manifest of the run in ``folder``; StoreError where it is missing, damaged or of another version."""
    path = folder / "run.json"
    try:
        document = read_json(read_file(path))
    except FileNotFoundError:
        raise StoreError(f"{folder}: no run.json", "the recording did not finish", "perflaw runs") from None
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: cannot be read", f"truncated or damaged ({error})", "perflaw runs") from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != RUN_SCHEMA:
        if isinstance(schema, str) and schema.startswith("perflaw.run/"):
            its, ours = schema.split("/")[1], RUN_SCHEMA.split("/")[1]
            older = its.isdigit() and int(its) < int(ours)
            command = "perflaw record -e NAME -- … (records anew)" if older else "pip install --upgrade perflaw"
            why = f"it is of version {its}, this perflaw reads {ours}"
            raise StoreError(f"{path}: recorded by another version of perflaw", why, command)
        raise StoreError(f"{path}: not a manifest of perflaw's", "its schema is missing or unknown", "perflaw runs")
    try:
        check_seal(document)
        present = {field.name for field in fields(Run)} - {name for name in ADDED_FIELDS if name not in document}
        values = {name: document[name] for name in present}
        values["command"], values["typed"] = tuple(values["command"]), tuple(values.get("typed", ()))
        values["features"] = {str(name): float(number) for name, number in values["features"].items()}
        values["configuration"] = {str(name): str(text) for name, text in values["configuration"].items()}
        values["metrics"] = tuple(Metric(**metric) for metric in values["metrics"])
        values["words"] = {str(topic): str(text) for topic, text in values["words"].items()}
        for name in {"parent", "workload", "planned"} & values.keys():
            values[name] = str(values[name])
        values["clock"] = Clock(**{**values["clock"], "added_ns": tuple(values["clock"].get("added_ns", ()))})
        values["lost"] = Losses(**values["lost"])
        if values.get("machine"):
            heap = values["machine"].get("heap")
            costs = HeapCosts(**{name: tuple(column) for name, column in heap.items()}) if heap else None
            losses = values["machine"].get("losses")
            watched = MachineLosses(int(losses["watched_ns"]), tuple(losses["losses_ns"])) if losses else None
            values["machine"] = Machine(**{**values["machine"], "heap": costs, "losses": watched})
        if values.get("collections"):
            values["collections"] = Collections(**values["collections"])
        return checked(Run(**values))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(f"{path}: a field is missing or wrong", f"damaged ({error})", "perflaw runs") from error


_KINDS: Final[dict[str, Any]] = {"int": int, "float": (int, float), "str": str, "bool": bool}


def checked(noun: T) -> T:
    """A noun that was read, whose numbers and texts are of their kinds, and whose numbers are in range; else ValueError."""
    for field in fields(noun):  # type: ignore[arg-type]  # any dataclass
        value = getattr(noun, field.name)
        if is_dataclass(value):
            checked(value)
        kind = _KINDS.get(str(field.type))
        if kind and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            raise ValueError(f"{field.name} is of the wrong kind")
        numbers = value.values() if isinstance(value, dict) else [value]
        if not all(_is_in_range(number) for number in numbers if isinstance(number, int | float)):
            raise ValueError(f"{field.name} is out of range")
    return noun


def _is_in_range(number: float) -> bool:
    return -(1 << 63) <= number < 1 << 63 if isinstance(number, int) else math.isfinite(number)


def replace_table(folder: Path, new: Path) -> None:
    """Put a changed table in the place of a recording's; OSError if the disk refuses.

    Its manifest accepts both until that is done, so the recording can be read whenever this is interrupted.
    """
    document, digest = read_json(read_file(folder / "run.json")), digest_of(new)
    known = document.get(TABLES)

    def accept(digests: str) -> None:
        if known:
            known[new.stem] = digests
            stage_manifest(folder, document).replace(folder / "run.json")

    accept(f"{known[new.stem]} {digest}" if known else "")
    new.replace(folder / new.name)
    accept(digest)


def run_id(typed: str) -> str:
    """The id of a run as a person types it: leading zeros are optional.

    >>> run_id("7"), run_id("old")
    ('0007', 'old')
    """
    return typed.zfill(4) if typed.isdigit() else typed


def outdated(runs: Sequence[Run]) -> dict[str, str]:
    """The runs of older versions of a program, child processes with them: id, and the file that changed since.

    A run is of an older version if a newer run has another digest of one of its files.
    """
    newest: dict[str, str] = {}
    for run in sorted(runs, key=lambda run: run.started):
        newest.update(run.sources)
    changed = {
        run.id: next((file for file, digest in run.sources.items() if newest[file] != digest), "") for run in runs
    }
    by_id = {run.id: run for run in runs}
    own_or_parents = {run.id: changed[run.id] or changed[execution_of(run, by_id).id] for run in runs}
    return {run: file for run, file in own_or_parents.items() if file}


def identity_of(run: Run) -> tuple[object, ...]:
    """Values that no two runs have in common."""
    return tuple(getattr(run, name) for name in IDENTITY)


def execution_of(run: Run, runs: Mapping[str, Run]) -> Run:
    """The program's own run of the execution that a run belongs to, or the uppermost one that has not been removed."""
    seen: set[str] = set()
    while run.parent in runs and run.id not in seen:
        seen.add(run.id)
        run = runs[run.parent]
    return run


@dataclass(frozen=True, slots=True)
class Recording:
    """One run and the folder of its tables, which are read on demand."""

    run: Run
    """The manifest."""
    folder: Path
    """Folder of the tables."""

    def tables(self) -> Tables:
        """All tables."""
        return read_tables(self.folder)


@dataclass(frozen=True, slots=True)
class Experiment:
    """The recordings of one target under ``.perflaw/<name>``."""

    name: str
    """Name given by ``-e``."""
    folder: Path
    """``.perflaw/<name>``."""

    @property
    def runs_folder(self) -> Path:
        """Folder of its runs."""
        return self.folder / "runs"

    def ids(self) -> list[str]:
        """Ids of all finished runs, in order."""
        return self.listed()[0]

    def unfinished(self) -> list[str]:
        """Ids of runs that are being recorded, or whose recorder was killed."""
        return self.listed()[1]

    def listed(self) -> tuple[list[str], list[str]]:
        """Ids of the finished runs and of the others, each in order. No manifest is read: 10^5 runs take half a second."""
        finished: list[str] = []
        unfinished: list[str] = []
        for run in self._numbers():
            (finished if os.path.exists(f"{self.runs_folder}/{run}/run.json") else unfinished).append(run)  # noqa: PTH110
        return finished, unfinished

    def _numbers(self) -> list[str]:
        try:
            return sorted(filter(str.isdigit, os.listdir(self.runs_folder)), key=int)  # noqa: PTH208 (names are enough)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def recording(self, run: str) -> Recording:
        """One recording by its id, leading zeros optional; StoreError where it is missing or damaged."""
        run = run_id(run)
        folder = self.runs_folder / run
        if not folder.is_dir():
            known = ", ".join(self.ids()[-5:]) or "none"
            raise StoreError(f"no run {run} in experiment {self.name}", f"there are: {known}", "perflaw runs")
        return Recording(read_manifest(folder), folder)

    def manifest(self, run: str) -> Run | None:
        """The manifest of one run; None where it cannot be read."""
        try:
            return read_manifest(self.runs_folder / run)
        except StoreError:
            return None

    def recordings(self, runs: tuple[str, ...] = ()) -> list[Recording]:
        """The chosen recordings, or all; StoreError where there is none, or one cannot be read.

        If all are wanted and one of several cannot be read, the error says how to go on with the others.
        """
        if runs:
            return [self.recording(run) for run in dict.fromkeys(map(run_id, runs))]
        recordings: list[Recording] = []
        ids = self.ids()
        for run in ids:
            try:
                recordings.append(self.recording(run))
            except StoreError as error:
                others = " ".join(one for one in ids if one != run)
                if not others:
                    raise
                command = f"perflaw annotate -e {self.name} {others} (names the runs to use)"
                raise StoreError(error.what, error.why, command) from error
        if not recordings:
            why, command = "nothing was recorded yet", "perflaw record -- python app.py"
            raise StoreError(f"{self.folder}: no recordings", why, command)
        return recordings

    def make(self) -> None:
        """Make its folders, if they do not exist yet."""
        for folder in (self.folder.parent, self.folder, self.runs_folder):
            folder.mkdir(exist_ok=True, mode=0o700)

    def new_run(self) -> Path:
        """A new folder for the next run, the user's alone; two recorders at the same time get two folders."""
        self.make()
        number = max(map(int, self._numbers()), default=0) + 1
        while True:
            folder = self.runs_folder / f"{number:04d}"
            try:
                folder.mkdir(mode=0o700)
            except FileExistsError:
                number += 1
            else:
                return folder


_folder_of: ContextVar[Callable[[str], Path]] = ContextVar("folder_of", default=lambda name: Path(STORE) / name)


@contextmanager
def located_by(folder_of: Callable[[str], Path]) -> Iterator[None]:
    """While entered, an experiment's folder is what this function gives for its name."""
    previous = _folder_of.set(folder_of)
    try:
        yield
    finally:
        _folder_of.reset(previous)


def open_experiment(name: str, root: Path | None = None) -> Experiment:
    """The experiment of that name under ``root`` (default: the working directory); it need not exist yet."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"experiment name {name!r}", "use letters, digits, dot, dash and underscore", "perflaw runs")
    return Experiment(name, root / STORE / name if root else _folder_of.get()(name))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """While entered, nobody else holds the lock of a folder; without effect where the file system has no locks."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # there is no such folder, which the body reports
        yield
        return
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def save(folder: Path, run: Run, tables: Tables) -> None:
    """Write a recording into its folder: tables first, the manifest last, so that a run is there whole or not at all."""
    write_tables(folder, tables)
    write_manifest(folder, run)


def discard(folder: Path) -> None:
    """Remove the folder of a run that holds nothing worth keeping."""
    shutil.rmtree(folder, ignore_errors=True)
