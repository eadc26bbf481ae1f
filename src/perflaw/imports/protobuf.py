"""Messages of Protocol Buffers without their schema: fields by number, as OTLP and Perfetto write them.

Only what these formats need is read: varints, fixed numbers and bytes. Groups, which no current format has, are damage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import unpack, unpack_from

Value = int | bytes
"""A varint or the bits of a fixed number, without a sign; or bytes: text, a message within, packed numbers."""
_SIGN = 1 << 63
_LONGEST_HEAD = 20
"""Bytes of a key and of a number or a length."""
_SMALL = [bytes([value]) for value in range(128)]


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Number and value of each field of a message, in order; ValueError where it is damaged.

    >>> list(fields(bytes([8, 150, 1, 18, 2, 104, 105])))
    [(1, 150), (2, b'hi')]
    """
    place, size = 0, len(data)
    while place < size:
        key = data[place]
        if key < 128:
            place += 1
        else:
            key, place = varint(data, place)
        kind = key & 7
        value: Value
        if kind == 2:
            if place < size and (length := data[place]) < 128:
                place += 1
            else:
                length, place = varint(data, place)
            end = place + length
            if end > size:
                raise ValueError(f"a field of {length} bytes, of which only {size - place} are there")
            value = data[place:end]
            place = end
        elif kind == 0:
            if place < size and data[place] < 128:
                value = data[place]
                place += 1
            else:
                value, place = varint(data, place)
        elif kind in (1, 5):
            width = 8 if kind == 1 else 4
            if place + width > size:
                raise ValueError("it ends in the middle of a number")
            value = unpack_from("<Q" if kind == 1 else "<I", data, place)[0]
            place += width
        else:
            raise ValueError(f"a field of kind {kind}, which no message has")
        yield key >> 3, value


def messages(pieces: Iterable[bytes], number: int, most: int) -> Iterator[bytes]:
    """The messages of one field of an outermost message that is read in pieces; other fields are passed over.

    ValueError where it is damaged, or where a field has more than ``most`` bytes.

    >>> list(messages([bytes([10, 2, 104]), bytes([105, 16, 1, 10, 0])], 1, 100))
    [b'hi', b'']
    """
    held = b""
    wanted = 0  # bytes from which on it is worth looking again
    for piece in pieces:
        held += piece
        if len(held) < wanted:
            continue
        place = 0
        while (end := _field_end(held, place)) is not None and end <= len(held):
            for key, value in fields(held[place:end]):
                if key == number:
                    yield message(value)
            place = end
        if end is not None and end - place > most:
            raise ValueError(f"a field of {end - place} bytes")
        held = held[place:]
        wanted = 0 if end is None else end - place
    if held:
        raise ValueError("it ends in the middle of a field")


def _field_end(data: bytes, place: int) -> int | None:
    """Where the field that begins at a place ends; None where too little of it is there to tell."""
    try:
        key, at = varint(data, place)
        if key & 7 == 2:
            length, at = varint(data, at)
            return at + length
        # A field of another kind has no size, and reading it tells that no message has one.
        return varint(data, at)[1] if key & 7 == 0 else at + {1: 8, 5: 4}.get(key & 7, 0)
    except ValueError:
        if len(data) - place > _LONGEST_HEAD:
            raise
        return None


def varint(data: bytes, place: int) -> tuple[int, int]:
    """The varint that begins at a place, and the place after it; ValueError where it is damaged."""
    value = shift = 0
    while place < len(data) and shift < 70:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value & ((1 << 64) - 1), place
    raise ValueError("it ends in the middle of a number" if shift < 70 else "a number of more than 64 bits")


def field(number: int, value: int | bytes) -> bytes:
    """A field as it is written.

    >>> list(fields(field(1, 150) + field(2, b"hi")))
    [(1, 150), (2, b'hi')]
    """
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    if value < 128:
        return _SMALL[value]
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def message(value: Value) -> bytes:
    """The bytes of a field; ValueError where it is a number."""
    if isinstance(value, int):
        raise ValueError("a number stands where a message is expected")
    return value


def whole(value: Value) -> int:
    """The number of a field; ValueError where it is bytes."""
    if isinstance(value, bytes):
        raise ValueError("bytes stand where a number is expected")
    return value


def signed(value: Value) -> int:
    """The number of a field of type int64."""
    bits = whole(value)
    return bits - (_SIGN << 1) if bits & _SIGN else bits


def double(value: Value) -> float:
    """The number of a field of type double."""
    return float(unpack("<d", whole(value).to_bytes(8, "little"))[0])


def text(value: Value) -> str:
    """The text of a field."""
    return message(value).decode(errors="replace")
