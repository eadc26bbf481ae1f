"""Defaults of options from ``[tool.perflaw]`` in the nearest ``pyproject.toml``: of this folder, or one above it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from perflaw.errors import UsageError

_TABLE: Final = "[tool.perflaw]"
KEYS: Final[dict[str, type]] = {"experiment": str, "select": list, "exclude": list, "metrics": list, "budget": str}
"""Key → what its value is; lists are of texts."""
RECORDING: Final = ("record", "attach")
"""Verbs that record: all keys are defaults of theirs. Of other verbs, the experiment is."""


def defaults(verbs: Iterable[str], folder: Path) -> dict[str, dict[str, Any]]:
    """Verb → option → default; UsageError where the table has an unknown key or a wrong value."""
    file = next((one for parent in (folder, *folder.parents) if (one := parent / "pyproject.toml").is_file()), None)
    try:
        text = file.read_text(encoding="utf-8") if file else ""
    except (OSError, UnicodeDecodeError):
        return {}
    if _TABLE not in text:
        return {}
    import tomllib

    try:
        table: dict[str, Any] = tomllib.loads(text)["tool"]["perflaw"]
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise UsageError(f"{file}: cannot be read", str(error), f"{_TABLE} with experiment, select, metrics") from error
    for key, value in table.items():
        if key not in KEYS:
            near = get_close_matches(key, KEYS, 1)
            why = f"did you mean {near[0]}?" if near else f"its keys are {', '.join(KEYS)}"
            raise UsageError(f"{file}: {_TABLE} has no {key!r}", why, "see docs/habits.md")
        texts = value if isinstance(value, list) else [value]
        if not isinstance(value, KEYS[key]) or not all(isinstance(one, str) for one in texts):
            kind = "a list of texts" if KEYS[key] is list else "a text"
            raise UsageError(f"{file}: {key} in {_TABLE}", f"{kind} is expected", f'{key} = ["…"]')
    given = dict(table)
    if "metrics" in given:
        given["metric"] = given.pop("metrics")  # of other verbs, the option of that name has one value
    common = {key: value for key, value in given.items() if key == "experiment"}
    return {verb: given if verb in RECORDING else common for verb in verbs}
