"""Policy, budget, restore and load of a study file."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from perflaw.explore.parts import Part, did_you_mean
from perflaw.types.studies import Budget

_WHEN = ("trial", "exit", "crash")
_LOADS = {"cpu": "", "memory": "B", "disk": "B/s"}


def read_policy(part: Part | None) -> tuple[str, dict[str, Any]]:
    """Name and options: ``law``, or ``{name: racing, option: …}``."""
    if part is None:
        return "law", {}
    if not isinstance(part.value, dict):
        return part.word(), {}
    keys = part.keys()
    if "name" not in keys:
        part.wrong("its name is missing", "policy: {name: law, …}")
    options = {name: one.plain() for name, one in keys.items() if name not in ("name", "options")}
    more = keys["options"].keys() if "options" in keys else {}
    return keys["name"].word(), {**options, **{name: one.plain() for name, one in more.items()}}


def read_budget(keys: dict[str, Part]) -> Budget:
    """Budget from the study's own keys."""
    minutes = keys.get("minutes")
    return Budget(
        trials=keys["trials"].whole(1, 10_000_000) if "trials" in keys else None,
        minutes=None if minutes is None else _minutes(minutes),
        margin=_margin(keys["margin"]) if "margin" in keys else None,
    )


def _minutes(part: Part) -> float:
    found = part.quantity()
    if found.unit == "s":
        return part.number(1e-3, 1e9, "s") / 60
    return part.number(1e-4, 1e7)


def _margin(part: Part) -> float:
    margin = part.number(0, unit="share")
    if not 0 < margin < 1:
        part.wrong(f"{part.text} is no share between 0 and 1", "margin: 5 %")
    return margin


def read_restore(part: Part | None) -> dict[str, Any]:
    """``{"snapshot": [paths], "on": [when]}``; a list alone is the snapshot."""
    if part is None:
        return {}
    if not isinstance(part.value, dict):
        return {"snapshot": [one.word() for one in part.items()], "on": ["exit", "crash"]}
    keys = part.keys(("snapshot", "on"))
    if "snapshot" not in keys:
        part.wrong("snapshot is missing: the files and folders that are put back", "snapshot: [db]")
    when = [one.word() for one in keys["on"].items()] if "on" in keys else ["exit", "crash"]
    for word in when:
        if word not in _WHEN:
            keys["on"].wrong(f"unknown time {word!r}{did_you_mean(word, _WHEN)}")
    return {"snapshot": [one.word() for one in keys["snapshot"].items()], "on": when}


def read_load(part: Part | None, knobs: Collection[str]) -> dict[str, Any]:
    """Load beside the target: numbers in base units (CPUs, B, B/s), or names of knobs."""
    if part is None:
        return {}
    found: dict[str, Any] = {}
    for name, one in part.keys(tuple(_LOADS)).items():
        found[name] = one.word() if one.word() in knobs else one.number(0, unit=_LOADS[name])
    return found
