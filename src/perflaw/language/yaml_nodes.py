"""YAML by nodes, so that every complaint names the line: values of one expected kind, or a DataError."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NoReturn

import yaml

from perflaw.errors import DataError

_INT, _FLOAT, _BOOL, _STR = (f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "str"))


@dataclass(frozen=True, slots=True)
class Place:
    """A node of a YAML file, and how to complain about it."""

    node: yaml.Node
    """What PyYAML composed."""
    where: str
    """Name of the file."""
    what: str = "the file"
    """What this is called in a complaint."""
    next_command: str = ""
    """What a complaint tells to try."""

    def wrong(self, why: str) -> NoReturn:
        """Refuse this place."""
        raise DataError(f"{self.where}:{self.node.start_mark.line + 1}: {self.what}", why, self.next_command)

    def _inner(self, node: yaml.Node, what: str) -> Place:
        return Place(node, self.where, what, self.next_command)

    def keys(self) -> dict[str, Place]:
        """Values of a mapping by their keys; a key that stands there twice is refused."""
        if not isinstance(self.node, yaml.MappingNode):
            self.wrong("keys with values were expected")
        found: dict[str, Place] = {}
        for key, value in self.node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._inner(key, "a key").wrong("a plain word was expected")
            if key.value in found:
                self._inner(key, f"key {key.value!r}").wrong("it stands there twice")
            found[key.value] = self._inner(value, key.value)
        return found

    def known_keys(self, needed: Collection[str], others: Collection[str]) -> dict[str, Place]:
        """The same, where all needed ones are there and no unknown one is."""
        found = self.keys()
        for name in needed:
            if name not in found:
                self.wrong(f"key {name!r} is missing")
        for name, value in found.items():
            if name not in needed and name not in others:
                value.wrong(f"unknown key; known are {', '.join(sorted([*needed, *others]))}")
        return found

    def items(self) -> Iterator[Place]:
        """Items of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            self.wrong("a list was expected")
        return (self._inner(node, self.what) for node in self.node.value)

    def text(self) -> str:
        """A text; numbers and words such as ``yes`` are taken as they stand."""
        if not isinstance(self.node, yaml.ScalarNode):
            self.wrong("a text was expected")
        return str(self.node.value)

    def boolean(self) -> bool:
        """``true`` or ``false``."""
        text = self.text().lower()
        if self.node.tag != _BOOL or text not in ("true", "false", "yes", "no", "on", "off"):
            self.wrong(f"true or false was expected, not {text!r}")
        return text in ("true", "yes", "on")

    def number(self, low: float = 0.0, high: float = math.inf) -> float:
        """A number between two bounds."""
        text = self.text()
        try:
            value = float(text.replace("_", ""))
        except ValueError:
            self.wrong(f"a number was expected, not {text!r}")
        if not low <= value <= high or math.isinf(value):
            self.wrong(
                f"{text} is not between {low:g} and {high:g}" if math.isfinite(high) else f"{text} is below {low:g}"
            )
        return value

    def whole(self) -> int:
        """A whole number from 0 on."""
        text = self.text()
        if not text.replace("_", "").isdecimal() or len(text) > 18:
            self.wrong(f"a whole number was expected, not {text!r}")
        return int(text)


def compose(text: str, where: str, next_command: str) -> Place:
    """The file's outermost node; DataError with the line where it is no YAML."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise DataError(f"{where}{line}: no YAML", error.problem or str(error), next_command) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise DataError(f"{where}: no YAML", str(error).split("\n", 1)[0], next_command) from error
    if node is None:
        raise DataError(f"{where}: nothing in it", "the file is empty or all comment", next_command)
    return Place(node, where, next_command=next_command)
