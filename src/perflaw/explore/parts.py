"""A study as it was written, each part with its place: the same for YAML, Python and XML, so that one reader serves all."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NoReturn

import yaml

from perflaw.errors import UsageError
from perflaw.explore.values import Quantity, quantity

NEXT = "docs/study-files.md says what a study file may hold"
MOST_PARTS = 50_000
"""Of a file, aliases written out: more is no study but a bomb."""
_STR = "tag:yaml.org,2002:str"
_READ = {f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null")}
_TAGS = {_STR, *_READ, *(f"tag:yaml.org,2002:{name}" for name in ("timestamp", "value", "merge"))}


@dataclass(frozen=True, slots=True)
class Part:
    """A value of a study file and where it stands."""

    value: Any
    """dict[str, Part], list[Part], or a scalar: text, number, bool, None."""
    where: str
    """``study.yaml:12``."""
    what: str = "the study"
    """Its key, for complaints."""
    text: str = ""
    """A scalar as it was written."""

    def wrong(self, why: str, next_command: str = NEXT) -> NoReturn:
        """Refuse this place."""
        raise UsageError(f"{self.where}: {self.what}", why, next_command)

    def keys(self, known: Collection[str] = ()) -> dict[str, Part]:
        """A mapping; keys outside ``known`` (where given) are refused, with the nearest known one."""
        if not isinstance(self.value, dict):
            self.wrong(f"keys with values were expected, not {self._words()}")
        for name, part in self.value.items():
            if known and name not in known:
                Part(None, part.where, f"key {name!r} of {self.what}").wrong(f"unknown{did_you_mean(name, known)}")
        return dict(self.value)

    def items(self) -> list[Part]:
        """A list; a single value is a list of one."""
        return list(self.value) if isinstance(self.value, list) else [self]

    def word(self) -> str:
        """A text, as written: ``on`` and ``010`` stay what they are."""
        if isinstance(self.value, dict | list) or (self.value is None and not self.text):
            self.wrong(f"a text was expected, not {self._words()}")
        return self.text

    def boolean(self) -> bool:
        """``true`` or ``false``."""
        if not isinstance(self.value, bool):
            self.wrong(f"true or false was expected, not {self.text!r}")
        return self.value

    def quantity(self) -> Quantity:
        """A number with or without a unit."""
        found = None if isinstance(self.value, dict | list | bool) else quantity(self.text)
        if found is None:
            self.wrong(f"a number was expected (such as 5, 0.1, 4KiB, 10ms), not {self._words()}")
        return found

    def number(self, low: float, high: float = math.inf, unit: str = "") -> float:
        """A number between bounds; a quantity must be of that base unit."""
        found = self.quantity()
        if found.unit not in ("", unit):
            self.wrong(f"{self.text} is in {found.unit}, wanted is {unit or 'a plain number'}")
        if not low <= found.value <= high:
            self.wrong(
                f"{self.text} is not between {low:g} and {high:g}"
                if high < math.inf
                else f"it must be at least {low:g}"
            )
        return found.value

    def whole(self, low: int = 1, high: int = 10**9) -> int:
        """A whole number between bounds."""
        value = self.number(low, high)
        if value != int(value):
            self.wrong(f"a whole number was expected, not {self.text}")
        return int(value)

    def plain(self) -> Any:
        """The value without places: what injectors and policies are given."""
        if isinstance(self.value, dict):
            return {name: part.plain() for name, part in self.value.items()}
        return [part.plain() for part in self.value] if isinstance(self.value, list) else self.value

    def _words(self) -> str:
        if isinstance(self.value, dict):
            return "keys with values"
        return "a list" if isinstance(self.value, list) else "nothing" if self.value is None else repr(self.text)


def did_you_mean(word: str, known: Collection[str]) -> str:
    """``; did you mean `trials`?``, or all that is known."""
    by_lower = {one.lower(): one for one in known}
    close = get_close_matches(word[:40].lower(), by_lower, n=1, cutoff=0.6)
    return f"; did you mean `{by_lower[close[0]]}`?" if close else f"; there are {', '.join(known)}"


def from_python(value: Any, where: str, what: str = "the study") -> Part:
    """Parts of dicts, lists and scalars; UsageError for anything else."""
    if isinstance(value, Mapping):
        return Part({str(key): from_python(one, where, str(key)) for key, one in value.items()}, where, what)
    if isinstance(value, list | tuple | set | range):
        return Part([from_python(one, where, what) for one in value], where, what)
    if value is None or isinstance(value, bool | int | float | str):
        return Part(value, where, what, "" if value is None else str(value))
    return Part(None, where, what).wrong(f"{type(value).__name__} is neither a text, a number, a list nor a dict")


def from_yaml(text: str, where: str) -> Part:
    """Parts of a YAML file; UsageError with the line where it is none."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{where}{line}: no YAML", error.problem or str(error), NEXT) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UsageError(f"{where}: no YAML", str(error).split("\n", 1)[0], NEXT) from error
    if node is None:
        raise UsageError(f"{where}: nothing in it", "the file is empty or all comment", NEXT)
    return _Nodes(where).part(node, "the study", 0)


class _Nodes:
    """Turns nodes into parts, counting."""

    def __init__(self, where: str) -> None:
        self.where, self.seen = where, 0
        self.loader = yaml.SafeLoader("")

    def part(self, node: yaml.Node, what: str, depth: int) -> Part:
        place = Part(None, f"{self.where}:{node.start_mark.line + 1}", what)
        self.seen += 1
        if self.seen > MOST_PARTS or depth > 50:
            place.wrong("the file is too large or refers to itself")
        if isinstance(node, yaml.MappingNode):
            return Part(dict(self._pairs(node, place, depth)), place.where, what)
        if isinstance(node, yaml.SequenceNode):
            return Part([self.part(one, what, depth + 1) for one in node.value], place.where, what)
        return Part(self._scalar(node, place), place.where, what, str(node.value))

    def _pairs(self, node: yaml.MappingNode, place: Part, depth: int) -> Iterator[tuple[str, Part]]:
        seen = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                place.wrong("its keys must be plain words")
            name = str(key.value)
            if name in seen:
                Part(None, f"{self.where}:{key.start_mark.line + 1}", f"key {name!r}").wrong("it stands there twice")
            seen.add(name)
            yield name, self.part(value, name, depth + 1)

    def _scalar(self, node: yaml.Node, place: Part) -> Any:
        if node.tag not in _TAGS:
            place.wrong(f"the tag {node.tag} is not allowed")
        read = quantity(node.value) if node.tag == _STR and getattr(node, "style", None) is None else None
        if read and not read.unit and "e" in node.value.lower():
            return read.value  # 1e6, which YAML takes for a text
        if node.tag not in _READ or ":" in node.value:
            return str(node.value)
        try:
            return self.loader.construct_object(node)
        except (yaml.YAMLError, ValueError):
            return str(node.value)
