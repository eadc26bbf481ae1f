"""The paper's XML (SPEX, §3: configurations in XML, which are templates as well), as a study and as a target's file.

The paper gives no schema. Ours is the plain form ``<configuration><parameter name="threads" value="4"/>…</configuration>``:
a parameter with ``values``, or ``min`` and ``max``, is varied; one with ``value`` alone is fixed.
docs/study-files.md has all of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn
from xml.parsers import expat

from perflaw.documents import DocumentNode, DocumentSource, Key
from perflaw.errors import did_you_mean
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
    kind = attributes.get("type")
    if not kind and "values" in attributes:
        numbers = all(quantity(one) for one in attributes["values"].split(",") if one.strip())
        kind = "ordinal" if numbers else "categorical"
    elif not kind:
        ends = [quantity(attributes[name]) for name in ("min", "max") if name in attributes]
        kind = "int" if all(end and isinstance(end.value, int) for end in ends) else "float"
    knob: dict[str, Any] = {"type": kind}
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
    apply = {name.removeprefix("apply-"): value for name, value in attributes.items() if name.startswith("apply-")}
    if "apply" in attributes:
        apply = {"arg": attributes["apply"], **apply}
    verify = {name.removeprefix("verify-"): value for name, value in attributes.items() if name.startswith("verify-")}
    found: dict[str, Any] = {}
    if apply:
        found["apply"] = apply if len(apply) == 1 else [{name: value} for name, value in apply.items()]
    return {**knob, **({**found, "verify": verify} if verify else found)}


def _truth(text: str) -> Any:
    return {"true": True, "false": False}.get(text.lower(), text)


ROOT = "configuration"
_INSIDE = ("parameter", "target", "metric", "constraint", "exploration", "restore")
_EXPLORATION = {
    "trials_per_config": "repetitions", "policy": "policy", "trials": "trials", "minutes": "minutes", "margin": "margin",
    "name": "name", "early_stop": "early_stop",
}  # fmt: skip
Attributes = dict[str, str]


@dataclass(slots=True)
class _Element:
    """An element of the file."""

    name: str
    """Its tag."""
    attributes: Attributes
    """Its attributes."""
    node: DocumentNode
    """Its place, for errors."""
    text: str = ""
    """The text in it."""

    def refuse(self, why: str) -> NoReturn:
        """Refuse the element."""
        self.node.refuse(f"<{self.name}>: {why}")


def spex_document(text: str, source: DocumentSource) -> DocumentNode:
    """A study in the paper's XML as the document of a study file; the source's error, with the line, where it is none."""
    root, *elements = _elements(text, source)
    study: dict[str, Any] = {**root.attributes, "knobs": {}, "metrics": {}}
    lines: dict[Key, int] = {(): root.node.line or 1}
    fixed: dict[str, str] = {}
    for element in elements:
        if element.name != "exploration":
            keys = [_add_element(element, study, fixed)]
        else:
            # Put the settings of the exploration into the study; their keys there.
            for name, value in element.attributes.items():
                if name not in _EXPLORATION:
                    element.refuse(f"unknown attribute {name!r}{did_you_mean(name, list(_EXPLORATION))}")
                study[_EXPLORATION[name]] = value.lower() == "true" if name == "early_stop" else value
            keys = [(_EXPLORATION[name],) for name in element.attributes]
        lines |= dict.fromkeys(keys, element.node.line or 1)
    for name, command in study.get("target", {}).items():
        if isinstance(command, str):
            study["target"][name] = re.sub(r"\{(\w+)\}", lambda found: fixed.get(found[1], found[0]), command)
    return DocumentNode(replace(source, lines=lines), (), study)


def _elements(text: str, source: DocumentSource) -> list[_Element]:
    """All elements in order, the root first; nothing nests below the second level."""
    parser = expat.ParserCreate()
    elements: list[_Element] = []
    depth = 0

    def here() -> DocumentNode:
        return DocumentNode(replace(source, lines={(): parser.CurrentLineNumber}), (), None)

    def start(name: str, attributes: Attributes) -> None:
        nonlocal depth
        elements.append(_Element(name, attributes, here()))
        known = (ROOT,) if depth == 0 else _INSIDE
        if depth > 1:
            elements[-1].refuse("it stands within another element")
        if name not in known:
            elements[-1].refuse(f"unknown here{did_you_mean(name, known)}")
        depth += 1

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def characters(more: str) -> None:
        elements[-1].text += more

    def doctype(*_: object) -> NoReturn:
        here().refuse("a document type is not allowed, for entities are not read")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = characters, doctype
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        what = f"{source.file}:{error.lineno}: not XML"
        raise source.error(what, expat.errors.messages[error.code], source.next_command) from error
    return elements


def _add_element(element: _Element, study: dict[str, Any], fixed: dict[str, str]) -> Key:
    """Put an element into the study; its key there. Parameters that are not varied go to ``fixed``."""
    attributes = element.attributes
    if element.name == "constraint":
        study.setdefault("constraints", []).append(attributes.get("expr", element.text.strip()))
        return "constraints", len(study["constraints"]) - 1
    if element.name not in ("parameter", "metric"):
        # Attributes as in YAML's short form: ``ready="tcp: 7000"``.
        short: dict[str, Any] = {}
        for name, value in attributes.items():
            head, colon, tail = value.partition(": ")
            short[name] = {head: tail} if colon and name in ("ready", "result") else value
            if element.name == "restore":
                short[name] = value.split()
        study[element.name] = short
        return (element.name,)
    name = attributes.pop("name", "")
    if not name:
        element.refuse("its attribute name is missing")
    group = "knobs" if element.name == "parameter" else "metrics"
    if name in study[group] or name in fixed:
        element.refuse(f"the name {name!r} occurs twice")
    if element.name == "parameter" and not attributes.keys() & {"values", "min", "max", "type"}:
        fixed[name] = attributes.get("value", "")
    else:
        try:
            study[group][name] = knob_of(attributes) if group == "knobs" else attributes
        except ValueError as error:
            element.refuse(str(error))
    return group, name
