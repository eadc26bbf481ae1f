"""Checked documents: values of TOML, YAML and JSON files and of Python code, each with its file, line and key.

A reader of a format (`toml_document`, `yaml_document`, `json_document`, `python_document`) gives the outermost
`DocumentNode`. Whoever interprets the document walks down from there and asks each node for the kind of value that has
to stand there. A wrong value raises the error of the document's source, which names file, line and key path.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from perflaw.bounds import MAX_DOCUMENT_BYTES, check_depth, check_size, read_json
from perflaw.errors import PerflawError, UsageError, did_you_mean

if TYPE_CHECKING:
    import yaml

Key = tuple[str | int, ...]
"""Keys and list indices (from 0) that lead from the top of a document to a value."""
MAX_ALIASED: Final = 50_000
"""Values that a YAML file may add through aliases; more is an attack on memory."""
MAX_DEPTH: Final = 50
"""Levels of nesting in a YAML file."""
MAX_SHOWN: Final = 40
"""Characters of a wrong value that a message shows."""


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """What all nodes of a document share."""

    file: str
    """File as the person named it."""
    error: type[PerflawError] = UsageError
    """Error that a wrong value raises."""
    next_command: str = ""
    """Default advice of an error."""
    examples: Mapping[str, str] = field(default_factory=dict)
    """Key → a correct line for it, which is the advice of errors at and below that key."""
    lines: Mapping[Key, int] = field(default_factory=dict)
    """Line of each key, from 1, where the format gives lines."""
    spellings: Mapping[Key, str] = field(default_factory=dict)
    """Numbers, truth values and nulls as they are written, where these may stand for texts."""


@dataclass(frozen=True, slots=True)
class DocumentNode:
    """A value in a document, and the checks of what it has to be."""

    source: DocumentSource
    """The document."""
    key: Key
    """Where the value stands; empty for the whole document."""
    value: Any
    """The plain value: dict, list, text, number, bool or None; None also for a key that is missing."""

    @property
    def name(self) -> str:
        """The last key; empty for the whole document."""
        return str(self.key[-1]) if self.key else ""

    @property
    def line(self) -> int | None:
        """Line of the value or of the nearest value around it; None where the format gives no lines."""
        ends = range(len(self.key), -1, -1)
        return next((self.source.lines[self.key[:end]] for end in ends if self.key[:end] in self.source.lines), None)

    @property
    def path(self) -> str:
        """The key as people write it: ``workload[1].vary.n``."""
        path = ""
        for part in self.key:
            if isinstance(part, int):
                path += f"[{part}]"
            else:
                path += f"{'.' if path else ''}{part if part.isprintable() and part else repr(part)}"
        return path

    def refuse(self, why: str, next_command: str = "") -> NoReturn:
        """Raise the source's error for this place; ``why`` says what is wrong."""
        place = f"{self.source.file}:{self.line}" if self.line else self.source.file
        if not next_command:
            examples = (self.source.examples.get(str(part)) for part in reversed(self.key))
            next_command = next(filter(None, examples), self.source.next_command)
        raise self.source.error(f"{place}: {self.path}" if self.key else place, why, next_command)

    def expect(self, kind: str, next_command: str = "") -> NoReturn:
        """Refuse the value because it is not of the expected kind.

        >>> python_document({"n": [1, "x"]}, DocumentSource("a.py")).child("n").child(1).expect("a number")
        Traceback (most recent call last):
        perflaw.errors.UsageError: a.py: n[1]: a number was expected, not 'x'
        """
        if isinstance(self.value, dict):
            shown = "a mapping" if self.value else "an empty mapping"
        elif isinstance(self.value, list):
            shown = "a list" if self.value else "an empty list"
        elif self.value is None:
            shown = "nothing"
        elif isinstance(self.value, str):
            shown = repr(self.value)
        else:
            written = str(self.value).lower() if isinstance(self.value, bool) else str(self.value)
            shown = self.source.spellings.get(self.key, written)
        shown = shown if len(shown) <= MAX_SHOWN else shown[: MAX_SHOWN - 1] + "…"
        self.refuse(f"{kind} was expected, not {shown}", next_command)

    def child(self, name: str | int) -> DocumentNode:
        """The value under a key of a mapping, or at an index of a list; its value is None where the key is missing."""
        value = self.value[name] if isinstance(name, int) else self.mapping_value().get(name)
        return DocumentNode(self.source, (*self.key, name), value)

    def mapping_value(self) -> dict[str, Any]:
        """The plain mapping."""
        if not isinstance(self.value, dict):
            self.expect("a mapping")
        return self.value

    def mapping(self, allowed: Collection[str] = (), required: Collection[str] = ()) -> dict[str, DocumentNode]:
        """The values of a mapping by key. Other keys than the allowed and required ones are refused, if any are given."""
        names = self.mapping_value()
        known = [*required, *allowed]
        for name in names if known else ():
            if name not in known:
                self.child(name).refuse(f"unknown key{did_you_mean(name, known)}")
        for name in required:
            if name not in names:
                self.refuse(f"key {name!r} is missing")
        return {name: self.child(name) for name in names}

    def items(self) -> list[DocumentNode]:
        """The items of a list."""
        if not isinstance(self.value, list):
            self.expect("a list")
        return [self.child(index) for index in range(len(self.value))]

    def one_or_more(self) -> list[DocumentNode]:
        """The items of a list; a single value counts as a list of one."""
        return self.items() if isinstance(self.value, list) else [self]

    def text(self) -> str:
        """A text. In YAML and Python, numbers and words such as ``on`` or ``010`` are texts as they are written."""
        text = self.source.spellings.get(self.key, self.value)
        if not isinstance(text, str):
            self.expect("a text")
        return text

    def boolean(self) -> bool:
        """A truth value."""
        if not isinstance(self.value, bool):
            self.expect("true or false")
        return self.value

    def number(self, low: float = -math.inf, high: float = math.inf, *, finite: bool = True) -> float:
        """A number from ``low`` to ``high``; NaN and infinities are allowed only if ``finite`` is false."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.expect("a number")
        try:
            number = float(self.value)
        except OverflowError:
            self.expect("a number in the range of floating point")
        if finite and not math.isfinite(number):
            self.expect("a finite number")
        if finite and not low <= number <= high:
            self.expect(f"a number {_bounds(low, high)}")
        return number

    def whole(self, low: int = 0, high: int = 10**18) -> int:
        """A whole number from ``low`` to ``high``."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or not low <= self.value <= high:
            self.expect(f"a whole number {_bounds(low, high if high < 10**18 else math.inf)}")
        return self.value

    def regex(self) -> str:
        """A regular expression."""
        text = self.text()
        try:
            re.compile(text)
        except re.error as error:
            self.refuse(f"{text!r} is not a regular expression: {error}")
        return text


