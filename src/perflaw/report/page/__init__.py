"""What all views of the page make their data with: documents without their lists, few digits, deflated parts.

As plain text the charts of 500 components are 8 MB, and the page shows one at a time: each part is deflated on its own.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterable

from perflaw.types import Curve
from perflaw.types.documents import Document, document, flat_document


def flat(noun: object) -> Document:
    """The document of a noun, or a document, without its lists and maps, for rows of which a page holds thousands."""
    if isinstance(noun, dict):
        return {name: value for name, value in noun.items() if not isinstance(value, dict | list)}
    return flat_document(noun)


def shortened(values: Iterable[float | None], digits: int = 5) -> list[float | None]:
    """Numbers with few digits, whole ones without a point: half the bytes, the same pixels."""
    short: list[float | None] = []
    for value in values:
        if value is None or not math.isfinite(value):
            short.append(None)
            continue
        rounded = float(f"{value:.{digits}g}")
        short.append(int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded)
    return short


def curve_columns(curve: Curve, digits: int = 5) -> dict[str, list[float | None]]:
    """Grid, mean and bands of a curve under the names of its fields."""
    columns = {name: values for name, values in document(curve).items() if name != "feature"}
    return {name: shortened(values, digits) for name, values in columns.items()}


def packed(content: Document) -> str:
    """JSON values as base64 of deflated JSON; the page inflates them when they are looked at."""
    plain = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    return base64.b64encode(zlib.compress(plain, 9)).decode("ascii")
