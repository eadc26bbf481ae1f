"""Checksums of a recording's files, so that no altered byte gives another answer unnoticed.

``run.json`` holds the digest of every table under ``tables``, and under ``checksum`` one of all its other fields. A file is
compared when it is first read. Recordings of earlier versions have neither; they are read as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from perflaw.bounds import read_file, read_json
from perflaw.errors import StoreError

TABLES, CHECKSUM = "tables", "checksum"
"""Fields of ``run.json``."""
SUFFIX: Final = ".parquet"
_PIECE: Final = 1 << 20
_COMMAND: Final = "perflaw runs --verify"
_MOST_VERIFIED: Final = 1 << 16
_verified: set[int] = set()
"""Tables that were compared, as a hash of path, table and manifest: who mines for days keeps a number of each, and no more."""


def digest_of(path: Path) -> str:
    """Digest of a file's bytes."""
    digest = blake2b(digest_size=8)
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def digests_of(folder: Path) -> dict[str, str]:
    """Digest of each table of a folder, by name."""
    return {path.stem: digest_of(path) for path in sorted(folder.glob(f"*{SUFFIX}"))}


def sealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with the checksum of its other fields."""
    return {**document, CHECKSUM: _checksum(document)}


def check_seal(document: Mapping[str, Any]) -> None:
    """ValueError if a manifest was altered after it was written."""
    if (CHECKSUM in document or TABLES in document) and document.get(CHECKSUM) != _checksum(document):
        raise ValueError("its checksum differs: it was altered")


def _checksum(document: Mapping[str, Any]) -> str:
    # As it will be read: keys of a mapping are texts there, and their order means nothing.
    fields = json.loads(json.dumps({name: value for name, value in document.items() if name != CHECKSUM}))
    return blake2b(json.dumps(fields, sort_keys=True).encode(), digest_size=8).hexdigest()


def verify(path: Path) -> None:
    """Compare a table with its manifest's digest; StoreError if they differ.

    A manifest that cannot be read is not this function's affair: whoever reads it tells.
    """
    try:
        table, manifest = path.stat(), (path.parent / "run.json").stat()
    except OSError:  # it is still being written, or missing, which its reader tells
        return
    table_stamp, stamp = ((about.st_ino, about.st_size, about.st_mtime_ns) for about in (table, manifest))
    key = hash((str(path), table_stamp, stamp))
    if key in _verified:
        return
    known = _digests(path.parent, stamp)
    if known and path.stem in known and digest_of(path) not in known[path.stem].split():
        raise StoreError(f"{path}: damaged", "its checksum differs: it is truncated or was altered", _COMMAND)
    if len(_verified) >= _MOST_VERIFIED:
        _verified.clear()
    _verified.add(key)


@lru_cache(maxsize=64)
def _digests(folder: Path, manifest: tuple[int, ...]) -> dict[str, str] | None:
    """Digests of the tables by name; None if the manifest has none, or cannot be read."""
    try:
        document = read_json(read_file(folder / "run.json"))
        return {str(name): str(digest) for name, digest in document[TABLES].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def verify_all(folder: Path) -> bool:
    """Compare all tables of a recording; StoreError names the first that is altered or missing.

    Returns whether the recording has checksums.
    """
    _digests.cache_clear()
    known = _digests(folder, ())
    for name in sorted(known or ()):
        path = folder / f"{name}{SUFFIX}"
        if not path.is_file():
            raise StoreError(f"{path}: missing", "the recording is damaged", _COMMAND)
        verify(path)
    return known is not None
