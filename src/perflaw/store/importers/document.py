"""Reading foreign JSON: every step says where it is, and what is not there is an error of the person's file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from perflaw.errors import DataError


@dataclass(frozen=True, slots=True)
class Node:
    """A value within a JSON document, and the way to it."""

    value: Any
    """The value."""
    file: str
    """File as the person named it."""
    path: str = ""
    """Way to the value, such as ``benchmarks[3].stats``."""

    def get(self, name: str) -> Node:
        """A field of an object; its value is None where there is no such field."""
        fields = self.fields()
        return Node(fields.get(name), self.file, f"{self.path}.{name}".lstrip("."))

    def fields(self) -> dict[str, Any]:
        """The object as it is; DataError where it is none."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return self.value

    def items(self) -> Iterator[Node]:
        """Elements of a list; DataError where it is none."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        for index, value in enumerate(self.value):
            yield Node(value, self.file, f"{self.path}[{index}]")

    def text(self) -> str:
        """A text; DataError where it is none."""
        if not isinstance(self.value, str):
            raise self.wrong("a text")
        return self.value

    def number(self) -> float:
        """A number, possibly not finite; DataError where it is none."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.wrong("a number")
        try:
            return float(self.value)
        except OverflowError:
            raise self.wrong("a number within the range of floating point") from None

    def wrong(self, wanted: str) -> DataError:
        """The refusal of what stands here."""
        shown = "nothing" if self.value is None else f"{json.dumps(self.value)[:40]}"
        return DataError(f"{self.file}: {self.path or 'the document'} is {shown}", f"{wanted} is wanted there")