def _bounds(low: float, high: float) -> str:
    return f"of at least {low:g}" if high == math.inf else f"between {low:g} and {high:g}"


def json_document(text: str, source: DocumentSource) -> DocumentNode:
    """The document of a JSON text; the source's error where the text is not JSON."""
    try:
        return DocumentNode(source, (), read_json(text))
    except json.JSONDecodeError as error:
        place = f"{source.file}:{error.lineno}:{error.colno}"
        raise source.error(f"{place}: not JSON", error.msg.lower(), source.next_command) from None
    except ValueError as error:
        raise source.error(f"{source.file}: not readable as JSON", str(error), source.next_command) from None


def python_document(value: object, source: DocumentSource) -> DocumentNode:
    """A document made of dicts, lists (or tuples, sets, ranges) and scalars; the source's error for anything else."""
    spellings: dict[Key, str] = {}
    source = replace(source, spellings=spellings)

    def plain(value: object, key: Key) -> Any:
        if isinstance(value, Mapping):
            return {str(name): plain(inner, (*key, str(name))) for name, inner in value.items()}
        if isinstance(value, list | tuple | set | range):
            return [plain(inner, (*key, index)) for index, inner in enumerate(value)]
        if value is not None and not isinstance(value, bool | int | float | str):
            kind = type(value).__name__
            DocumentNode(source, key, None).refuse(f"{kind} is neither a text, a number, a list nor a dict")
        if isinstance(value, bool | int | float):
            spellings[key] = str(value)
        return value

    return DocumentNode(source, (), plain(value, ()))


# TOML: ``tomllib`` gives values without places, so the lines of keys are read from the text.

_TOML_KEY = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_TOML_HEADER = re.compile(r"\s*(\[\[?)([^\[\]]+)\]\]?\s*(#.*)?")
_TOML_ASSIGNMENT = re.compile(rf"\s*({_TOML_KEY}(?:\s*\.\s*{_TOML_KEY})*)\s*=")


def toml_document(text: str, source: DocumentSource) -> DocumentNode:
    r"""The document of a TOML text; the source's error where the text is not TOML.

    >>> text = "repeat = 2\n[[workload]]\nname = 'a'\n[[workload]]\nname = 'b'"
    >>> name = toml_document(text, DocumentSource("w.toml")).child("workload").child(1).child("name")
    >>> name.path, name.line, name.text()
    ('workload[1].name', 5, 'b')
    """
    try:
        check_size(len(text), MAX_DOCUMENT_BYTES)
        check_depth(text)
        value = tomllib.loads(text + "\n")  # without it, an error in the last line does not name the line
    except ValueError as error:
        raise source.error(f"{source.file}: not TOML", str(error), "correct that line") from None

    # Line of each table and key; keys in inline tables have the line of their table.
    lines: dict[Key, int] = {}
    newest: dict[Key, int] = {}
    table: Key = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TOML_HEADER.fullmatch(line):
            table = ()
            parts = _toml_parts(header[2])
            for place, part in enumerate(parts, 1):
                table = (*table, part)
                if header[1] == "[[" and place == len(parts):
                    newest[table] = newest.get(table, -1) + 1
                if table in newest:  # a table within an array belongs to the array's newest element
                    table = (*table, newest[table])
            lines.setdefault(table, number)
        elif assignment := _TOML_ASSIGNMENT.match(line):
            lines.setdefault((*table, *_toml_parts(assignment[1])), number)
    return DocumentNode(replace(source, lines=lines), (), value)


