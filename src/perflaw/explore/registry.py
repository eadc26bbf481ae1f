"""Policies by name: ours, those of installed packages (entry points ``perflaw.policies``), and ``file.py:Class``."""

from __future__ import annotations

import importlib.util
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from perflaw.errors import UsageError
from perflaw.explore.policy import Policy

GROUP = "perflaw.policies"
"""Entry points of packages that bring policies."""
OURS = {
    "grid": "perflaw.explore.policies.grid:Grid",
    "random": "perflaw.explore.policies.random:Random",
    "sobol": "perflaw.explore.policies.sobol:Sobol",
    "lhs": "perflaw.explore.policies.lhs:LatinHypercube",
    "one-at-a-time": "perflaw.explore.policies.one_at_a_time:OneAtATime",
    "racing": "perflaw.explore.policies.racing:Racing",
    "law": "perflaw.explore.policies.law:Law",
    "optuna": "perflaw.explore.policies.optuna:Optuna",
    "smac": "perflaw.explore.policies.smac:Smac",
}
"""Name → module:class. Not by entry points: they must be there in a checkout too."""


def policy_names() -> list[str]:
    """Return the names of all policies that can be chosen, ours first."""
    return [*OURS, *sorted(point.name for point in entry_points(group=GROUP) if point.name not in OURS)]


def find_policy(name: str, folder: Path | str = ".") -> type[Policy]:
    """Return the class of a policy: a name, or ``file.py:Class`` with the file relative to ``folder`` (the study's).

    Raises:
        UsageError: no such policy, file or class, or it cannot be imported.
    """
    if ".py:" in name:
        return _checked(_from_file(name, Path(folder)), name)
    points = {point.name: point for point in entry_points(group=GROUP)} | {
        ours: EntryPoint(ours, place, GROUP) for ours, place in OURS.items()
    }
    if name not in points:
        raise UsageError(f"there is no policy {name!r}", f"there are {', '.join(points)}", "--policy law")
    return _checked(_loaded(points[name], name), name)


def _loaded(point: EntryPoint, name: str) -> object:
    try:
        return point.load()
    except Exception as error:  # whatever a package does when it is imported
        raise UsageError(f"policy {name!r} cannot be loaded", f"{type(error).__name__}: {error}") from error


def _from_file(name: str, folder: Path) -> object:
    file, _, wanted = name.rpartition(":")
    path = (folder / file).resolve()
    if not path.is_file():
        raise UsageError(f"policy {name!r}: there is no file {path}")
    spec = importlib.util.spec_from_file_location(f"perflaw_policy_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"policy {name!r}: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a person's file does when it is imported
        raise UsageError(f"policy {name!r} cannot be loaded", f"{path}: {type(error).__name__}: {error}") from error
    if not hasattr(module, wanted):
        classes = [each for each, value in vars(module).items() if isinstance(value, type) and value is not Policy]
        raise UsageError(f"{path} has no class {wanted!r}", f"it has {', '.join(classes) or 'none'}")
    return getattr(module, wanted)


def _checked(found: object, name: str) -> type[Policy]:
    if isinstance(found, type) and issubclass(found, Policy):
        return found
    raise UsageError(f"policy {name!r} is no policy", "its class must inherit perflaw.explore.policy.Policy")
