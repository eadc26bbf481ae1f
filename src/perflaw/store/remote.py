"""Experiments in object storage: S3, a shared folder, or whatever else fsspec reaches by a URL.

Under ``URL/EXPERIMENT/`` lie ``objects/DIGEST``, the files of recordings named by what they contain, and
``runs/NUMBER.json``, for each run its ``run.json`` and the digests of its files. A run's manifest is written last, is
created only if no other has its number, and is never changed. So a push that is interrupted leaves nothing that readers
see, the next one goes on with it, and of two pushers who choose the same number one takes the next.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from perflaw.bounds import PIECE, read_file, read_json
from perflaw.errors import PerflawError, StoreError, UsageError
from perflaw.store.checksums import TABLES, check_seal, digests_of, sealed, verify_all
from perflaw.store.experiment import (
    IDENTITY,
    MARK,
    Experiment,
    discard,
    identity_of,
    locked,
    read_manifest,
)
from perflaw.store.files import write_whole
from perflaw.store.schema import RUN_SCHEMA
from perflaw.store.tables import has_table, read_table
from perflaw.types import Run

SCHEMA: Final = "perflaw.pushed/1"
"""Version of the manifests in object storage."""
_NO_BUCKET: Final = "bucket does not exist"
"""Words of S3 and of Google's store, by which a missing bucket differs from an empty place in one that is there."""
_FILE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DIGEST: Final = re.compile(r"[0-9a-f]{40}")
_MANIFEST: Final = re.compile(r"([0-9]{1,9})\.json")
_VERSIONED_BY: Final = ("ETag", "etag", "md5Hash", "LastModified", "last_modified", "mtime", "created", "size")
"""What listings tell of an object; it changes when the object does."""


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A place that a URL names, and the file system of fsspec that reaches it."""

    url: str
    """As it was typed."""
    files: Any
    """``fsspec.AbstractFileSystem``."""
    root: str
    """The place within it."""

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine, where a file appears before it is whole."""
        return "file" in self.files.protocol

    def path(self, *names: str) -> str:
        """Place of an object."""
        return "/".join((self.root.rstrip("/"), *names))

    def listed(self, *names: str) -> dict[str, dict[str, Any]]:
        """What lies directly below a place, by name, with what the listing tells of it; nothing if there is no such place."""
        path = self.path(*names)
        try:
            return {about["name"].rstrip("/").rsplit("/", 1)[-1]: about for about in self.files.ls(path, detail=True)}
        except FileNotFoundError as error:
            if _NO_BUCKET in str(error):
                raise
            return {}

    def put(self, files: Mapping[str, Path]) -> None:
        """Write files to their places; several at once where the file system can. Each appears whole or not at all."""
        if not self.is_local:
            self.files.put([str(file) for file in files.values()], list(files))
            return
        for path, file in files.items():
            with self._part(path) as part:
                shutil.copyfile(file, part)
                part.replace(path)

    def get(self, files: Mapping[str, Path]) -> None:
        """Copy objects to files; several at once where the file system can. FileNotFoundError if one is missing."""
        self.files.get(list(files), [str(file) for file in files.values()])

    def create(self, path: str, data: bytes) -> bytes:
        """Make an object if there is none, and return the bytes of the one that is there then: ours, or another's."""
        try:
            if self.is_local:
                with self._part(path) as part, suppress(FileExistsError):  # another made it first, and its bytes count
                    part.write_bytes(data)
                    os.link(part, path)
            else:
                self.files.pipe_file(path, data, mode="create")
        except OSError as error:  # how a refusal is called differs between file systems
            with suppress(FileNotFoundError):  # nobody made it, so the refusal has another reason
                return bytes(self.files.cat_file(path))
            raise error
        return bytes(self.files.cat_file(path))

    @contextmanager
    def _part(self, path: str) -> Iterator[Path]:
        place = Path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f"{place.name}.{secrets.token_hex(4)}.part")
        try:
            yield part
        finally:
            part.unlink(missing_ok=True)