def _toml_parts(text: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_TOML_KEY, text)]


# YAML: PyYAML's nodes have lines; values are read from them here, so that texts stay as they are written.

_YAML_TEXT = "tag:yaml.org,2002:str"
_YAML_READ = {f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null")}
_YAML_TAGS = {_YAML_TEXT, *_YAML_READ, *(f"tag:yaml.org,2002:{name}" for name in ("timestamp", "value", "merge"))}
_DECIMAL = re.compile(r"[+-]?\d[\d_]*")
_EXPONENTIAL = re.compile(r"[+-]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)[eE][+-]?\d+")


def yaml_document(text: str, source: DocumentSource) -> DocumentNode:
    """The document of a YAML text; the source's error, with the line, where it is not YAML or uses tags.

    Unlike in YAML 1.1, ``010`` is ten, ``1e6`` is a number and ``1:30`` is a text.

    >>> node = yaml_document("n: [010, 1e6, on]", DocumentSource("study.yaml")).child("n")
    >>> [item.value for item in node.items()], [item.text() for item in node.items()]
    ([10, 1000000, True], ['010', '1e6', 'on'])
    """
    import yaml  # takes 50 ms, which readers of TOML and JSON do not pay

    error, file, advice = source.error, source.file, source.next_command
    try:
        check_size(len(text), MAX_DOCUMENT_BYTES)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as wrong:
        line = f":{wrong.problem_mark.line + 1}" if wrong.problem_mark else ""
        raise error(f"{file}{line}: not YAML", wrong.problem or str(wrong), advice) from wrong
    except (yaml.YAMLError, RecursionError, ValueError) as wrong:
        raise error(f"{file}: not YAML", str(wrong).split("\n", 1)[0], advice) from wrong
    if node is None:
        raise error(f"{file}: nothing in it", "the file is empty or only comments", advice)
    lines: dict[Key, int] = {}
    spellings: dict[Key, str] = {}
    source = replace(source, lines=lines, spellings=spellings)
    reader = _YamlReader(source, lines, spellings, MAX_ALIASED + len(text), yaml.SafeLoader(""))
    return DocumentNode(source, (), reader.value(node, (), node.start_mark.line + 1))


@dataclass(slots=True)
class _YamlReader:
    """Reads the values of YAML nodes, and notes their lines and spellings."""

    source: DocumentSource
    """For errors."""
    lines: dict[Key, int]
    """Line of each key that was read."""
    spellings: dict[Key, str]
    """Scalars other than texts that were read, as they are written."""
    remaining: int
    """Values that may still be read."""
    loader: yaml.SafeLoader
    """Reads numbers, truth values and nulls."""

    def value(self, node: yaml.Node, key: Key, line: int) -> Any:
        """The plain value of a node; ``line`` is that of its key."""
        self.lines[key] = line
        self.remaining -= 1
        if self.remaining < 0 or len(key) > MAX_DEPTH:
            self.refuse(key, "the file is too large or refers to itself")
        kind = getattr(node, "id", "")
        if kind == "mapping":
            return {name: self.value(inner, (*key, name), at) for name, inner, at in self.pairs(node, key)}
        if kind == "sequence":
            items = enumerate(node.value)
            return [self.value(item, (*key, index), item.start_mark.line + 1) for index, item in items]
        if node.tag not in _YAML_TAGS:
            self.refuse(key, f"the tag {node.tag} is not allowed")
        value = self.scalar(node)
        if not isinstance(value, str) and node.value:
            self.spellings[key] = node.value
        return value

    def pairs(self, node: yaml.Node, key: Key) -> Iterator[tuple[str, yaml.Node, int]]:
        """Key, value and line of each pair of a mapping."""
        seen: set[str] = set()
        for name, value in node.value:
            if name.id != "scalar":
                self.refuse(key, "its keys must be plain words")
            line = name.start_mark.line + 1
            if name.value in seen:
                self.lines[*key, name.value] = line
                self.refuse((*key, name.value), "the key occurs twice")
            seen.add(name.value)
            yield name.value, value, line

    def scalar(self, node: yaml.Node) -> Any:
        """Text, number, truth value or None."""
        text: str = node.value
        plain = getattr(node, "style", None) is None
        try:
            if plain and _DECIMAL.fullmatch(text):
                return int(text.replace("_", ""))
            if plain and _EXPONENTIAL.fullmatch(text) and math.isfinite(value := float(text.replace("_", ""))):
                return int(value) if value.is_integer() and abs(value) < 2**53 else value
            if node.tag in _YAML_READ and ":" not in text:
                return self.loader.construct_object(node)
        except (ValueError, KeyError, IndexError):
            pass  # a text such as `!!bool perhaps`, or with more digits than Python reads
        return text

    def refuse(self, key: Key, why: str) -> NoReturn:
        """Refuse the value at a key."""
        DocumentNode(self.source, key, None).refuse(why)
