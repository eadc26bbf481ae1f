"""Parameters of the paper's XML as knobs: attributes in, the keys of a study file out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perflaw.explore.parts import did_you_mean
from perflaw.explore.values import quantity

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
