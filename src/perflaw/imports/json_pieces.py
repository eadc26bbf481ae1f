"""JSON that is read in pieces: a large array gives its items one after the other, so memory does not grow with the file.

A reader walks through the objects and arrays that it knows and takes whole values within them. What it does not expect is a
ValueError; the reader of whole files then tells what is wrong.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Final

from perflaw.bounds import check_digits, check_size, read_pieces

MAX_VALUE: Final = 1 << 26
"""Characters of a value that is taken whole."""
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_END: Final = ""


def _whole(digits: str) -> int:
    return int(check_digits(digits))


class JsonPieces:
    """A text of JSON, of which only the part that is being read is in memory."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._place, self._is_whole = "", 0, False
        self._value = json.JSONDecoder(
            parse_float=lambda digits: Decimal(check_digits(digits)), parse_int=_whole
        ).raw_decode

    @classmethod
    def of(cls, path: Path) -> JsonPieces:
        """The text of a file, gzip or plain; OSError or ValueError once it cannot be read."""
        return cls(read_pieces(path))

    def _read(self, count: int) -> bool:
        """Read at least so many characters more; False at the end."""
        parts, size = [self._text[self._place :]], 0
        while size < count and not self._is_whole:
            piece = next(self._pieces, None)
            self._is_whole = piece is None
            parts.append(self._decode.decode(piece or b"", self._is_whole))
            size += len(parts[-1])
        self._text, self._place = "".join(parts), 0
        return size > 0

    def next(self) -> str:
        """The next character that is no space, which is not taken; empty at the end."""
        while True:
            self._place = _SPACE.match(self._text, self._place).end()  # type: ignore[union-attr]  # it always matches
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._read(1):
                return _END

    def take(self, character: str) -> None:
        """Take a character; ValueError where another one is next."""
        if self.next() != character:
            raise ValueError(f"{character} is missing")
        self._place += 1

    def value(self) -> object:
        """Take a whole value; fractions are Decimals."""
        if not self.next():
            raise ValueError("it ends in the middle")
        while True:
            try:
                value, end = self._value(self._text, self._place)
            except RecursionError:
                raise ValueError("its lists and mappings lie too deep within each other") from None
            except ValueError:
                check_size(len(self._text) - self._place, MAX_VALUE)
                if not self._read(len(self._text) - self._place):  # twice as much, so that few tries are needed
                    raise
            else:
                size = end - self._place
                if end + 3 > len(self._text) and self._read(1):
                    continue  # it may be a number that goes on: 1, 1.5, 1.5e-9
                self._place += size
                return value

    def pass_over(self) -> Iterator[None]:
        """Take a value that is not looked at, as an array without items."""
        self.value()
        yield from ()

    def items(self) -> Iterator[None]:
        """Go through an array; whoever asks takes one value each time."""
        self.take("[")
        while self.next() != "]":
            yield
            if self.next() != "]":
                self.take(",")
                if self.next() == "]":
                    raise ValueError("a value is missing")
        self.take("]")

    def members(self) -> Iterator[str]:
        """Go through the keys of an object; whoever asks takes the value of each."""
        self.take("{")
        while self.next() != "}":
            key = self.value()
            if not isinstance(key, str):
                raise ValueError("a key is no text")
            self.take(":")
            yield key
            if self.next() != "}":
                self.take(",")
                if self.next() == "}":
                    raise ValueError("a key is missing")
        self.take("}")