def open_store(url: str) -> ObjectStore:
    """The place that a URL names; UsageError if it is no URL or a package is missing. Nothing is read yet."""
    if "://" not in url:
        raise UsageError(
            f"{url}: not a URL", "a place is named like s3://bucket/prefix or file:///folder", "perflaw push"
        )
    try:
        with _in_words(url):
            files, root = import_module("fsspec.core").url_to_fs(
                url, use_listings_cache=False, skip_instance_cache=True
            )
    except ImportError as error:
        raise UsageError(f"{url}: a package is missing", str(error), "pip install 'perflaw[s3]'") from error
    return ObjectStore(url, files, root)


@contextmanager
def _in_words(url: str) -> Iterator[None]:
    """Errors of file systems and of the libraries behind them, as errors that say where and what to do."""
    try:
        yield
    except (PerflawError, ImportError, MemoryError):
        raise
    except Exception as error:  # each storage has errors of its own library, and all are told with the address
        text = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, PermissionError) or "credential" in text.lower():
            remedy = "AWS_PROFILE=… or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (docs/storage.md)"
            raise StoreError(f"{url}: access is refused", text, remedy) from error
        if isinstance(error, FileNotFoundError) and _NO_BUCKET in text:
            raise StoreError(f"{url}: there is no such bucket", text, "make the bucket first") from error
        if isinstance(error, ValueError) and "rotocol" in text:
            raise UsageError(f"{url}: cannot be reached", text, "a URL such as s3://bucket/prefix") from error
        raise StoreError(f"{url}: cannot be read or written", text, "docs/storage.md") from error


# ---- Manifests.


@dataclass(frozen=True, slots=True)
class PushedRun:
    """A run in object storage."""

    number: str
    """Its number there."""
    document: Mapping[str, Any]
    """Its ``run.json``, sealed, with the number as its id."""
    files: Mapping[str, str]
    """Digests of its other files, by name."""
    sources: Mapping[str, str]
    """Digests of the source texts that its counts refer to, by the name of the file."""

    def encoded(self) -> bytes:
        """Its manifest."""
        fields = {"schema": SCHEMA, "run": self.document, "files": self.files, "sources": self.sources}
        return (json.dumps(sealed(fields), indent=1, allow_nan=False) + "\n").encode()


def _decoded(number: str, data: bytes, place: str) -> PushedRun:
    """A manifest that was read; StoreError if it is damaged or of another version. Its names cannot lead elsewhere."""
    try:
        document = read_json(data)
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is {document['schema']}, this perflaw reads {SCHEMA}")
        check_seal(document)
        check_seal(document["run"])
        run = PushedRun(number, document["run"], document["files"], document["sources"])
        names = (*run.files.items(), *run.sources.items())
        if not all(_FILE.fullmatch(name) and _DIGEST.fullmatch(digest) for name, digest in names):
            raise ValueError("a name or a digest is none")
        if run.document["id"] != number or {"run.json", MARK} & run.files.keys():
            raise ValueError("it is of another run")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = f"damaged, or of another version ({error})"
        raise StoreError(f"{place}: cannot be read", why, "remove it, and push the run again") from error
    return run


def _identity(document: Mapping[str, Any]) -> tuple[object, ...]:
    """What `identity_of` gives for the run of a document."""
    values = map(document.get, IDENTITY)
    return tuple(tuple(value) if isinstance(value, list) else value for value in values)


def _digest(path: Path) -> str:
    digest = blake2b(digest_size=20)
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _numbers(store: ObjectStore, name: str) -> dict[str, str]:
    """The numbers of an experiment's runs in their order, with a text that changes when the manifest does."""
    found = {}
    for file, about in store.listed(name, "runs").items():
        if match := _MANIFEST.fullmatch(file):
            found[match[1]] = repr([str(about[key]) for key in _VERSIONED_BY if key in about])
    return dict(sorted(found.items(), key=lambda one: int(one[0])))


