"""The paper's XML (SPEX, §3: configurations in XML, which are templates as well), as a study and as a target's file.

The paper gives no schema. Ours is the plain form ``<configuration><parameter name="threads" value="4"/>…</configuration>``:
a parameter with ``values``, or ``min`` and ``max``, is varied; one with ``value`` alone is fixed.
docs/study-files.md has all of it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any, NoReturn
from xml.parsers import expat

from perflaw.errors import TargetError, UsageError
from perflaw.explore.parts import NEXT, Part, did_you_mean, from_python
from perflaw.explore.values import quantity

# ---- Parameters of the paper's XML as knobs: attributes in, the keys of a study file out.

ATTRIBUTES = (
    "value", "values", "min", "max", "type", "scale", "unit", "switch_cost", "workload", "apply", "apply-arg", "apply-env",
    "apply-pragma", "apply-file", "verify-path", "verify-regex", "verify-pragma", "verify-command", "verify-file",
)  # fmt: skip


def knob_of(attributes: Mapping[str, str]) -> dict[str, Any]:
    """A knob as a study file has it. ValueError says which attribute is wrong.

    >>> knob_of({"min": "1", "max": "8", "value": "4", "apply": "--threads={}"})
    {'type': 'int', 'range': ['1', '8'], 'default': '4', 'apply': {'arg': '--threads={}'}}
    """
    for name in attributes:
        if name not in ATTRIBUTES:
            raise ValueError(f"unknown attribute {name!r}{did_you_mean(name, ATTRIBUTES)}")
    knob: dict[str, Any] = {"type": attributes.get("type") or _type(attributes)}
    if "values" in attributes:
        knob["values"] = [one.strip() for one in attributes["values"].split(",") if one.strip()]
    if "min" in attributes or "max" in attributes:
        if not ("min" in attributes and "max" in attributes):
            raise ValueError("min and max stand together")
        knob["range"] = [attributes["min"], attributes["max"]]
    if "value" in attributes:
        knob["default"] = _truth(attributes["value"]) if knob["type"] == "bool" else attributes["value"]
    knob |= {name: attributes[name] for name in ("scale", "unit", "switch_cost") if name in attributes}
    if "workload" in attributes:
        knob["workload"] = _truth(attributes["workload"])
    return {**knob, **_injections(attributes)}


def _type(attributes: Mapping[str, str]) -> str:
    """The kind where none is said: ranges of whole numbers are int, lists of numbers ordinal, other lists categorical."""
    if "values" not in attributes:
        ends = [quantity(attributes[name]) for name in ("min", "max") if name in attributes]
        return "int" if all(end and isinstance(end.value, int) for end in ends) else "float"
    return "ordinal" if all(quantity(one) for one in attributes["values"].split(",") if one.strip()) else "categorical"


def _injections(attributes: Mapping[str, str]) -> dict[str, Any]:
    apply = {name.removeprefix("apply-"): value for name, value in attributes.items() if name.startswith("apply-")}
    if "apply" in attributes:
        apply = {"arg": attributes["apply"], **apply}
    verify = {name.removeprefix("verify-"): value for name, value in attributes.items() if name.startswith("verify-")}
    found: dict[str, Any] = {}
    if apply:
        found["apply"] = apply if len(apply) == 1 else [{name: value} for name, value in apply.items()]
    return {**found, "verify": verify} if verify else found


def _truth(text: str) -> Any:
    return {"true": True, "false": False}.get(text.lower(), text)


ROOT = "configuration"
_INSIDE = ("parameter", "target", "metric", "constraint", "exploration", "restore")
_EXPLORATION = {
    "trials_per_config": "repetitions", "policy": "policy", "trials": "trials", "minutes": "minutes", "margin": "margin",
    "name": "name", "early_stop": "early_stop",
}  # fmt: skip
Attributes = dict[str, str]


class _Element:
    """An element with its line."""

    def __init__(self, name: str, attributes: Attributes, where: str) -> None:
        self.name, self.attributes, self.where, self.text = name, attributes, where, ""

    def wrong(self, why: str) -> NoReturn:
        raise UsageError(f"{self.where}: <{self.name}>", why, NEXT)

    def part(self, value: Any, what: str) -> Part:
        return from_python(value, self.where, what)


def from_xml(text: str, where: str) -> Part:
    """Parts of a study in the paper's XML; UsageError with the line where it is none."""
    elements = _elements(text, where)
    root = elements[0]
    keys: dict[str, Part] = {name: root.part(value, name) for name, value in root.attributes.items()}
    keys |= {"knobs": Part({}, root.where, "knobs"), "metrics": Part({}, root.where, "metrics")}
    constraints: list[Part] = []
    fixed: dict[str, str] = {}
    for one in elements[1:]:
        if one.name in ("parameter", "metric"):
            _take_named(one, keys, fixed)
        elif one.name == "constraint":
            constraints.append(one.part(one.attributes.get("expr", one.text.strip()), "constraint"))
        elif one.name == "exploration":
            keys |= _exploration(one)
        else:
            keys[one.name] = _Shaped(one).part()
    if constraints:
        keys["constraints"] = Part(constraints, constraints[0].where, "constraints")
    if "target" in keys:
        keys["target"] = _with_fixed(keys["target"], fixed)
    return Part(keys, root.where)


