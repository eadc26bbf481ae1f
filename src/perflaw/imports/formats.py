"""Files of other tools, and what a format is that perflaw reads; `registry` lists the formats."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

from perflaw.bounds import read_file, read_json, unpack_gzip
from perflaw.documents import DocumentNode, DocumentSource, json_document
from perflaw.errors import DataError
from perflaw.imports.json_pieces import JsonPieces

Content = TypeVar("Content", covariant=True)


@dataclass(frozen=True)
class ForeignFile:
    """A file or folder of another tool. It is decoded only as far as a format looks into it."""

    path: Path
    """Path as the person gave it; ``-`` for standard input."""
    data: bytes = b""
    """Its bytes, unpacked; empty for a folder."""
    advice: str = "perflaw import --help"
    """Command that errors advise."""
    library: Path | None = None
    """The C core's library, which reads some formats; None to read them in Python."""

    @classmethod
    def open(cls, path: Path, library: Path | None = None) -> ForeignFile:
        """Read a file, gzip or plain, or name a folder. DataError where it cannot be read or unpacked."""
        try:
            data = b"" if path.is_dir() else read_file(path)
        except (OSError, ValueError) as error:
            why = (error.strerror or "").lower() if isinstance(error, OSError) else str(error)
            raise DataError(f"{path}: cannot be read", why, f"ls -l {path}") from error
        if data[:2] == b"\x1f\x8b":
            try:
                data = unpack_gzip(data)
            except ValueError as error:
                raise DataError(f"{path}: gzip that cannot be unpacked", str(error), f"gzip -t {path}") from None
        return cls(path, data, library=library)

    @cached_property
    def text(self) -> str:
        """The file as text; DataError where it is not UTF-8."""
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            what = f"{self.path}, byte {error.start}: not UTF-8 text"
            raise DataError(what, "no binary format is read", self.advice) from None

    @property
    def is_json(self) -> bool:
        """Whether the text can only be meant as JSON: no header of a CSV file begins with a bracket."""
        return self.text.lstrip()[:1] in ("{", "[")

    @property
    def documents(self) -> list[object]:
        """The JSON documents in the file: usually one, several where each line is one, none where it is not JSON.

        Fractions are Decimals, so that time stamps stay exact. DataError where the JSON is damaged.
        """
        return self._parsed[0]

    @property
    def is_cut(self) -> bool:
        """Whether a JSON array has no end, as in a file that a program was still writing."""
        return self._parsed[1]

    @property
    def keys(self) -> Mapping[str, object]:
        """Keys and values of the first JSON document; empty where it is not an object."""
        return mapping(self.documents[0]) if self.documents else {}

    def document(self) -> DocumentNode:
        """The JSON document with its places, fractions as floats."""
        return json_document(self.text, DocumentSource(str(self.path), DataError, self.advice))

    @cached_property
    def _parsed(self) -> tuple[list[object], bool]:
        if not self.is_json:
            return [], False
        try:
            return [read_json(self.text, exact=True)], False
        except json.JSONDecodeError as error:
            damage = error
        except ValueError as error:
            raise DataError(f"{self.path}: not readable as JSON", str(error), self.advice) from None
        if damage.msg == "Extra data":
            documents = []  # JSON lines
            for number, line in enumerate(self.text.splitlines(), 1):
                if line.strip():
                    try:
                        documents.append(read_json(line, exact=True))
                    except json.JSONDecodeError as error:
                        raise self._damaged(error, number) from None
                    except ValueError as error:
                        problem = f"{self.path}:{number}: not readable as JSON"
                        raise DataError(problem, str(error), self.advice) from None
            return documents, False
        if self.text.lstrip().startswith("["):
            try:
                return [read_json(self.text.rstrip().rstrip(",") + "]", exact=True)], True
            except ValueError:
                pass  # more than the closing bracket is missing
        raise self._damaged(damage, damage.lineno)

    def _damaged(self, error: json.JSONDecodeError, line: int) -> DataError:
        return DataError(f"{self.path}:{line}:{error.colno}: not JSON", error.msg.lower(), self.advice)


@dataclass(frozen=True, slots=True)
class Format(Generic[Content]):
    """A format of another tool."""

    name: str
    """Its name in messages."""
    recognises: Callable[[ForeignFile], bool]
    """Tells by the content, never by the name, whether a file has the format."""
    read: Callable[[ForeignFile], Content]
    """Reads a recognised file; DataError where it is damaged."""
    begins: re.Pattern[bytes] | None = None
    """How a file begins that can be read in pieces; None where there is no such reader."""
    read_pieces: Callable[[ForeignFile, JsonPieces], Content | None] | None = None
    """Reads a file in pieces. None, DataError or ValueError where ``read`` is to tell what is wrong."""
    read_bytes: Callable[[ForeignFile], Content | None] | None = None
    """Reads a binary file in pieces, of which a recognised :class:`ForeignFile` holds the beginning; DataError where it is
    damaged, None where ``read`` is to tell what is wrong. None where there is no such reader."""


def mapping(value: object) -> Mapping[str, object]:
    """A JSON object; empty where the value is not an object."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Mapping[str, object]]:
    """The objects of a JSON list; none where the value is not a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