def _manifests(store: ObjectStore, name: str, numbers: Iterable[str]) -> dict[str, PushedRun]:
    """The manifests of some runs, read at once."""
    places = {store.path(name, "runs", f"{number}.json"): number for number in numbers}
    if not places:
        return {}
    texts = store.files.cat(list(places), on_error="raise")
    return {number: _decoded(number, texts[place], f"{store.url}: {place}") for place, number in places.items()}


def experiments_in(store: ObjectStore) -> list[str]:
    """Names of the experiments that were pushed there."""
    with _in_words(store.url):
        return sorted(name for name in store.listed() if _FILE.fullmatch(name) and store.listed(name, "runs"))


# ---- Push.


@dataclass(slots=True)
class Pushed:
    """The outcome of a push."""

    runs: list[tuple[str, str]] = field(default_factory=list)
    """New runs: number here and number there."""
    known: int = 0
    """Runs that had been pushed before."""
    changed: list[str] = field(default_factory=list)
    """Runs that were changed here after they had been pushed; they are left there as they are."""
    unfinished: list[str] = field(default_factory=list)
    """Runs that are being recorded, or whose recorder was killed."""
    damaged: dict[str, str] = field(default_factory=dict)
    """Runs that are damaged here, and how."""
    mended: int = 0
    """Objects there that were damaged and have been replaced."""


def push(
    experiment: Experiment,
    store: ObjectStore,
    chosen: Collection[str] | None = None,
    *,
    verify: bool = False,
    tell: Callable[[float], None] = lambda part: None,
) -> Pushed:
    """Push all finished runs, or those chosen; ``verify``: read back what had been pushed before as well.

    Every file is compared with its checksum before it is sent, and read back and compared before its run's manifest is
    written. StoreError where the place cannot be written; what was pushed until then stays.
    """
    done = Pushed()
    with _in_words(store.url):
        manifests = _manifests(store, experiment.name, _numbers(store, experiment.name))
        there = {_identity(run.document): run for run in manifests.values()}
        sizes = {name: about.get("size") for name, about in store.listed(experiment.name, "objects").items()}
        numbers: dict[str, str] = {}  # of runs here → there
        finished, done.unfinished = experiment.listed()
        finished = [run for run in finished if chosen is None or run in chosen]
        for place, run in enumerate(finished):
            tell(place / len(finished))
            folder = experiment.runs_folder / run
            if (folder / MARK).exists():  # further processes of it may be still to come
                done.unfinished.append(run)
                continue
            try:
                manifest = experiment.recording(run).run
                pushed = there.get(identity_of(manifest))
                if pushed and not verify:
                    digests = dict(pushed.files)
                else:
                    verify_all(folder)
                    files, sources = _files_of(folder), _source_texts(folder)
                    digests, texts = ({name: _digest(path) for name, path in some.items()} for some in (files, sources))
            except StoreError as error:
                done.damaged[run] = f"{error.what}: {error.why}"
                continue
            if pushed:
                numbers[run] = pushed.number
                done.known += 1
                document = _document(manifest, folder)
                same = all(pushed.document[name] == document[name] for name in ("features", TABLES))
                if not same or pushed.files != digests:
                    done.changed.append(run)
                    continue
            if not pushed or verify:
                objects = {digests[name]: path for name, path in files.items()}
                objects |= {texts[name]: path for name, path in sources.items()}
                done.mended += _put_objects(store, experiment.name, objects, sizes)
            if not pushed:
                document = _document(replace(manifest, parent=numbers.get(manifest.parent, ""), planned=""), folder)
                numbers[run] = _claim_number(store, experiment.name, there, document, digests, texts)
                done.runs.append((run, numbers[run]))
    return done