def _elements(text: str, where: str) -> list[_Element]:
    """All elements in order, the root first; nothing nests below the second level."""
    parser = expat.ParserCreate()
    found: list[_Element] = []
    depth = 0

    def start(name: str, attributes: Attributes) -> None:
        nonlocal depth
        found.append(_Element(name, attributes, f"{where}:{parser.CurrentLineNumber}"))
        known = (ROOT,) if depth == 0 else _INSIDE
        if name not in known or depth > 1:
            found[-1].wrong(
                f"unknown here{did_you_mean(name, known)}" if depth < 2 else "it stands within another element"
            )
        depth += 1

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def characters(more: str) -> None:
        found[-1].text += more

    def doctype(*_: object) -> NoReturn:
        raise UsageError(f"{where}:{parser.CurrentLineNumber}: a document type", "entities are not read", NEXT)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = characters, doctype
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise UsageError(f"{where}:{error.lineno}: no XML", expat.errors.messages[error.code], NEXT) from error
    return found


def _take_named(one: _Element, keys: dict[str, Part], fixed: dict[str, str]) -> None:
    """A parameter or metric; both have names."""
    name = one.attributes.pop("name", "")
    if not name:
        one.wrong("its attribute name is missing")
    group = keys["knobs" if one.name == "parameter" else "metrics"].value
    if name in group or name in fixed:
        one.wrong(f"{name!r} stands there twice")
    if one.name == "metric":
        group[name] = one.part(one.attributes, name)
    elif not one.attributes.keys() & {"values", "min", "max", "type"}:
        fixed[name] = one.attributes.get("value", "")
    else:
        try:
            group[name] = one.part(knob_of(one.attributes), name)
        except ValueError as error:
            one.wrong(str(error))


def _exploration(one: _Element) -> dict[str, Part]:
    for name in one.attributes:
        if name not in _EXPLORATION:
            one.wrong(f"unknown attribute {name!r}{did_you_mean(name, list(_EXPLORATION))}")
    found: dict[str, Any] = {_EXPLORATION[name]: value for name, value in one.attributes.items()}
    if "early_stop" in found:
        found["early_stop"] = found["early_stop"].lower() == "true"
    return {name: one.part(value, name) for name, value in found.items()}


class _Shaped:
    """Elements whose attributes are written as in YAML's short form: ``ready="tcp: 7000"``."""

    def __init__(self, element: _Element) -> None:
        self.element = element

    def part(self) -> Part:
        shaped: dict[str, Any] = {}
        for name, value in self.element.attributes.items():
            head, colon, rest = value.partition(": ")
            if self.element.name == "restore":
                shaped[name] = value.split()
            elif colon and name in ("ready", "result"):
                shaped[name] = {head: rest}
            else:
                shaped[name] = value
        return self.element.part(shaped, self.element.name)


def _with_fixed(target: Part, fixed: dict[str, str]) -> Part:
    """Commands with fixed parameters put in."""

    def put(text: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: fixed.get(found[1], found[0]), text)

    keys = {
        name: Part(put(one.value), one.where, one.what, put(one.text)) if isinstance(one.value, str) else one
        for name, one in target.value.items()
    }
    return Part(keys, target.where, target.what)


def _parameter(name: str) -> re.Pattern[str]:
    return re.compile(rf"<parameter\b[^<>]*\bname\s*=\s*([\"']){re.escape(html.escape(name))}\1[^<>]*>")


_VALUE = re.compile(r"(\bvalue\s*=\s*)([\"'])(.*?)\2", re.DOTALL)


def parameter_set(text: str, name: str, value: str) -> str:
    """A configuration with the ``value`` of one parameter changed, all else as it was.

    >>> parameter_set('<parameter name="a" value="1"/>', "a", "2")
    '<parameter name="a" value="2"/>'
    """
    found = _parameter(name).search(text)
    if not found or not _VALUE.search(found[0]):
        raise TargetError(f"parameter {name!r}", "the file has no such parameter with a value")
    changed = _VALUE.sub(lambda one: f'{one[1]}"{html.escape(value)}"', found[0], count=1)
    return text[: found.start()] + changed + text[found.end() :]


def parameter_told(text: str, name: str) -> str | None:
    """The ``value`` of a parameter; None where there is none."""
    found = _parameter(name).search(text)
    value = _VALUE.search(found[0]) if found else None
    return html.unescape(value[3]) if value else None
