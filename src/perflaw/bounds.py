"""Bounds of what is read from files that others write: size, depth and digits, checked before anything is built of them.

Readers of JSON, YAML, TOML, traces and compressed files ask here. What exceeds a bound is a ValueError in words, which the
reader reports with the file and the advice.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

MAX_BYTES: Final = 1 << 29
"""Bytes of a file, unpacked: a trace of this size holds millions of calls."""
MAX_STREAMED_BYTES: Final = 1 << 36
"""Bytes of a file, unpacked, that is read in pieces."""
MAX_DOCUMENT_BYTES: Final = 1 << 24
"""Bytes of a file that people write: a study, a workload file, specifications."""
PIECE: Final = 1 << 20
"""Bytes of a piece of a file that is read in pieces."""
MAX_DEPTH: Final = 100
"""Lists and mappings within each other."""
MAX_DIGITS: Final = 308
"""Digits before the point: a larger number is no float."""
_STRING: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
"""A string of JSON; one without an end reaches to the end of the text, so that no part is looked at twice."""
_TOO_LONG: Final = f"a number has more than {MAX_DIGITS} digits: {{}}…"
_STEPS: Final = {"[": 1, "{": 1, "]": -1, "}": -1}


def check_size(count: int, most: int = MAX_BYTES) -> None:
    """ValueError if there are more bytes than a reader takes."""
    if count > most:
        raise ValueError(f"it is larger than the {most >> 20} MiB that are read")


def read_file(path: Path, most: int = MAX_BYTES) -> bytes:
    """The bytes of a file or pipe; ValueError if there are more. A file that never ends is not read further than that."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    check_size(len(data), most)
    return data


def read_pieces(
    path: Path, most: int = MAX_STREAMED_BYTES, progress: Callable[[float], None] = lambda part: None
) -> Iterator[bytes]:
    """The content of a file, gzip or plain, in pieces of at most a MiB; ValueError if it is damaged or larger than ``most``.

    ``progress`` is called with the part of the file that is read.
    """
    with path.open("rb") as file:
        whole = os.fstat(file.fileno()).st_size or 1
        size, member = 0, zlib.decompressobj(wbits=31)
        packed = file.peek(2)[:2] == b"\x1f\x8b"
        while data := file.read(PIECE):
            progress(min(file.tell() / whole, 1.0))
            while data:
                piece = data
                if not packed:
                    data = b""
                else:
                    if member.eof and not (data := data.lstrip(b"\0")):
                        break
                    member = zlib.decompressobj(wbits=31) if member.eof else member
                    try:
                        piece = member.decompress(data, PIECE)
                    except zlib.error as error:
                        raise ValueError(str(error)) from None
                    data = member.unused_data if member.eof else member.unconsumed_tail
                size += len(piece)
                if size > most:
                    raise ValueError(f"it is larger than the {most >> 30} GiB that are read")
                if piece:
                    yield piece
        if packed and not member.eof:
            raise ValueError("it ends in the middle")


def unpack_gzip(data: bytes, most: int = MAX_BYTES) -> bytes:
    """The content of a gzip file of one or more members; ValueError if it is damaged or larger than ``most``."""
    parts, size = [], 0
    while data:
        member = zlib.decompressobj(wbits=31)
        try:
            part = member.decompress(data, most + 1 - size)
        except zlib.error as error:
            raise ValueError(str(error)) from None
        parts.append(part)
        size += len(part)
        check_size(size, most)
        if not member.eof:
            raise ValueError("it ends in the middle")
        data = member.unused_data.lstrip(b"\0")
    return b"".join(parts)


def check_depth(text: str) -> None:
    """ValueError if lists and mappings of a JSON text lie deeper within each other than they may."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    plain = _STRING.sub("", text)
    if max(accumulate(_STEPS[one] for one in re.findall(r"[\[\]{}]", plain)), default=0) > MAX_DEPTH:
        raise ValueError(f"its lists and mappings lie more than {MAX_DEPTH} deep within each other")


def check_digits(text: str) -> str:
    """The text of a number; ValueError if it has more digits, or a larger exponent, than any number that is read."""
    if len(text) <= MAX_DIGITS and "e" not in text and "E" not in text:
        return text
    mantissa, _, exponent = text.lower().partition("e")
    if len(mantissa) > 2 * MAX_DIGITS or len(exponent) > 4 or abs(int(exponent or 0)) > MAX_DIGITS + 20:
        raise ValueError(_TOO_LONG.format(text[:20]))
    return text


def read_json(text: str | bytes, *, exact: bool = False) -> Any:
    """The value of a JSON text; ValueError if it is not JSON or exceeds a bound (JSONDecodeError says where).

    ``exact``: fractions are Decimals.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    check_size(len(text))
    check_depth(text)

    def whole(digits: str) -> int:
        if len(digits) > MAX_DIGITS:
            raise ValueError(_TOO_LONG.format(digits[:20]))
        return int(digits)

    def fraction(digits: str) -> Decimal | float:
        return Decimal(check_digits(digits)) if exact else float(digits)

    return json.loads(text, parse_int=whole, parse_float=fraction if exact else None)