def _document(run: Run, folder: Path) -> dict[str, Any]:
    """The ``run.json`` of a run, as it is read from JSON, without its checksum."""
    known = read_json(read_file(folder / "run.json")).get(TABLES) or digests_of(folder)
    document: dict[str, Any] = json.loads(json.dumps({"schema": RUN_SCHEMA, **asdict(run), TABLES: known}))
    return document


def _files_of(folder: Path) -> dict[str, Path]:
    """The files of a recording besides ``run.json``, by name."""
    files = {path.name: path for path in sorted(folder.iterdir()) if path.is_file() and _FILE.fullmatch(path.name)}
    return {name: path for name, path in files.items() if name != "run.json" and path.suffix != ".part"}


def _source_texts(folder: Path) -> dict[str, Path]:
    """The source texts that the counts of a run refer to, as far as they are kept, by the names of their files."""
    if not has_table(folder, "sources"):
        return {}
    texts = [folder.parent.parent / "sources" / f"{digest}.txt" for _, digest in read_table(folder, "sources")]
    return {path.name: path for path in texts if path.is_file()}


def _put_objects(store: ObjectStore, name: str, objects: Mapping[str, Path], sizes: dict[str, Any]) -> int:
    """Write the objects that are not there and read all of them back; returns how many were damaged there and replaced."""
    files = {store.path(name, "objects", digest): path for digest, path in objects.items()}
    missing = {place: path for place, path in files.items() if sizes.get(_name(place)) != path.stat().st_size}
    replaced = sum(_name(place) in sizes for place in missing)
    if missing:
        store.put(missing)
    damaged = _damaged(store, files)
    if damaged - missing.keys():  # of the right size, but of other bytes
        replaced += len(damaged - missing.keys())
        store.put({place: files[place] for place in damaged})
        damaged = _damaged(store, {place: files[place] for place in damaged})
    if damaged:
        place = sorted(damaged)[0]
        why = "what is read back differs from what was written"
        raise StoreError(f"{store.url}: {place} of {files[place]}", why, f"perflaw push {name} {store.url}")
    sizes.update({_name(place): path.stat().st_size for place, path in files.items()})
    return replaced


def _name(place: str) -> str:
    return place.rsplit("/", 1)[-1]


def _damaged(store: ObjectStore, places: Iterable[str]) -> set[str]:
    """The objects whose bytes are not those that their names promise."""
    with tempfile.TemporaryDirectory(prefix="perflaw-") as folder:
        copies = {place: Path(folder) / _name(place) for place in places}
        if copies:
            store.get(copies)
        return {place for place, copy in copies.items() if not copy.is_file() or _digest(copy) != _name(place)}


def _claim_number(
    store: ObjectStore,
    name: str,
    there: dict[tuple[object, ...], PushedRun],
    document: dict[str, Any],
    files: Mapping[str, str],
    sources: Mapping[str, str],
) -> str:
    """Write the manifest under the first number that is free, and return it; or that of another pusher of the same run.

    ``there`` has the manifests up to a number; it gets all those up to the one that is returned.
    """
    number, identity = max((int(run.number) for run in there.values()), default=0), _identity(document)
    while identity not in there:
        number += 1
        named = f"{number:04d}"
        run = PushedRun(named, sealed({**document, "id": named}), files, sources)
        place = store.path(name, "runs", f"{named}.json")
        found = store.create(place, run.encoded())
        taken = run if found == run.encoded() else _decoded(named, found, f"{store.url}: {place}")
        there[_identity(taken.document)] = taken
    return there[identity].number


# ---- Reading through a mirror.


Progress = Callable[[str], AbstractContextManager[Callable[[float], None]]]
"""A context for work with a label, which gives the function to tell the part that is done."""


def mirrored(url: str, cache: Path, progress: Progress) -> Callable[[str], Path]:
    """The folder of each experiment of a URL, for ``located_by``: copied below ``cache`` when it is first asked for."""
    store, opened = open_store(url), dict[str, Path]()

    def place(name: str) -> Path:
        if name not in opened:
            with progress(f"reading {name}") as tell:
                opened[name] = mirror(store, name, cache, tell).folder
        return opened[name]

    return place


def mirror(store: ObjectStore, name: str, cache: Path, tell: Callable[[float], None] = lambda part: None) -> Experiment:
    """A local copy of an experiment with the same numbers, as it is now; only what is not there yet is copied.

    Every file is compared with its checksum. StoreError where there is no such experiment, or an object is damaged or
    missing; what was copied until then stays and is not copied again.
    """
    place = blake2b(f"{store.url.rstrip('/')}/{name}".encode(), digest_size=8).hexdigest()
    experiment = Experiment(name, cache / place / name)
    with _in_words(store.url):
        numbers = _numbers(store, name)
        if not numbers:
            others = ", ".join(experiments_in(store)) or "none"
            why = f"there are: {others}"
            raise StoreError(f"{store.url}: no experiment {name}", why, f"perflaw push {name} {store.url}")
        experiment.runs_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        state = experiment.folder / "mirror.json"
        with locked(experiment.runs_folder):
            copied: dict[str, str] = {}
            with suppress(OSError, ValueError):  # it does not exist yet, or its disk was full
                copied = json.loads(state.read_text())
            here = set(experiment.ids())
            for gone in here - numbers.keys():
                discard(experiment.runs_folder / gone)
            new = [number for number, version in numbers.items() if number not in here or copied.get(number) != version]
            manifests = _manifests(store, name, new)
            try:
                for place_in_order, (number, run) in enumerate(manifests.items()):
                    tell(place_in_order / len(manifests))
                    _copy_run(store, experiment, run)
                    copied[number] = numbers[number]
            finally:
                if new or here - numbers.keys():
                    write_whole(state, json.dumps({number: copied[number] for number in numbers if number in copied}))
    return experiment


def _copy_run(store: ObjectStore, experiment: Experiment, run: PushedRun) -> None:
    """Copy a run into the mirror. It appears whole; what an interrupted copy left is used."""
    folder, sources = experiment.runs_folder / run.number, experiment.folder / "sources"
    part = folder.with_name(f"{run.number}.part")
    text = json.dumps(run.document, indent=1, allow_nan=False) + "\n"
    with suppress(OSError):  # it is not here yet
        if (folder / "run.json").read_text() == text and verify_all(folder):
            return
    part.mkdir(exist_ok=True, mode=0o700)
    wanted = {part / file: digest for file, digest in run.files.items()}
    if run.sources:
        sources.mkdir(exist_ok=True, mode=0o700)
        wanted |= {sources / file: digest for file, digest in run.sources.items()}
    missing = {file: digest for file, digest in wanted.items() if not file.is_file() or _digest(file) != digest}
    # Files of the same content are one object, which is copied once.
    objects = {digest: part / f"{digest}.object" for digest in missing.values()}
    try:
        if objects:
            store.get({store.path(experiment.name, "objects", digest): copy for digest, copy in objects.items()})
        for digest, copy in objects.items():
            if _digest(copy) != digest:
                raise FileNotFoundError(f"objects/{digest} has other bytes than its name says")
        for file, digest in missing.items():
            whole = file.with_name(f"{file.name}.part")
            shutil.copyfile(objects[digest], whole)
            whole.replace(file)
    except FileNotFoundError as error:
        what = f"{store.url}: run {run.number} of {experiment.name} is damaged"
        remedy = f"perflaw push {experiment.name} {store.url} --verify, where it was recorded"
        raise StoreError(what, " ".join(str(error).split()), remedy) from error
    finally:
        for copy in objects.values():
            copy.unlink(missing_ok=True)
    write_whole(part / "run.json", text)
    read_manifest(part)
    verify_all(part)
    discard(folder)
    part.rename(folder)
